/* The lines of a training for people: its head, its steps and evaluations, and its summary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/train/lines.h"
#include "cli/train/summary.h"
#include "trireme/trireme.h"

#include <math.h>

static struct cli_screen screen;
static FILE *file;

static void begin(void)
{
    file = tmpfile();
    assert_non_null(file);
    cli_screen_begin(&screen, file);
}

/* All lines since begin(), in memory of the function. */
static const char *end(void)
{
    static char text[4096];
    cli_screen_end(&screen);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The line that begins with `label`; NULL: there is none. */
static const char *line_of(const char *text, const char *label)
{
    static char line[512];
    char head[16];
    snprintf(head, sizeof head, "%-12s", label);
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        if (strncmp(at, head, 12) != 0) continue;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n") - 12, at + 12);
        return line;
    }
    return NULL;
}

static struct tr_train_info usual(void)
{
    return (struct tr_train_info){.name = "job",
                                  .model = "m.yaml",
                                  .device = "cpu (plain, 1 thread)",
                                  .resumed = "",
                                  .tensorboard = "",
                                  .start = "",
                                  .monitor = "loss",
                                  .best_set = "test",
                                  .seed = 18446744073709551615u,
                                  .parameters = 1234,
                                  .kept = 1234,
                                  .memory = 2048,
                                  .host_memory = 3072,
                                  .free_memory = INT64_MAX,
                                  .host_processes = 1,
                                  .train_examples = 5000,
                                  .batch = 10,
                                  .microbatches = 2,
                                  .steps = 1000,
                                  .steps_per_epoch = 500,
                                  .best_step = -1,
                                  .tokens_per_example = NAN};
}

static void expect(const char *text, const char *label, const char *expected)
{
    const char *line = line_of(text, label);
    if (!expected && line) fail_msg("%s %s", label, line);
    if (expected && !line) fail_msg("no line of %s in %s", label, text);
    if (expected) assert_string_equal(line, expected);
}

static void the_head_has_the_facts(void **state)
{
    struct cli_facts facts = {.out = "runs/x", .info = usual()};
    (void)state;
    begin();
    cli_lines_head(&screen, &facts);
    const char *text = end();
    expect(text, "trireme", tr_version());
    expect(text, "job", "job (m.yaml)");
    expect(text, "device", "cpu (plain, 1 thread)");
    expect(text, "network", "1,234 parameters, 2.0 KiB of memory");
    expect(text, "memory", "3.0 KiB, of an unknown amount");
    expect(text, "data", "5,000 examples, none to test");
    expect(text, "batch", "10 in 2 microbatches");
    expect(text, "steps", "1,000, 500 an epoch (2 epochs)");
    expect(text, "seed", "18446744073709551615");
    expect(text, "output", "runs/x");
    expect(text, "loss", NULL);
    expect(text, "events", NULL);
    expect(text, "resumed", NULL);
    expect(text, "begins with", NULL);
    facts.info.model = "";
    facts.info.kept = 1233;
    facts.info.rank = 3;
    facts.info.host_processes = 2;
    facts.info.data_memory = 1024;
    facts.info.free_memory = 1 << 20;
    facts.info.test_examples = 1;
    facts.info.microbatches = 1;
    facts.info.steps = 500;
    facts.info.label_smoothing = 0.1;
    facts.info.tensorboard = "my events";
    facts.info.resumed = "runs/y/checkpoint-00000007";
    facts.info.step = 7;
    facts.info.start = "one\ntwo\n";
    begin();
    cli_lines_head(&screen, &facts);
    text = end();
    expect(text, "job", "job");
    expect(text, "network", "1,234 parameters, 1,233 of them and 2.0 KiB of memory on process 3");
    expect(text, "memory", "3.0 KiB for 2 processes, data 1.0 KiB, of 1.0 MiB free");
    expect(text, "data", "5,000 examples, 1 to test");
    expect(text, "batch", "10 in 1 microbatch");
    expect(text, "steps", "500, 500 an epoch (1 epoch)");
    expect(text, "loss", "of steps with label smoothing 0.1, of evaluations without");
    expect(text, "events", "my events (tensorboard --logdir 'my events')");
    expect(text, "resumed", "runs/y/checkpoint-00000007, step 7");
    assert_non_null(strstr(text, "\nbegins with one\nbegins with two\n"));
}

