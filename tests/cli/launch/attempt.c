#include "cli/launch/attempt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

double attempt_clock = 1000, attempt_tick;

double __wrap_tr_clock_seconds(void);

double __wrap_tr_clock_seconds(void)
{
    return attempt_clock += attempt_tick;
}

int attempt_prepare(void **state)
{
    (void)state;
    return cli_job_prepare() == TR_OK ? 0 : -1;
}

static FILE *file;
static int before = -1; /* stderr, while an attempt is under way */

/* A check that fails leaves in the middle of an attempt, and what it says is among the rest. */
static void leave(void)
{
    if (before < 0) return;
    dup2(before, STDERR_FILENO);
    close(before);
    before = -1;
}

int attempt_drop(void **state)
{
    (void)state;
    if (before < 0) return 0;
    leave();
    fprintf(stderr, "%s", attempt_said());
    return -1;
}

tr_status attempt_run(const struct cli_launcher *launcher, struct cli_job_orders *orders,
                      struct cli_job_end *end)
{
    void *none = NULL;
    attempt_drop(&none);
    if (file) fclose(file);
    file = tmpfile();
    assert_non_null(file);
    before = dup(STDERR_FILENO);
    assert_true(before >= 0);
    assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    orders->token = ATTEMPT_TOKEN;
    tr_status status = cli_job_run(launcher, orders, end);
    leave();
    return status;
}

const char *attempt_said(void)
{
    static char text[1 << 16];
    ssize_t length = file ? pread(fileno(file), text, sizeof text - 1, 0) : 0;
    text[length > 0 ? length : 0] = '\0';
    return text;
}

void attempt_expect_said(const char *expected)
{
    assert_string_equal(attempt_said(), expected);
}

int attempt_count(const char *text, const char *part)
{
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) found++;
    return found;
}

void attempt_expect_no_child(void)
{
    siginfo_t how;
    assert_int_equal(waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT), -1);
    assert_int_equal(errno, ECHILD);
}
