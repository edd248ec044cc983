/* Journals of a few events, written by the test and read as a run. For one file of a test, in its scratch
 * directory. */
#ifndef TESTS_REPORT_JOURNAL_H
#define TESTS_REPORT_JOURNAL_H

#include "report/run.h"
#include "scratch.h"

#include "base/files/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define START(step)                                                                                          \
    "{\"event\":\"start\",\"name\":\"job\",\"seed\":3,\"batch\":10,\"steps\":40,\"ranks\":2,\"step\":" step  \
    "}\n"
#define STEP(step, loss)                                                                                     \
    "{\"event\":\"step\",\"step\":" step ",\"loss\":" loss ",\"accuracy\":0.5,\"seconds\":1.5}\n"

static inline tr_status read_text(const char *text, struct tr_run **run)
{
    char path[SCRATCH_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", scratch_place, TR_JOURNAL_FILE);
    assert_int_equal(tr_file_write_atomic(NULL, path, text, strlen(text)), TR_OK);
    return tr_run_read(scratch_place, run);
}

#endif
