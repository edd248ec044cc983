#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/noting.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/program/arguments.h"

char noted[4096];

void note(const char *format, ...)
{
    va_list values;
    size_t length = strlen(noted);
    va_start(values, format);
    vsnprintf(noted + length, sizeof noted - length, format, values);
    va_end(values);
}

const char *noted_word(const char *text)
{
    return text ? text : "-";
}

tr_status run_noted(const struct cli_command *command, const char *words)
{
    static const char *const environment[] = {NULL};
    const char *word_of[64];
    char copy[1024];
    void *options;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) word_of[count++] = at;
    if (cli_command_read(command, count, word_of, environment, &options) != TR_OK)
        fail_msg("%s: %s", words, tr_error_message());
    const int64_t live = tr_alloc_live();
    noted[0] = '\0';
    const tr_status status = command->run(options);
    assert_int_equal(tr_alloc_live(), live);
    cli_command_release(command, &options);
    return status;
}
