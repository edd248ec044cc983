/* Reports: finished or running runs as one self-contained HTML page. */
#ifndef TRIREME_REPORT_H
#define TRIREME_REPORT_H

#include "trireme/sized.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Initialize with TR_REPORT_SETTINGS_INIT; strings are borrowed for the call. */
struct tr_report_settings {
    size_t size;       /* sizeof(struct tr_report_settings) */
    const char *title; /* NULL: the name of the first run's job */
    const char *trace; /* a trace file to show an excerpt of; NULL: trace.json in the directory of the
                          first run that has one, if any */
    bool examples;     /* run the first run's network on the test data: which examples it gets wrong */
};
#ifdef __cplusplus
inline tr_report_settings tr_report_settings_init()
{
    tr_report_settings value = tr_sized<tr_report_settings>();
    value.examples = true;
    return value;
}
#define TR_REPORT_SETTINGS_INIT tr_report_settings_init()
#else
#define TR_REPORT_SETTINGS_INIT                                                                              \
    {                                                                                                        \
        .size = sizeof(struct tr_report_settings), .examples = true                                          \
    }
#endif

/* Makes the page of the runs in `count` directories (1 to 64), as training left them with their
   journal.jsonl; the first leads. *html is returned, free with tr_text_free() of trireme/data.h.
   TR_ENOTFOUND for a directory without a run, TR_EFORMAT for a file that does not begin like a journal,
   TR_EIO, TR_ENOMEM. */
TR_API tr_status tr_report(const char *const *runs, int count, const struct tr_report_settings *settings,
                           char **html);

/* Compares the runs in two directories: settings, hashes, and the digests of steps where both recorded them
   (`record_digests` of trireme/train.h). *equal: whether both ended with the same hash and no digest
   differs; *text, lines for people that begin with that verdict, names the first step, microbatch and tensor
   in which they differ. Returned, free with tr_text_free(). Errors as above. */
TR_API tr_status tr_diff(const char *run_a, const char *run_b, bool *equal, char **text);

#ifdef __cplusplus
}
#endif
#endif
