/* Texts of system errors, for messages. */
#ifndef TR_BASE_REASON_H
#define TR_BASE_REASON_H

/* The meaning of an errno, in English whatever the locale. Static storage; any thread. */
const char *tr_errno_text(int error);

#endif
