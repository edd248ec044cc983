/* What the parts of a trainer promise, each by itself: what a run knows of its evaluations, what was told,
 * the output directory, and what a trainer began with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "scratch.h"
#include "train/parts/best.h"
#include "train/parts/directory.h"
#include "train/parts/reported.h"
#include "train/observe/journal.h"
#include "train/setup/beginning.h"

#include <math.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

/* ---- best ---- */

static struct tr_train_event evaluation(int64_t step, double loss, double accuracy)
{
    return (struct tr_train_event){
        .kind = TR_EVENT_EVALUATION, .step = step, .loss = loss, .accuracy = accuracy, .name = "test"};
}

static void a_run_waits_for_a_lower_loss(void **state)
{
    (void)state;
    const struct tr_train_options train = {.patience = 2};
    const double losses[] = {0.5, 0.5, 0.4, 0.6, NAN};
    const int64_t worse[] = {0, 1, 0, 1, 2};
    struct trainer_best best;
    trainer_best_begin(&best, NULL);
    for (int i = 0; i < 5; i++) {
        assert_false(trainer_best_ends_early(&best, &train));
        const struct tr_train_event event = evaluation(i + 1, losses[i], 0);
        trainer_best_evaluated(&best, &event);
        assert_int_equal(best.worse_evaluations, worse[i]);
    }
    assert_true(best.least_cost == 0.4);
    assert_true(trainer_best_ends_early(&best, &train));
    assert_false(trainer_best_ends_early(&best, &(struct tr_train_options){.patience = 0}));
}

static void a_run_ends_at_an_accuracy(void **state)
{
    (void)state;
    const struct tr_train_options train = {.until_accuracy = 0.9};
    struct trainer_best best;
    trainer_best_begin(&best, NULL);
    struct tr_train_event event = evaluation(1, 1, 0.89);
    trainer_best_evaluated(&best, &event);
    assert_false(trainer_best_ends_early(&best, &train));
    event.accuracy = 0.9;
    trainer_best_evaluated(&best, &event);
    assert_true(trainer_best_ends_early(&best, &train));
}

static void the_best_is_by_what_the_run_waits_for(void **state)
{
    (void)state;
    const struct tr_train_options none = {0}, loss = {.patience = 1}, accuracy = {.until_accuracy = 0.9};
    const struct tr_train_event first = evaluation(10, 0.5, 0.8);
    const struct {
        double loss, accuracy;
        bool by_loss, by_accuracy;
    } cases[] = {
        {0.5, 0.8, false, false}, /* the earlier one of equals */
        {0.4, 0.7, true, false},  {0.6, 0.81, false, true}, {0.4, 0.8, true, true}, {NAN, 0.99, false, false},
    };
    struct trainer_best best;
    trainer_best_begin(&best, NULL);
    assert_false(trainer_best_is_better(&best, &none, &first));
    assert_true(trainer_best_is_better(&best, &loss, &first));
    trainer_best_keep(&best, &first);
    assert_int_equal(best.kept.step, 10);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_train_event next = evaluation(20, cases[i].loss, cases[i].accuracy);
        assert_int_equal(trainer_best_is_better(&best, &loss, &next), cases[i].by_loss);
        assert_int_equal(trainer_best_is_better(&best, &accuracy, &next), cases[i].by_accuracy);
    }
    trainer_best_forget(&best);
    assert_true(trainer_best_is_better(&best, &loss, &first));
}

static void checkpoints_keep_what_the_run_knows(void **state)
{
    (void)state;
    const struct tr_checkpoint_metric nonsense[] = {{"best_loss", NAN},         {"worse_evaluations", -1},
                                                    {"worse_evaluations", NAN}, {"last_accuracy", NAN},
                                                    {"best_step", 0x1p60},      {"no such figure", 7}};
    const struct tr_train_event event = evaluation(30, 0.25, 0.75);
    struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS];
    struct trainer_best before, after;
    trainer_best_begin(&before, NULL);
    trainer_best_evaluated(&before, &event);
    trainer_best_keep(&before, &event);
    before.worse_evaluations = 3;
    char names[2][TRAINER_BEST_NAME];
    int64_t count = trainer_best_write(&before, metrics, names);
    assert_int_equal(count, 6); /* as there always were */
    assert_string_equal(metrics[0].name, "best_loss");
    trainer_best_begin(&after, NULL);
    for (int64_t i = 0; i < count; i++) trainer_best_read(&after, &metrics[i]);
    assert_true(after.least_cost == 0.25 && after.last_accuracy == 0.75);
    assert_int_equal(after.worse_evaluations, 3);
    assert_int_equal(after.kept.step, 30);
    assert_true(after.kept.loss == 0.25 && after.kept.accuracy == 0.75);
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) trainer_best_read(&after, &nonsense[i]);
    assert_true(isinf(after.least_cost) && after.last_accuracy == 0.75);
    assert_int_equal(after.worse_evaluations, 3);
    assert_int_equal(after.kept.step, 30);
}

