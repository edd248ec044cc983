/* What the command says of a dispute that was settled, and of a burn-in: its lines for people and programs,
 * its files and its exit code. The functions of the library are replaced by ones that come to what the test
 * wants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "cli/printed.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/session.h"
#include "dispute/judge.h"
#include "train/setup/stop.h"
#include "refuse.h"
#include "trireme/receipt.h"

static struct tr_dispute_result settled; /* with texts of the test */
static const struct tr_burn_in_event *places;
static int place_count;
static bool all_good;
static int nothing, parties;
static int signal_meanwhile; /* 0: none */

tr_status __wrap_tr_party_create(const struct tr_party_settings *settings, tr_party **out);
tr_status __wrap_tr_party_create(const struct tr_party_settings *settings, tr_party **out)
{
    assert_string_equal(settings->path, parties == 0 ? "a" : "b");
    parties++;
    *out = (tr_party *)(void *)&nothing;
    return TR_OK;
}

void __wrap_tr_party_destroy(tr_party **party);
void __wrap_tr_party_destroy(tr_party **party)
{
    parties -= *party != NULL;
    *party = NULL;
}

tr_status __wrap_tr_dispute_settle(const struct tr_party_settings *settings,
                                   const struct tr_dispute_side side[2], struct tr_dispute_result *out);
tr_status __wrap_tr_dispute_settle(const struct tr_party_settings *settings,
                                   const struct tr_dispute_side side[2], struct tr_dispute_result *out)
{
    (void)side;
    if (signal_meanwhile) {
        assert_int_equal(tr_stop_check(settings->stop, "it"), TR_OK);
        raise(signal_meanwhile);
        *out = (struct tr_dispute_result){.outcome = TR_DISPUTE_OPEN};
        return tr_stop_check(settings->stop, "it");
    }
    *out = settled;
    out->text = tr_strdup(settled.text);
    out->referee = settled.referee ? tr_strdup(settled.referee) : NULL;
    return out->text && (out->referee || !settled.referee) ? TR_OK : TR_ENOMEM;
}

tr_status __wrap_tr_burn_in(const struct tr_burn_in_settings *settings, tr_burn_in_listener listener,
                            void *user, bool *good);
tr_status __wrap_tr_burn_in(const struct tr_burn_in_settings *settings, tr_burn_in_listener listener,
                            void *user, bool *good)
{
    (void)settings;
    for (int i = 0; i < place_count; i++) listener(user, &places[i]);
    *good = all_good;
    return TR_OK;
}

/* Runs a command, and compares what it prints, and the exit code that it leaves. */
static void expect(const struct cli_command *command, const char *const *words, int count, int code,
                   const char *printed)
{
    static const char *const environment[] = {NULL};
    void *options;
    if (cli_command_read(command, count, words, environment, &options) != TR_OK)
        fail_msg("%s", tr_error_message());
    const int64_t live = tr_alloc_live();
    cli_output_leave_with(0);
    printed_begin();
    const tr_status status = command->run(options);
    const char *text = printed_end();
    if (status != TR_OK) fail_msg("%s", tr_error_message());
    assert_string_equal(text, printed);
    assert_int_equal(cli_output_leave(0), code);
    assert_int_equal(cli_output_leave(5), 5); /* a failure of its own comes first */
    assert_int_equal(tr_alloc_live(), live);
    cli_output_leave_with(0);
    cli_command_release(command, &options);
}

static void disputes_have_outcomes(void **state)
{
    static char sentence[] = "a sentence";
    static const struct {
        enum tr_dispute_outcome outcome;
        const char *word, *line;
        int code;
    } cases[] = {
        {TR_DISPUTE_EQUAL, "equal", "EQUAL", 0},
        {TR_DISPUTE_A, "a", "A IS RIGHT", 6},
        {TR_DISPUTE_B, "b", "B IS RIGHT", 6},
        {TR_DISPUTE_BOTH, "both", "BOTH ARE RIGHT", 6},
        {TR_DISPUTE_NEITHER, "neither", "NEITHER IS RIGHT", 6},
        {TR_DISPUTE_OPEN, "cannot", "CANNOT", 7},
    };
    static const char *const words[] = {"a", "b", "--json"};
    char expected[512];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        settled = (struct tr_dispute_result){
            .outcome = cases[i].outcome, .text = sentence, .questions = 3, .opened = 4, .bytes = 5};
        snprintf(expected, sizeof expected, "questions   3, opened 4, 5 bytes\n%s: a sentence\n",
                 cases[i].line);
        expect(&cli_dispute, words, 2, cases[i].code, expected);
        snprintf(expected, sizeof expected,
                 "{\"outcome\":\"%s\",\"number\":\"\",\"questions\":3,\"opened\":4,\"bytes\":5,"
                 "\"text\":\"a sentence\"}\n",
                 cases[i].word);
        expect(&cli_dispute, words, 3, cases[i].code, expected);
        assert_int_equal(parties, 0);
    }
    settled.step = 1;
    snprintf(settled.place, sizeof settled.place, "dense y[1]");
    expect(&cli_dispute, words, 2, 7,
           "step        1\nnumber      dense y[1]\nquestions   3, opened 4, 5 bytes\nCANNOT: a sentence\n");
    expect(&cli_dispute, words, 3, 7,
           "{\"outcome\":\"cannot\",\"step\":1,\"number\":\"dense y[1]\",\"questions\":3,\"opened\":4,"
           "\"bytes\":5,\"text\":\"a sentence\"}\n");
}