static struct tr_train_event event_at(int64_t step, double seconds)
{
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    event.step = step;
    event.steps = 1000;
    event.loss = 1.25;
    event.accuracy = 0.5;
    event.seconds = seconds;
    event.examples_per_second = 99.6;
    event.tokens_per_second = event.perplexity = NAN;
    event.name = "";
    return event;
}

static void steps_have_figures(void **state)
{
    struct cli_facts facts = {.info = usual()};
    struct tr_train_event event = event_at(90, 9);
    (void)state;
    begin();
    cli_line_step(&screen, &facts, &event);
    facts.info.classification = true;
    event.perplexity = 3.5;
    event.tokens_per_second = 1000.4;
    event.seconds = 0; /* nothing is known of the time */
    cli_line_step(&screen, &facts, &event);
    event.step = event.steps;
    event.seconds = 100;
    cli_line_step(&screen, &facts, &event);
    event.step--;
    cli_line_step(&screen, &facts, &event);
    event.step = event.steps + 1; /* more than were ordered */
    cli_line_step(&screen, &facts, &event);
    assert_string_equal(
        end(), "step   90/1000  loss 1.2500  examples/s 100  1 min 31 s left\n"
               "step   90/1000  loss 1.2500  accuracy 0.5000  perplexity 3.5  examples/s 100  tokens/s 1000\n"
               "step 1000/1000  loss 1.2500  accuracy 0.5000  perplexity 3.5  examples/s 100  tokens/s 1000\n"
               "step  999/1000  loss 1.2500  accuracy 0.5000  perplexity 3.5  examples/s 100  tokens/s 1000  "
               "100 ms left\n"
               "step 1001  loss 1.2500  accuracy 0.5000  perplexity 3.5  examples/s 100  tokens/s 1000\n");
}

static void evaluations_name_their_data(void **state)
{
    static const struct tr_metric metric[] = {{"precision", 0.75}, {"f1", 0.625}};
    static const struct tr_metrics metrics = {.metric = metric, .count = 2};
    struct cli_facts facts = {.info = usual()};
    struct tr_train_event event = event_at(9, 1);
    (void)state;
    event.name = "test";
    event.examples = 12345;
    event.metrics = &metrics;
    begin();
    cli_line_evaluation(&screen, &facts, &event);
    facts.info.monitor = "f1";
    event.best = true;
    cli_line_evaluation(&screen, &facts, &event);
    event.metrics = NULL;
    cli_line_evaluation(&screen, &facts, &event);
    event.name = "x/checkpoint-9";
    cli_line_event(&screen, &event, "saved ");
    assert_string_equal(end(),
                        "step    9/1000  loss 1.2500  on test (12,345 examples)\n"
                        "step    9/1000  loss 1.2500  f1 0.6250  on test (12,345 examples), the best so far\n"
                        "step    9/1000  loss 1.2500  on test (12,345 examples), the best so far\n"
                        "step    9/1000  saved x/checkpoint-9\n");
}