/* An evaluation with one metric. */
static struct tr_train_event measured(int64_t step, double loss, const char *name, double value)
{
    static struct tr_metric metric[8];
    static struct tr_metrics metrics[8];
    static int next;
    int i = next++ % 8;
    struct tr_train_event event = evaluation(step, loss, 0.5);
    metric[i] = (struct tr_metric){name, value};
    metrics[i] = (struct tr_metrics){.count = 1, .metric = &metric[i]};
    event.metrics = &metrics[i];
    return event;
}

/* By a figure that rises and one that falls, whatever the loss says; ties go to the lower loss. */
static void a_run_is_judged_by_its_monitor(void **state)
{
    (void)state;
    static const struct {
        const char *monitor, *metric;
        double values[4]; /* worse than the one before or better: b w b w */
    } cases[] = {{"macro_f1", "f1", {0.4, 0.3, 0.6, NAN}},
                 {"r2", "r2", {-3, -4, 0.1, 0}},
                 {"rmse", "rmse", {5, 6, 4, 4.5}},
                 {"mae_1", "mae_1", {5, 6, 4, 4.5}},
                 {"accuracy_0", "accuracy_0", {0.5, 0.25, 0.75, 0}}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char monitor[16];
        strcpy(monitor, cases[c].monitor);
        const struct tr_train_options train = {.patience = 2, .monitor = monitor};
        struct trainer_best best;
        trainer_best_begin(&best, monitor);
        for (int i = 0; i < 4; i++) {
            const struct tr_train_event event =
                measured(i + 1, 1.0 / (1 + i), cases[c].metric, cases[c].values[i]);
            trainer_best_evaluated(&best, &event);
            assert_int_equal(best.worse_evaluations, i % 2);
            assert_int_equal(trainer_best_is_better(&best, &train, &event), i % 2 == 0);
            if (i % 2 == 0) trainer_best_keep(&best, &event);
        }
        assert_true(best.kept.figure == cases[c].values[2]);
        const struct tr_train_event same = measured(9, 0.01, cases[c].metric, cases[c].values[2]),
                                    worse = measured(9, 0.9, cases[c].metric, cases[c].values[2]);
        assert_true(trainer_best_is_better(&best, &train, &same));
        assert_false(trainer_best_is_better(&best, &train, &worse));
    }
}

/* A run that goes on with another monitor does not take the figures of the one before. */
static void checkpoints_keep_the_monitor_apart(void **state)
{
    (void)state;
    const struct tr_train_event event = measured(30, 0.25, "f1", 0.75);
    struct tr_checkpoint_metric metrics[TRAINER_BEST_METRICS];
    char names[2][TRAINER_BEST_NAME];
    struct trainer_best before, same, other;
    trainer_best_begin(&before, "f1");
    trainer_best_evaluated(&before, &event);
    trainer_best_keep(&before, &event);
    int64_t count = trainer_best_write(&before, metrics, names);
    trainer_best_begin(&same, "macro_f1");
    trainer_best_begin(&other, "recall");
    for (int64_t i = 0; i < count; i++) {
        trainer_best_read(&same, &metrics[i]);
        trainer_best_read(&other, &metrics[i]);
    }
    assert_true(same.least_cost == -0.75 && same.kept.figure == 0.75);
    assert_true(isinf(other.least_cost) && isnan(other.kept.figure));
    assert_int_equal(other.kept.step, 30);
    const struct tr_train_event next = measured(40, 0.9, "recall", 0.1);
    assert_true(
        trainer_best_is_better(&other, &(struct tr_train_options){.monitor = (char[]){"recall"}}, &next));
}

/* ---- told ---- */

static struct tr_train_event event_of(enum tr_train_event_kind kind, int64_t step, const char *name)
{
    return (struct tr_train_event){.kind = kind, .step = step, .name = name};
}

static void nothing_is_told_twice(void **state)
{
    (void)state;
    const struct tr_train_event step = event_of(TR_EVENT_STEP, 4, ""),
                                test = event_of(TR_EVENT_EVALUATION, 4, "test"),
                                validation = event_of(TR_EVENT_EVALUATION, 4, "validation"),
                                saved = event_of(TR_EVENT_CHECKPOINT, 4, "runs/a/step-4"),
                                progress = event_of(TR_EVENT_PROGRESS, 4, ""),
                                next = event_of(TR_EVENT_STEP, 5, "");
    struct trainer_reported told;
    trainer_reported_begin(&told);
    assert_int_equal(told.saved, -1);
    assert_true(trainer_reported_is_news(&told, &step));
    assert_false(trainer_reported_is_news(&told, &step));
    assert_true(trainer_reported_is_news(&told, &test));
    assert_true(trainer_reported_is_news(&told, &validation));
    assert_false(trainer_reported_is_news(&told, &test));
    assert_true(trainer_reported_is_news(&told, &saved));
    assert_int_equal(told.saved, 4);
    for (int i = 0; i < 2; i++) assert_true(trainer_reported_is_news(&told, &progress));
    assert_true(trainer_reported_is_news(&told, &next));
    assert_false(trainer_reported_is_news(&told, &next));
    assert_int_equal(told.saved, 4);
    trainer_reported_release(&told);
}

