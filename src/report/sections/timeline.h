/* An excerpt of a trace file (see train/observe/trace.h) as a picture: a lane for each thread of each rank.
 */
#ifndef TR_REPORT_TIMELINE_H
#define TR_REPORT_TIMELINE_H

#include "base/text/text.h"

/* Appends a figure with the last whole step of the trace and the one before, if there are any.
   TR_ENOTFOUND where there is no such file; TR_EFORMAT for another file; TR_EIO, TR_ENOMEM. */
tr_status tr_report_timeline(struct tr_text *html, const char *path);

#endif
