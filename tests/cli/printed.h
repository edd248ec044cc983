/* What is printed on standard output between two points of a test. */
#ifndef TESTS_CLI_PRINTED_H
#define TESTS_CLI_PRINTED_H

#include <stdio.h>
#include <unistd.h>

#include "cli/terminal/output.h"

static FILE *printed_file;
static int printed_before;

static inline void printed_begin(void)
{
    printed_file = tmpfile();
    assert_non_null(printed_file);
    assert_true(cli_output_flush());
    printed_before = dup(STDOUT_FILENO);
    assert_true(printed_before >= 0);
    assert_int_equal(dup2(fileno(printed_file), STDOUT_FILENO), STDOUT_FILENO);
}

/* All that was printed since printed_begin(), in static storage. */
static inline const char *printed_end(void)
{
    static char text[4096];
    const bool flushed = cli_output_flush();
    assert_int_equal(dup2(printed_before, STDOUT_FILENO), STDOUT_FILENO);
    close(printed_before);
    assert_true(flushed);
    rewind(printed_file);
    text[fread(text, 1, sizeof text - 1, printed_file)] = '\0';
    fclose(printed_file);
    return text;
}

#endif
