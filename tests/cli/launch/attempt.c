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

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "scratch.h"

double attempt_clock = 1000, attempt_tick;

static double turned_clock(void *user)
{
    (void)user;
    return attempt_clock += attempt_tick;
}

int attempt_prepare(void **state)
{
    (void)state;
    tr_clock_use(turned_clock, NULL);
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

struct cli_job_end attempt_whole(const struct cli_launcher *launcher, struct cli_job_orders orders)
{
    struct cli_job_end end;
    const int64_t live = tr_alloc_live();
    attempt_clock = 1000;
    assert_int_equal(attempt_run(launcher, &orders, &end), TR_OK);
    assert_int_equal(tr_alloc_live(), live);
    attempt_expect_no_child();
    return end;
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

const char *attempt_file(const char *name)
{
    static char text[1 << 16];
    struct tr_file_content content;
    assert_int_equal(tr_file_read(name, sizeof text - 1, &content), TR_OK);
    memcpy(text, content.data, content.size);
    text[content.size] = '\0';
    tr_file_content_free(&content);
    return text;
}

bool attempt_has_line(const char *text, const char *line)
{
    size_t length = strlen(line);
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (strncmp(text, line, length) == 0 && (text[length] == '\n' || text[length] == '\0')) return true;
    return false;
}

int attempt_place_make(void **state)
{
    return attempt_prepare(state) != 0 || scratch_place_make(state) != 0 || chdir(scratch_place) != 0 ? -1
                                                                                                      : 0;
}

int attempt_place_drop(void **state)
{
    return attempt_drop(state) != 0 || chdir("/") != 0 ? -1 : scratch_place_remove(state);
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
