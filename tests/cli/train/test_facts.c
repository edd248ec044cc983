/* Speed and remaining time of a run, from its reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/train/facts.h"

static struct tr_train_event at(int64_t step, double seconds)
{
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    event.kind = TR_EVENT_STEP;
    event.step = step;
    event.steps = 20;
    event.seconds = seconds;
    return event;
}

/* Epochs of three batches of four have 12 examples, but for one that is smaller, or what is dropped. */
static void speed_counts_examples(void **state)
{
    static const struct {
        int64_t train_examples, begun, step;
        double seconds, speed;
    } cases[] = {
        {10, 0, 2, 2, 4}, {10, 0, 3, 2, 5}, {10, 0, 4, 2, 7}, {10, 0, 6, 2, 10}, {14, 0, 3, 2, 6},
        {14, 0, 4, 2, 8}, {10, 2, 4, 2, 3}, {10, 3, 3, 2, 0}, {10, 0, 2, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_facts facts = {.info = {.steps_per_epoch = 3,
                                           .batch = 4,
                                           .train_examples = cases[i].train_examples,
                                           .step = cases[i].begun}};
        const struct tr_train_event event = at(cases[i].step, cases[i].seconds);
        cli_facts_take(&facts, &event);
        if (cli_facts_speed(&facts) != cases[i].speed)
            fail_msg("case %d: %g", (int)i, cli_facts_speed(&facts));
    }
}

/* By the steps after the first report, which found memory and caches cold; a single step tells only if it is
   long. Of 20 steps. */
static void remaining_time_leaves_out_the_beginning(void **state)
{
    static const struct {
        int64_t begun, first, step;
        double first_seconds, seconds, left;
    } cases[] = {
        {0, 0, 0, 0, 0, -1},        {0, 1, 1, 0.9, 0.9, -1},     {0, 1, 1, 2, 2, 38},
        {0, 2, 2, 0.5, 0.5, 4.5},   {0, 1, 5, 2, 4, 7.5},        {0, 1, 5, 4, 4, 12},
        {10, 11, 11, 0.5, 0.5, -1}, {10, 11, 13, 0.5, 1.5, 3.5}, {0, 1, 20, 1, 3, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_facts facts = {.info = {.step = cases[i].begun}};
        const struct tr_train_event first = at(cases[i].first, cases[i].first_seconds),
                                    event = at(cases[i].step, cases[i].seconds);
        cli_facts_take(&facts, &first);
        cli_facts_take(&facts, &event); /* the first one stays */
        const double left = cli_facts_seconds_left(&facts, &event);
        if (!(left - cases[i].left < 1e-9 && cases[i].left - left < 1e-9))
            fail_msg("case %d: %g", (int)i, left);
    }
}

/* Of steps the first and the last report stay, of evaluations and checkpoints the last; other reports change
   nothing. */
static void reports_are_kept_by_kind(void **state)
{
    static const enum tr_train_event_kind others[] = {TR_EVENT_CHECKPOINT, TR_EVENT_EVALUATION};
    struct cli_facts facts = {.out = "x"};
    struct tr_train_event event = at(3, 1);
    (void)state;
    cli_facts_take(&facts, &event);
    event.kind = TR_EVENT_PROGRESS;
    event.step = 4;
    cli_facts_take(&facts, &event);
    for (int i = 0; i < 4; i++) {
        event.kind = others[i % 2];
        event.step = 5 + i;
        event.name = i < 2 ? "first" : "second";
        cli_facts_take(&facts, &event);
        assert_string_equal(i % 2 ? facts.test_name : facts.checkpoint, event.name);
    }
    assert_int_equal(facts.first.step, 3);
    assert_int_equal(facts.last.step, 4);
    assert_int_equal(facts.test.step, 8);
    cli_facts_release(&facts);
    assert_null(facts.checkpoint);
}

/* What was said of the loss, of accuracy and of perplexity is not said twice. */
static void other_measures_are_told_of(void **state)
{
    static const char *const told[] = {"loss", "accuracy", "perplexity", "f1", ""};
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(cli_facts_monitors(&(struct tr_train_info){.monitor = told[i]}), i > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed_counts_examples),
        cmocka_unit_test(reports_are_kept_by_kind),
        cmocka_unit_test(other_measures_are_told_of),
        cmocka_unit_test(remaining_time_leaves_out_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
