/* verify --workers: what several processes say becomes one conclusion. The processes are this program, and
 * say what the test wants of each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/verify/verify.h"
#include "refuse.h"

#define WORKERS 3

/* A process that is started: it says what the variable SAY_1, SAY_2 or SAY_3 has, by its share; what begins
   with
   "!" is said on standard error, with code 2. */
static int say(char **argv)
{
    char name[] = "SAY_?";
    for (; *argv; argv++)
        if (strncmp(*argv, "--share=", 8) == 0) name[4] = (*argv)[8];
    const char *text = getenv(name);
    if (!text) return 9;
    if (*text != '!') return puts(text) < 0;
    fputs(text + 1, stderr);
    return 2;
}

/* Verifies with what the three processes say; the text of the conclusion is to be freed. */
static tr_status verify(const char *const said[WORKERS], struct cli_verify_conclusion *out)
{
    static const char *const words[] = {"run", "--workers=3"}, *const environment[] = {NULL};
    void *options;
    assert_int_equal(cli_command_read(&cli_verify, 2, words, environment, &options), TR_OK);
    for (int i = 0; i < WORKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "SAY_%d", i + 1);
        setenv(name, said[i], 1);
    }
    *out = (struct cli_verify_conclusion){.result = TR_VERIFY_RESULT_INIT};
    const tr_status status = cli_verify_by_workers(options, out);
    cli_command_release(&cli_verify, &options);
    return status;
}

#define SAID(outcome, step, checked, hash, text)                                                             \
    "{\"outcome\":\"" outcome "\",\"step\":" step ",\"segments\":9,\"checked\":" checked                     \
    ",\"steps\":1" checked ",\"hash\":\"" hash "\",\"text\":\"" text "\"}"

static void the_worst_outcome_counts(void **state)
{
    static const struct {
        const char *said[WORKERS];
        enum tr_verify_outcome outcome;
        int step;
        const char *hash, *text;
    } cases[] = {
        {{SAID("verified", "0", "1", "", "a"), SAID("verified", "0", "2", "", "b"),
          SAID("verified", "0", "3", "abc", "c")},
         TR_VERIFIED,
         0,
         "abc",
         "6 of 9 segments came out as the receipt says, by 3 processes"},
        {{SAID("verified", "0", "1", "abc", "a"), SAID("verified", "0", "2", "", "b"),
          SAID("cannot", "0", "3", "", "c")},
         TR_UNVERIFIABLE,
         0,
         "abc",
         "c"},
        {{SAID("cannot", "0", "1", "", "a"), SAID("differs", "20", "2", "", "b"),
          SAID("verified", "0", "3", "", "c")},
         TR_DIFFERS,
         20,
         "",
         "b"},
        {{SAID("differs", "20", "1", "", "a"), SAID("differs", "10", "2", "", "b"),
          SAID("cannot", "0", "3", "", "c")},
         TR_DIFFERS,
         10,
         "",
         "b"},
        {{SAID("differs", "10", "1", "", "a"), SAID("verified", "0", "2", "", "b"),
          SAID("differs", "10", "3", "", "c")},
         TR_DIFFERS,
         10,
         "",
         "a"},
        {{SAID("cannot", "5", "1", "", "a"), SAID("cannot", "4", "2", "", "b"),
          SAID("verified", "0", "3", "", "c")},
         TR_UNVERIFIABLE,
         5,
         "",
         "a"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_verify_conclusion out;
        const int64_t live = tr_alloc_live();
        if (verify(cases[i].said, &out) != TR_OK) fail_msg("case %zu: %s", i, tr_error_message());
        assert_int_equal(out.result.outcome, cases[i].outcome);
        assert_int_equal(out.result.step, cases[i].step);
        assert_int_equal(out.result.segments, 9);
        assert_int_equal(out.result.checked, 1 + 2 + 3);
        assert_int_equal(out.result.steps, 11 + 12 + 13);
        assert_string_equal(out.result.hash, cases[i].hash);
        assert_string_equal(out.text, cases[i].text);
        tr_free(out.text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void processes_without_an_outcome_are_named(void **state)
{
    static const char verified[] = SAID("verified", "0", "1", "", "a");
    static const struct {
        const char *said[WORKERS], *message;
    } cases[] = {
        {{verified, "!first\nno such file\n", verified},
         "process 2 of 3 did not end with an outcome: no such file"},
        {{verified, verified, SAID("perhaps", "0", "1", "", "a")},
         "process 3 of 3 did not end with an outcome: exit code 0"},
        {{"", verified, "!"}, "process 1 of 3 did not end with an outcome: exit code 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_verify_conclusion out;
        const int64_t live = tr_alloc_live();
        assert_int_equal(verify(cases[i].said, &out), TR_EIO);
        assert_string_equal(tr_error_message(), cases[i].message);
        assert_null(out.text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* What several processes say is not taken for all if memory is refused on the way. */
static void memory_is_refused(void **state)
{
    static const char *const words[] = {"run", "--workers=2"}, *const environment[] = {NULL};
    void *options;
    (void)state;
    assert_int_equal(cli_command_read(&cli_verify, 2, words, environment, &options), TR_OK);
    setenv("SAY_1", SAID("verified", "0", "1", "", "a"), 1);
    setenv("SAY_2", SAID("verified", "0", "2", "", "b"), 1);
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_verify_conclusion out = {.result = TR_VERIFY_RESULT_INIT};
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = cli_verify_by_workers(options, &out);
        done = refuse_end();
        if (done) assert_int_equal(status, TR_OK);
        if (status == TR_OK) assert_int_equal(out.result.checked, 3);
        if (status == TR_OK)
            assert_string_equal(out.text, "3 of 9 segments came out as the receipt says, by 2 processes");
        if (status == TR_EIO) assert_non_null(strstr(tr_error_message(), "too little memory"));
        assert_true(status == TR_OK || status == TR_ENOMEM || status == TR_EIO);
        tr_free(out.text);
        assert_int_equal(tr_alloc_live(), live);
    }
    cli_command_release(&cli_verify, &options);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_outcome_counts),
        cmocka_unit_test(processes_without_an_outcome_are_named),
        cmocka_unit_test(memory_is_refused),
    };
    if (argc > 1) return say(argv);
    return cmocka_run_group_tests_name("cli.verdicts", tests, NULL, NULL);
}
