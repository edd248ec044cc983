/* trireme train in a terminal: the progress line, every width, resizing, no colours, no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/session.h"

static const char *const arguments[] = {
    "train", "tiny.yaml",         "--overwrite", "--set", "train.steps=1000000000",
    "--set", "train.log_every=0", NULL};

/* Frames of the progress line begin with a carriage return and end by erasing the rest of the line. */
static int frames_of(const char *text)
{
    int frames = 0;
    for (const char *at = text; (at = strstr(at, "%")) != NULL; at++) {
        const char *end = strpbrk(at, "\r\n");
        const char *erase = strstr(at, "\033[K");
        frames += erase && (!end || erase < end);
    }
    return frames;
}

/* The most columns that any frame takes. */
static int widest_frame(const char *text)
{
    int widest = 0, columns = 0;
    for (; *text; text++) {
        if (text[0] == '\033' && text[1] == '[') {
            text += 2 + strspn(text + 2, "0123456789;");
            if (*text == 'K' && columns > widest) widest = columns;
        } else if (*text == '\r' || *text == '\n') {
            columns = 0;
        } else {
            columns += ((unsigned char)*text & 0xc0) != 0x80;
        }
    }
    return widest;
}

/* Lets a run draw some frames and interrupts it. */
static void watch(struct session *session, struct setup setup, int frames)
{
    setup.arguments = arguments;
    session_start(session, &setup);
    session_wait_for(session, 0, "output ");
    while (frames_of(session->text[0]) < frames) session_read(session);
    session_signal(session, SIGINT);
    int code = session_end(session);
    if (code != 3) session_show(session);
    assert_int_equal(code, 3);
}

static void test_the_progress_line(void **state)
{
    (void)state;
    struct session session;
    watch(&session, (struct setup){.columns = 120}, 3);
    const char *out = session.text[0];
    assert_non_null(strstr(out, "\r\033[32m"));
    assert_non_null(strstr(out, "loss "));
    assert_non_null(strstr(out, "examples/s"));
    assert_non_null(strstr(out, " left\033[K"));
    assert_true(widest_frame(out) < 120);
    /* It is gone before the summary, which is whole. */
    const char *summary = strstr(out, "\r\033[Ktrained ");
    assert_non_null(summary);
    assert_null(strstr(summary + 4, "\033["));
    session_release(&session);
}

/* Who wants no output sees no frames either. */
static void test_quiet_runs_draw_nothing(void **state)
{
    (void)state;
    struct session session;
    int code = run_with(&session, (struct setup){.columns = 80}, "train", "tiny.yaml", "-o", "quiet",
                        "--quiet", "--set", "train.log_every=1", NULL);
    assert_int_equal(code, 0);
    assert_string_equal(session.text[0], "");
    session_release(&session);
}

static void test_every_width(void **state)
{
    (void)state;
    static const int widths[] = {8, 20, 41, 60, 250};
    for (int i = 0; i < 5; i++) {
        struct session session;
        watch(&session, (struct setup){.columns = widths[i]}, 2);
        assert_true(widest_frame(session.text[0]) < widths[i]);
        session_release(&session);
    }
}

static void test_resizing(void **state)
{
    (void)state;
    struct session session;
    session_start(&session, &(struct setup){.arguments = arguments, .columns = 150});
    while (frames_of(session.text[0]) < 2) session_read(&session);
    assert_true(widest_frame(session.text[0]) > 60);
    session_resize(&session, 40);
    size_t before = session.size[0];
    /* The next frame may have been under way. */
    while (frames_of(session.text[0] + before) < 4) session_read(&session);
    const char *after = session.text[0] + before;
    for (int skip = 0; skip < 2; skip++) after = strstr(after, "\033[K") + 3;
    assert_true(widest_frame(after) < 40);
    session_signal(&session, SIGINT);
    assert_int_equal(session_end(&session), 3);
    session_release(&session);
}

/* A status line is drawn ten times a second at most; a run without an end has time for one. */
static void test_a_comparison_says_how_far_a_run_is(void **state)
{
    (void)state;
    static const char *const compare[] = {"compare", "tiny.yaml", "--steps", "1000000000", "-w", "1", NULL};
    struct session session;
    session_start(&session, &(struct setup){.arguments = compare, .columns = 120});
    session_wait_for(&session, 0, " of 1000000000, loss ");
    assert_non_null(strstr(session.text[0], " on 1 worker: step "));
    session_signal(&session, SIGINT);
    assert_int_equal(session_end(&session), 3);
    session_release(&session);
}

static void test_no_color(void **state)
{
    (void)state;
    static const char *const environment[] = {"NO_COLOR=1", NULL};
    struct session session;
    watch(&session, (struct setup){.columns = 100, .environment = environment}, 2);
    assert_null(strstr(session.text[0], "\033[3"));
    assert_null(strstr(session.text[0], "\033[0m"));
    session_release(&session);
}

static void test_ascii_where_nothing_else_can_be_shown(void **state)
{
    (void)state;
    static const char *const environment[] = {"LC_ALL=C", NULL};
    struct session session;
    watch(&session, (struct setup){.columns = 100, .environment = environment}, 2);
    for (const char *at = session.text[0]; *at; at++) assert_true((unsigned char)*at < 128);
    assert_non_null(strchr(session.text[0], '['));
    session_release(&session);
}

static void test_a_dumb_terminal_gets_lines(void **state)
{
    (void)state;
    static const char *const environment[] = {"TERM=dumb", NULL};
    static const char *const lines[] = {"train", "tiny.yaml", "--overwrite", NULL};
    struct session session;
    session_start(&session, &(struct setup){.arguments = lines, .columns = 80, .environment = environment});
    assert_int_equal(session_end(&session), 0);
    assert_null(strchr(session.text[0], '\033'));
    assert_non_null(strstr(session.text[0], "step 40/40"));
    session_release(&session);
}

/* Lines scroll above the progress line: each is written over it, and the line is drawn again below in the
 * same write. */
static void test_lines_scroll_above(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "train", "tiny.yaml", "--overwrite", "--set", "train.steps=100000", "--set", "train.log_every=10000",
        NULL};
    struct session session;
    session_start(&session, &(struct setup){.arguments = lines, .columns = 100});
    assert_int_equal(session_end(&session), 0);
    assert_non_null(strstr(session.text[0], "\r\033[Kstep  50000/100000  loss"));
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_progress_line),
        cmocka_unit_test(test_quiet_runs_draw_nothing),
        cmocka_unit_test(test_every_width),
        cmocka_unit_test(test_resizing),
        cmocka_unit_test(test_a_comparison_says_how_far_a_run_is),
        cmocka_unit_test(test_no_color),
        cmocka_unit_test(test_ascii_where_nothing_else_can_be_shown),
        cmocka_unit_test(test_a_dumb_terminal_gets_lines),
        cmocka_unit_test(test_lines_scroll_above),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
