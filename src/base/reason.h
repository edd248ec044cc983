/* Reasons of the system, for messages. */
#ifndef TR_BASE_REASON_H
#define TR_BASE_REASON_H

/* What an errno means, in English whatever the locale. Static storage; any thread. */
const char *tr_errno_text(int error);

#endif