/* The case and the referee, if the dispute came so far. */
static void a_case_is_written(void **state)
{
    static char sentence[] = "a sentence", referee[] = "a case";
    static const char *const words[] = {"a", "b", "-o", "there/case"};
    static const char printed[] = "questions   0, opened 0, 0 bytes\nEQUAL: a sentence\n";
    struct tr_file_content content;
    (void)state;
    settled = (struct tr_dispute_result){.text = sentence};
    expect(&cli_dispute, words, 4, 0, printed);
    assert_false(tr_file_exists("there"));
    settled.referee = referee;
    expect(&cli_dispute, words, 4, 0, printed);
    assert_int_equal(tr_file_read("there/case/case", 64, &content), TR_OK);
    assert_string_equal(content.data, "a case");
    tr_file_content_free(&content);
    assert_int_equal(tr_file_read("there/case/referee.c", 1 << 20, &content), TR_OK);
    assert_non_null(strstr(content.data, "int main("));
    tr_file_content_free(&content);
}

/* A party that repeats steps when a signal arrives ends, too. */
static void a_signal_stops_it(void **state)
{
    static const char *const words[] = {"a", "b"}, *const environment[] = {NULL};
    void *options;
    (void)state;
    assert_int_equal(cli_command_read(&cli_dispute, 2, words, environment, &options), TR_OK);
    const int64_t live = tr_alloc_live();
    signal_meanwhile = SIGINT;
    assert_int_equal(cli_dispute.run(options), TR_EINTERRUPTED);
    signal_meanwhile = 0;
    assert_int_equal(parties, 0);
    assert_int_equal(tr_alloc_live(), live);
    cli_command_release(&cli_dispute, &options);
}

/* Without memory, that is said, also of a case that could not be written. */
static void memory_may_fail_anywhere(void **state)
{
    static char sentence[] = "a sentence", referee[] = "a case";
    static const char *const words[] = {"a", "b", "-o", "there/again", "--json"}, *const environment[] = {
                                                                                      NULL};
    void *options;
    (void)state;
    settled = (struct tr_dispute_result){.outcome = TR_DISPUTE_A, .text = sentence, .referee = referee};
    assert_int_equal(cli_command_read(&cli_dispute, 5, words, environment, &options), TR_OK);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        cli_output_leave_with(0);
        printed_begin();
        refuse_begin(at);
        const tr_status status = cli_dispute.run(options);
        done = refuse_end();
        const char *printed = printed_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(strlen(printed) > 0, done);
        assert_int_equal(cli_output_leave(0), done ? 6 : 0);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(parties, 0);
    }
    cli_output_leave_with(0);
    cli_command_release(&cli_dispute, &options);
}

static void parties_are_named(void **state)
{
    static const char *const cases[][3] = {{NULL}, {"a"}, {"a", "--answer=b"}};
    static const char *const environment[] = {NULL};
    (void)state;
    for (int i = 0; i < 3; i++) {
        void *options;
        assert_int_equal(cli_command_read(&cli_dispute, i, cases[i], environment, &options), TR_OK);
        assert_int_equal(cli_dispute.run(options), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "name two receipts"));
        cli_command_release(&cli_dispute, &options);
        assert_int_equal(parties, 0);
    }
}

static void places_are_told(void **state)
{
    static const struct tr_burn_in_event events[] = {
        {.place = "processor 3", .rounds = 5, .hash = "", .failure = ""},
        {.place = "opencl:0", .rounds = 6, .wrong = 1, .hash = "abc", .failure = ""},
        {.place = "cuda:1", .rounds = 7, .wrong = 1, .hash = "abc", .failure = "no luck"},
    };
    static const char *const words[] = {"--burn-in=1s"};
    (void)state;
    places = events;
    place_count = 1;
    all_good = true;
    expect(&cli_verify, words, 1, 0,
           "processor 3    right in 5 trainings\nVERIFIED: all processors and devices compute rightly\n");
    place_count = 3;
    all_good = false;
    expect(&cli_verify, words, 1, 6,
           "processor 3    right in 5 trainings\n"
           "opencl:0       WRONG in 1 of 6 trainings, first with hash abc\n"
           "cuda:1         FAILED after 7 trainings: no luck\n"
           "DIFFERS: what is named above computes wrongly\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disputes_have_outcomes),   cmocka_unit_test(a_case_is_written),
        cmocka_unit_test(memory_may_fail_anywhere), cmocka_unit_test(a_signal_stops_it),
        cmocka_unit_test(parties_are_named),        cmocka_unit_test(places_are_told),
    };
    return cmocka_run_group_tests_name("cli.outcomes", tests, place_make, place_remove);
}
