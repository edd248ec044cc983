/* verify --workers: several processes share the segments of a receipt, and come to one conclusion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/session.h"

#define RECEIPT "run/run.receipt"

static char hash[65];

/* A run of 40 steps in four segments, each with a checkpoint at its beginning. */
static int make_run(void **state)
{
    struct session session;
    if (place_make(state) != 0) return -1;
    int code =
        run(&session, "train", "tiny.yaml", "--receipt", "--out", "run", "--set", "train.receipt_every=10",
            "--set", "train.checkpoint_every=10", "--set", "train.keep=100", NULL);
    if (code != 0) session_show(&session);
    snprintf(hash, sizeof hash, "%s", hash_in(session.text[0]));
    session_release(&session);
    return code;
}

static void expect(int wanted, const char *line)
{
    struct session session;
    int code = run(&session, "verify", "run", "--workers", "2", "--json", NULL);
    if (code != wanted || strcmp(session.text[0], line) != 0) {
        session_show(&session);
        fail_msg("not %s", line);
    }
    session_release(&session);
}

static void all_segments_are_checked_once(void **state)
{
    char line[512];
    (void)state;
    snprintf(line, sizeof line,
             "{\"outcome\":\"verified\",\"segments\":4,\"checked\":4,\"steps\":40,\"hash\":\"%s\",\"text\":"
             "\"4 of 4 segments came out as the receipt says, by 2 processes\"}\n",
             hash);
    expect(0, line);
    struct session session;
    int code = run(&session, "verify", "run", "--workers", "2", "--share", "1/2", NULL);
    expect_error(2, "--workers or --share, not both", &session, code);
    session_release(&session);
}

/* Parts of the work and times are read whole, within their limits. */
static void parts_and_times_are_checked(void **state)
{
    static const char *const wrong[][2] = {
        {"--share", ""},      {"--share", "1"},         {"--share", "0/2"},
        {"--share", "3/2"},   {"--share", "1/1000001"}, {"--share", "0000000000000001/2"},
        {"--share", "1/2x"},  {"--share", "x/2"},       {"--share", "1/"},
        {"--share", "/2"},    {"--share", "-1/2"},      {"--burn-in", ""},
        {"--burn-in", "s"},   {"--burn-in", "m"},       {"--burn-in", "1d"},
        {"--burn-in", "-1"},  {"--burn-in", "1ms"},     {"--burn-in", "277778h"},
        {"--burn-in", "ten"},
    };
    struct session session;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const bool share = strcmp(wrong[i][0], "--share") == 0;
        char part[64];
        int code = share ? run(&session, "verify", "run", wrong[i][0], wrong[i][1], NULL)
                         : run(&session, "verify", wrong[i][0], wrong[i][1], NULL);
        snprintf(part, sizeof part, "%s \"%s\" is no ", wrong[i][0], wrong[i][1]);
        expect_error(2, part, &session, code);
        session_release(&session);
    }
    /* The last of a million parts of four segments is empty or one of them. */
    expect_exit(0, "verify", "run", "--share", "1000000/1000000");
    expect_exit(0, "verify", "run", "--share", "1/1");
}

/* Options say the same to one process as to several: how many segments are drawn, and what the hash must be.
 */
