/* The report of a run inside the program: how a stopped run is told, what each event prints, and that refused
 * memory is no wrong message.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "cli/printed.h"
#include "cli/session.h"
#include "cli/train/placement.h"
#include "cli/train/report.h"
#include "refuse.h"
#include "trireme/trireme.h"

static tr_trainer *trainer;

static int stop_after_three(void *user, const struct tr_train_event *event)
{
    (void)user;
    return event->step == 3;
}

static struct cli_report report_as(enum cli_log log, bool quiet)
{
    return (struct cli_report){.trainer = trainer, .out = "a run", .log = log, .quiet = quiet};
}

/* A trainer of tiny.yaml that was stopped after three of its steps. */
static int make_trainer(void **state)
{
    static const char *const set[] = {"train.log_every=1"};
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    if (place_make(state) != 0) return -1;
    settings.model = "tiny.yaml";
    settings.set = set;
    settings.set_count = 1;
    settings.threads = 1;
    settings.out = "a run";
    if (tr_trainer_create(&settings, &trainer) != TR_OK ||
        tr_trainer_run(trainer, stop_after_three, NULL) != TR_EINTERRUPTED)
        return -1;
    struct cli_report report = report_as(CLI_LOG_NONE, true); /* gives it a command, which it keeps */
    if (cli_report_begin(&report) != TR_OK) return -1;
    cli_report_drop(&report);
    return 0;
}

static int remove_trainer(void **state)
{
    tr_trainer_destroy(&trainer);
    return place_remove(state);
}

/* Also when memory runs out on the way there: then that is said, or all of it is. */
static void a_stop_says_how_to_go_on(void **state)
{
    static const char how[] = "stopped after step 3 of 40; `trireme train --resume 'a run'` goes on";
    char broken[sizeof how + 64];
    (void)state;
    snprintf(broken, sizeof broken, "standard output could not be written; %s", how);
    for (int lost = 0; lost < 2; lost++) {
        const int64_t live = tr_alloc_live();
        int refused = 0;
        for (int64_t at = 0, done = 0; !done; at++) {
            struct cli_report report = report_as(CLI_LOG_NONE, true);
            assert_int_equal(cli_report_begin(&report), TR_OK);
            report.broken = lost;
            refuse_begin(at);
            const tr_status status = cli_report_end(&report, TR_EINTERRUPTED);
            done = refuse_end();
            refused += status == TR_ENOMEM;
            if (done || status != TR_ENOMEM) {
                assert_int_equal(status, lost ? TR_EIO : TR_EINTERRUPTED);
                assert_string_equal(tr_error_message(), lost ? broken : how);
            }
        }
        assert_true(refused > 0);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void a_run_without_a_hash_has_not_ended_well(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    int refused = 0;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_report report = report_as(CLI_LOG_NONE, true);
        assert_int_equal(cli_report_begin(&report), TR_OK);
        refuse_begin(at);
        const tr_status status = cli_report_end(&report, TR_OK);
        done = refuse_end();
        if (done) assert_int_equal(status, TR_OK);
        assert_true(status == TR_OK || status == TR_ENOMEM);
        refused += status == TR_ENOMEM;
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(refused > 0);
}

static void without_memory_nothing_begins(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_report report = report_as(CLI_LOG_NONE, true);
        refuse_begin(at);
        const tr_status status = cli_report_begin(&report);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_true((report.facts.out_word != NULL) == (status == TR_OK));
        if (done) cli_report_drop(&report);
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        printed_begin();
        refuse_begin(at);
        const tr_status status = cli_placement_print(trainer, false);
        done = refuse_end();
        const char *text = printed_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_non_null(strstr(text, "allreduce strategy, 1 process\n"));
        if (!done) assert_string_equal(text, "");
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void events_have_lines(void **state)
{
    static const struct {
        int kind;
        const char *text, *json;
    } cases[] = {
        {TR_EVENT_STEP, "step  4/40  loss 0.5000  accuracy 0.2500  examples/s 8", "step"},
        {TR_EVENT_PROGRESS, NULL, NULL},
        {TR_EVENT_EVALUATION, "step  4/40  loss 0.5000  accuracy 0.2500  on x (7 examples)", "evaluation"},
        {TR_EVENT_CHECKPOINT, "step  4/40  saved x", "checkpoint"},
        {TR_EVENT_SHARES, "step  4/40  x", "shares"},
        {TR_EVENT_END, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int way = 0; way < 4; way++) {
            const enum cli_log log = way < 2 ? CLI_LOG_TEXT : way == 2 ? CLI_LOG_NONE : CLI_LOG_JSON;
            struct cli_report report = report_as(log, way == 1);
            struct tr_train_event event = TR_TRAIN_EVENT_INIT;
            event.kind = cases[i].kind;
            event.name = event.hash = "x";
            event.step = 4;
            event.steps = 40;
            event.loss = 0.5;
            event.accuracy = 0.25;
            event.examples = 7;
            event.examples_per_second = 8;
            event.perplexity = event.tokens_per_second = NAN;
            report.later = true; /* no head */
            printed_begin();
            assert_int_equal(cli_report_begin(&report), TR_OK);
            cli_report_event(&report, &event);
            cli_report_drop(&report);
            const char *text = printed_end();
            char line[256] = "";
            if (way == 0 && cases[i].text) snprintf(line, sizeof line, "%s\n", cases[i].text);
            if (way == 3 && cases[i].json) snprintf(line, sizeof line, "{\"event\":\"%s\",", cases[i].json);
            if (strncmp(text, line, strlen(line)) != 0 || (way < 3 && strcmp(text, line) != 0) ||
                (!*line && *text))
                fail_msg("event %d as %d: %s", cases[i].kind, way, text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_says_how_to_go_on),
        cmocka_unit_test(a_run_without_a_hash_has_not_ended_well),
        cmocka_unit_test(without_memory_nothing_begins),
        cmocka_unit_test(events_have_lines),
    };
    return cmocka_run_group_tests_name("cli.report", tests, make_trainer, remove_trainer);
}