/* Lines that were cut, and a run before, count for nothing. */
static void a_journal_says_what_was_told(void **state)
{
    (void)state;
    static const char journal[] = "alf of a line\"}\n"
                                  "{\"event\": \"checkpoint\", \"step\": 9, \"path\": \"old\"}\n"
                                  "{\"event\": \"start\"}\n"
                                  "{\"event\": \"step\", \"step\": 2}\n"
                                  "{\"event\": \"checkpoint\", \"step\": 2, \"path\": \"new\"}\n"
                                  "{\"event\": \"evaluation\", \"step\": 2, \"set\": \"test\"}\n"
                                  "{\"event\": \"evaluation\", \"step\": 2, \"set\": \"valid";
    const struct tr_train_event step = event_of(TR_EVENT_STEP, 2, ""),
                                test = event_of(TR_EVENT_EVALUATION, 2, "test"),
                                validation = event_of(TR_EVENT_EVALUATION, 2, "validation");
    char place[SCRATCH_PATH], path[SCRATCH_PATH], *checkpoint = NULL;
    struct trainer_reported told;
    scratch_make(place);
    must(tr_file_write_atomic(NULL, scratch_join(path, place, TR_JOURNAL_FILE), journal, sizeof journal - 1));
    trainer_reported_begin(&told);
    trainer_reported_learn(&told, NULL, &checkpoint);
    trainer_reported_learn(&told, path, &checkpoint); /* no directory */
    assert_int_equal(told.step, -1);
    assert_null(checkpoint);
    trainer_reported_learn(&told, place, &checkpoint);
    assert_int_equal(told.step, 2);
    assert_int_equal(told.saved, 2);
    assert_string_equal(checkpoint, "new");
    assert_false(trainer_reported_is_news(&told, &step));
    assert_false(trainer_reported_is_news(&told, &test));
    assert_true(trainer_reported_is_news(&told, &validation));
    trainer_reported_release(&told);
    tr_free(checkpoint);
    /* It closes what it opens: the next file gets the same number. */
    const int before = open(place, O_RDONLY | O_CLOEXEC);
    close(before);
    checkpoint = NULL;
    trainer_reported_begin(&told);
    trainer_reported_learn(&told, place, &checkpoint);
    trainer_reported_release(&told);
    tr_free(checkpoint);
    const int after = open(place, O_RDONLY | O_CLOEXEC);
    close(after);
    assert_int_equal(after, before);
    scratch_remove(place);
}

/* ---- output directory ---- */

static void a_directory_has_one_owner(void **state)
{
    (void)state;
    char place[SCRATCH_PATH], path[SCRATCH_PATH];
    struct trainer_directory one, two;
    scratch_make(place);
    scratch_join(path, place, "a/run");
    trainer_directory_begin(&one);
    trainer_directory_begin(&two);
    assert_false(trainer_directory_lacks(&one, 7)); /* there is none to save to */
    one.path = tr_strdup(path);
    two.path = tr_strdup(path);
    assert_true(one.path && two.path);
    must(trainer_directory_take(&one));
    assert_true(one.lock >= 0 && tr_file_is_directory(path));
    assert_int_equal(trainer_directory_take(&two), TR_EIO);
    assert_true(two.lock < 0);
    assert_true(trainer_directory_lacks(&one, 7));
    one.saved_step = 7;
    assert_false(trainer_directory_lacks(&one, 7));
    assert_true(trainer_directory_lacks(&one, 8));
    trainer_directory_release(&one);
    assert_true(!one.path && one.lock < 0 && tr_file_is_directory(path));
    must(trainer_directory_take_over(&two));
    trainer_directory_release(&two);
    scratch_remove(place);
}

/* ---- what it began with ---- */

static void notes_are_lines_one_behind_the_other(void **state)
{
    (void)state;
    struct trainer_beginning beginning;
    trainer_beginning_begin(&beginning);
    assert_int_equal(beginning.step, -1);
    must(trainer_beginning_add_note(&beginning, "one"));
    must(trainer_beginning_add_note(&beginning, "two"));
    assert_string_equal(beginning.resume_warnings, "one\ntwo\n");
    trainer_beginning_release(&beginning);
    assert_null(beginning.resume_warnings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_waits_for_a_lower_loss),
        cmocka_unit_test(a_run_ends_at_an_accuracy),
        cmocka_unit_test(the_best_is_by_what_the_run_waits_for),
        cmocka_unit_test(checkpoints_keep_what_the_run_knows),
        cmocka_unit_test(a_run_is_judged_by_its_monitor),
        cmocka_unit_test(checkpoints_keep_the_monitor_apart),
        cmocka_unit_test(nothing_is_told_twice),
        cmocka_unit_test(a_journal_says_what_was_told),
        cmocka_unit_test(a_directory_has_one_owner),
        cmocka_unit_test(notes_are_lines_one_behind_the_other),
    };
    return cmocka_run_group_tests_name("train.parts", tests, NULL, NULL);
}