static void options_reach_every_process(void **state)
{
    static const char *const workers[] = {"--workers=1", "--workers=2"};
    char expected[100];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct session session;
        for (int segments = 1; segments <= 3; segments++) {
            char drawn[32];
            snprintf(drawn, sizeof drawn, "--segments=%d", segments);
            int code = run(&session, "verify", "run", workers[i], drawn, "--seed", "7", "--json", NULL);
            snprintf(expected, sizeof expected,
                     "{\"outcome\":\"verified\",\"segments\":4,\"checked\":%d,\"steps\":%d,", segments,
                     10 * segments);
            if (code != 0 || strncmp(session.text[0], expected, strlen(expected)) != 0)
                session_show(&session);
            assert_int_equal(code, 0);
            assert_memory_equal(session.text[0], expected, strlen(expected));
            session_release(&session);
        }
        snprintf(expected, sizeof expected, "--expect=%.16s", hash);
        expect_exit(0, "verify", "run", workers[i], expected);
        expected[strlen("--expect=")] = hash[0] == '0' ? '1' : '0';
        expect_exit(6, "verify", "run", workers[i], expected);
        /* The settings of another run are not those of the receipt. */
        int code = run(&session, "verify", "run", workers[i], "--set", "optimizer.rate=0.5", "--json", NULL);
        assert_int_not_equal(code, 0);
        session_release(&session);
        /* For people the last line says it, and where only some are drawn, how likely others would be seen.
         */
        code = run(&session, "verify", "run", workers[i], "--segments", "2", NULL);
        assert_int_equal(code, 0);
        assert_non_null(strstr(session.text[0], "forged segments   seen with probability\n"));
        assert_non_null(strstr(session.text[0], "\nVERIFIED: "));
        session_release(&session);
    }
    struct session session;
    int code = run(&session, "verify", NULL);
    expect_error(2, "name a receipt or the directory of a run, or give --burn-in", &session, code);
    session_release(&session);
    code = run(&session, "verify", "run", "--burn-in", "1s", NULL);
    expect_error(2, "name a receipt or the directory of a run, or give --burn-in", &session, code);
    session_release(&session);
}

/* Reverses the chain of a boundary in the receipt. */
static void damage(const char *step)
{
    struct tr_file_content content;
    char key[32];
    assert_int_equal(tr_file_read(RECEIPT, 1 << 20, &content), TR_OK);
    snprintf(key, sizeof key, "\"%s\":", step);
    char *at = strstr(content.data, "\"boundaries\"");
    assert_non_null(at);
    at = strstr(at, key);
    assert_non_null(at);
    at = strchr(at + strlen(key), ','); /* behind the root */
    assert_non_null(at);
    at = strchr(at, '"') + 1;
    assert_int_equal(strspn(at, "0123456789abcdef"), 64);
    for (int i = 0; i < 32; i++) {
        const char digit = at[i];
        at[i] = at[63 - i];
        at[63 - i] = digit;
    }
    write_text(RECEIPT, content.data);
    tr_file_content_free(&content);
}

/* The second process, whose segment ends at step 20, finds the difference; the first, whose next one begins
   there, only its consequence. */
static void the_first_difference_counts(void **state)
{
    struct session session;
    (void)state;
    damage("20");
    int code = run(&session, "verify", "run", "--workers", "2", "--json", NULL);
    if (code != 6) session_show(&session);
    assert_int_equal(code, 6);
    static const char begun[] =
        "{\"outcome\":\"differs\",\"step\":20,\"segments\":4,\"checked\":1,\"steps\":10,";
    assert_memory_equal(session.text[0], begun, sizeof begun - 1);
    session_release(&session);
    damage("20"); /* there and back */
    all_segments_are_checked_once(state);
}

/* Of 4 TiB for the weights of one layer, in 4 GiB of addresses. */
static void room_is_looked_for_unless_it_is_refused(void **state)
{
    static const char *const ways[] = {"--memory-check", "--no-memory-check"};
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* takes more addresses itself */
#endif
    for (int i = 0; i < 2; i++) {
        struct session session;
        const char *const arguments[] = {
            "-c",
            "ulimit -v 4194304; exec \"$0\" verify run \"$1\" --set layers.0.units=1000000 "
            "--set layers.2.dense=1000000",
            TRIREME_PROGRAM, ways[i], NULL};
        session_start(&session, &(struct setup){.program = "/bin/sh", .arguments = arguments});
        expect_error(1, i == 0 ? "or give `--no-memory-check`" : "out of memory: ", &session,
                     session_end(&session));
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_segments_are_checked_once),
        cmocka_unit_test(parts_and_times_are_checked),
        cmocka_unit_test(options_reach_every_process),
        cmocka_unit_test(room_is_looked_for_unless_it_is_refused),
        cmocka_unit_test(the_first_difference_counts),
    };
    return cmocka_run_group_tests(tests, make_run, place_remove);
}