/* Of a run without a hash, which had no trainer's figures to ask for. */
static void the_summary_says_what_was_done(void **state)
{
    char word[] = "'runs/a b'", checkpoint[] = "runs/a b/checkpoint-00000020";
    struct cli_facts facts = {.out = "runs/a b", .out_word = word, .info = usual()};
    struct tr_train_info now = usual();
    (void)state;
    facts.info.step = 10;
    facts.last = event_at(11, 2);
    begin();
    cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
    assert_string_equal(end(), "trained     1 step in 2.0 s, 5 examples/s\n"
                               "next        trireme inspect 'runs/a b'\n");
    facts.last = event_at(20, 2);
    facts.test = event_at(20, 2);
    facts.test.examples = 1000;
    facts.checkpoint = checkpoint;
    snprintf(facts.test_name, sizeof facts.test_name, "validation");
    now.tokens_per_example = 3;
    now.best_step = 1500;
    now.best_loss = 0.5;
    begin();
    cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
    assert_string_equal(end(), "validation  loss 1.2500 (1,000 examples)\n"
                               "trained     10 steps in 2.0 s, 50 examples/s, 150 tokens/s\n"
                               "best        step 1,500, loss 0.5000 on test (runs/a b/checkpoint-best)\n"
                               "checkpoint  runs/a b/checkpoint-00000020\n"
                               "next        trireme eval 'runs/a b' --best\n");
    now.tokens_per_example = NAN;
    now.classification = facts.info.classification = true;
    now.best_accuracy = 0.75;
    now.monitor = "f1";
    now.best_monitor = 0.625;
    begin();
    cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
    assert_string_equal(
        end(),
        "validation  accuracy 0.5000, loss 1.2500 (1,000 examples)\n"
        "trained     10 steps in 2.0 s, 50 examples/s\n"
        "best        step 1,500, f1 0.6250, accuracy 0.7500, loss 0.5000 on test (runs/a b/checkpoint-best)\n"
        "checkpoint  runs/a b/checkpoint-00000020\n"
        "next        trireme predict 'runs/a b' --best --set-name validation --index 0,1,2 --show\n");
    facts.test.perplexity = 3.5;
    begin();
    cli_summary(&screen, &facts, NULL, TR_EINTERRUPTED, &now, ""); /* what was evaluated is out of date */
    const char *text = end();
    expect(text, "validation", NULL);
    expect(text, "next", NULL);
    begin();
    cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
    expect(end(), "validation", "perplexity 3.5, accuracy 0.5000, loss 1.2500 (1,000 examples)");
    facts.test.examples = 1;
    now.best_step = 0; /* before the first step */
    begin();
    cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
    text = end();
    assert_non_null(strstr(text, "validation  perplexity 3.5, "));
    expect(text, "next", "trireme predict 'runs/a b' --best --set-name validation --index 0,1,2 --show");
    facts.test.examples = 0;
    now.test_examples = 1;
    now.best_step = -1;
    begin();
    cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
    text = end();
    expect(text, "validation", NULL);
    expect(text, "best", NULL);
    expect(text, "next", "trireme predict 'runs/a b' --set-name test --index 0,1,2 --show");
}

/* A run that was resumed, and has nothing to do. */
static void what_is_done_is_said(void **state)
{
    static const struct {
        int64_t step;
        const char *said;
    } cases[] = {{999, "nothing is left to do: the run ended early, after 999 of 1,000 steps"},
                 {1000, "nothing is left to do: all 1,000 steps were done; --steps takes more"},
                 {1001, "nothing is left to do: 1,001 steps were done, more than the 1,000 asked for"}};
    char word[] = "x";
    struct cli_facts facts = {.out = "x", .out_word = word, .info = usual()};
    struct tr_train_info now = usual();
    (void)state;
    for (int i = 0; i < 3; i++) {
        now.step = cases[i].step;
        for (int resumed = 0; resumed < 2; resumed++) {
            now.resumed = resumed ? "y" : "";
            begin();
            cli_summary(&screen, &facts, NULL, TR_OK, &now, "");
            const char *text = end();
            expect(text, "done", resumed ? cases[i].said : NULL);
            expect(text, "trained", NULL);
            begin();
            cli_summary(&screen, &facts, NULL, TR_EINTERRUPTED, &now, "");
            assert_string_equal(end(), "");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_has_the_facts),      cmocka_unit_test(steps_have_figures),
        cmocka_unit_test(evaluations_name_their_data), cmocka_unit_test(the_summary_says_what_was_done),
        cmocka_unit_test(what_is_done_is_said),
    };
    return cmocka_run_group_tests_name("cli.train_lines", tests, NULL, NULL);
}
