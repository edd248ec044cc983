/* Synchronous jobs that go on without ranks that died, in the middle of a step, of an update, of an
 * evaluation: always to the hash of one process. On threads, and on processes that share memory and are
 * really gone. */
#include "strategy/all_reduce/shrink.h"

#include "train/observe/journal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Every kind of network and update, with a death in forward and one in the middle of an update. */
static void all_families(int size, int victim)
{
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome alone;
        shrink_begin(&job, &families[f], &alone);
        for (int torn = 0; torn < 2; torn++) {
            char how[120];
            struct plan plan = {.blow = {{torn ? AT_UPDATE : AT_LAYER, victim, 3, 0, 0}}};
            snprintf(how, sizeof how, "%s, %s of rank %d", families[f].name, torn ? "an update" : "a layer",
                     victim);
            shrink_expect(&job, &alone, &plan, size, how);
        }
    }
}

static void threads_go_on(void **state)
{
    (void)state;
    all_families(2, 1);
    all_families(2, 0);
}

static void processes_go_on(void **state)
{
    (void)state;
    ranks_become(RANKS_ARE_PROCESSES);
    all_families(3, 2);
    all_families(3, 0);
    ranks_become(RANKS_ARE_THREADS);
}

/* In the first step and the last, at the first and at later layers and updates, by any rank. */
static void every_place_will_do(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    shrink_begin(&job, &families[0], &alone);
    job.settings.strategy = "allreduce,bucket=0.002,factors=never"; /* several updates a step */
    for (int64_t step = 0; step < STEPS; step += STEPS - 1)
        for (int victim = 0; victim < 4; victim++)
            for (int nth = 0; nth < 3; nth++)
                for (int torn = 0; torn < 2; torn++) {
                    char how[120];
                    struct plan plan = {.blow = {{torn ? AT_UPDATE : AT_LAYER, victim, step, nth, 0}}};
                    snprintf(how, sizeof how, "step %d, rank %d, %s %d", (int)step, victim,
                             torn ? "update" : "layer", nth);
                    shrink_expect(&job, &alone, &plan, 4, how);
                }
}

/* Between steps: when the root tells of a step, an evaluation, a checkpoint, or the end, the others are near
   it or ahead. With a schedule that follows evaluations, which count once. */
static void between_steps_too(void **state)
{
    (void)state;
    static const enum tr_train_event_kind kinds[] = {TR_EVENT_STEP, TR_EVENT_EVALUATION, TR_EVENT_CHECKPOINT};
    char out[SCRATCH_PATH + 16];
    struct job job;
    struct outcome alone;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=5");
    job_set(&job, "train.evaluate_every=1");
    job_set(&job, "train.checkpoint_every=2");
    job_set(&job, "train.log_every=1");
    job_set(&job, "optimizer={rule: momentum, rate: 0.5, schedule: {kind: plateau, patience: 1}}");
    job.settings.set = job.set;
    job.settings.steps = STEPS;
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    snprintf(out, sizeof out, "%s/between", family_place);
    job.settings.out = out;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int64_t step = 1; step < STEPS; step++) {
            char how[120];
            struct plan plan = {.blow = {{AT_EVENT, (int)step % 4, step, 0, kinds[k]}}};
            snprintf(how, sizeof how, "event %d at step %d", (int)kinds[k], (int)step);
            shrink_expect(&job, &alone, &plan, 4, how);
        }
}

/* One after another, and two at a time, until one is left. */
static void several_may_die(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    shrink_begin(&job, &families[family_count - 1], &alone);
    job_set(&job, "train.log_every=1");
    struct plan apart = {.blow = {{AT_UPDATE, 2, 1, 0, 0},
                                  {AT_EVENT, 3, 3, 0, TR_EVENT_STEP},
                                  {AT_EVENT, 1, 5, 0, TR_EVENT_STEP}}};
    shrink_expect(&job, &alone, &apart, 4, "one after another");
    struct plan together = {.blow = {{AT_LAYER, 2, 2, 2, 0}, {AT_LAYER, 1, 2, 0, 0}, {AT_LAYER, 4, 2, 1, 0}}};
    shrink_expect(&job, &alone, &together, 5, "together");
    struct plan hurried = {.blow = {{AT_UPDATE, 2, 2, 0, 0}, {AT_EVENT, 1, 2, 0, TR_EVENT_WARNING}}};
    shrink_expect(&job, &alone, &hurried, 4, "once the loss of another was told");
    struct plan roots = {.blow = {{AT_LAYER, 0, 2, 1, 0},
                                  {AT_EVENT, 1, 3, 0, TR_EVENT_STEP},
                                  {AT_EVENT, 2, 5, 0, TR_EVENT_STEP}}};
    shrink_expect(&job, &alone, &roots, 4, "one root after another");
    struct plan first_two = {.blow = {{AT_UPDATE, 0, 2, 0, 0}, {AT_UPDATE, 1, 2, 0, 0}}};
    shrink_expect(&job, &alone, &first_two, 4, "the root and the next one");
}

/* ---- shares ---- */

/* Speeds that were given are those of the ranks that live; measured ones are measured anew. */
static void shares_are_cut_anew(void **state)
{
    (void)state;
    static const struct {
        const char *shares, *slow, *told;
        int victim;
    } runs[] = {
        {"1,2,1,3", NULL, "ranks 0 to 2 compute 1, 2, 4 of 7 microbatches", 2},
        {"4,2,1,4", NULL, "ranks 0 to 2 compute 2, 1, 4 of 7 microbatches", 0},
        {"auto", "1:60", "ranks 0 to 2 compute ", 3},
        {"auto", "1:60", "ranks 0 to 2 compute ", 0},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char how[80], told[SHARES];
        struct job job;
        struct outcome alone;
        struct plan plan = {.blow = {{AT_LAYER, runs[i].victim, 2, 0, 0}}};
        shrink_begin(&job, &families[0], &alone);
        job_set(&job, "train.microbatches=7");
        job.settings.steps = 2 + STEPS;
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        job.settings.shares = runs[i].shares;
        job.settings.slow = runs[i].slow;
        snprintf(how, sizeof how, "shares %s, rank %d dies", runs[i].shares, runs[i].victim);
        shrink_expect_of(&job, &alone, &plan, 4, 0, how, told);
        if (strncmp(told, runs[i].told, strlen(runs[i].told)) != 0) fail_msg("%s: \"%s\"", how, told);
    }
}

/* ---- what is told ---- */

/* Lines of a journal about what comes after steps: "step 3", "evaluation test 3". */
static void list_told(const char *directory, char *out, size_t size)
{
    struct tr_file_content content;
    char *path = tr_path_join(directory, TR_JOURNAL_FILE);
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    out[0] = '\0';
    for (char *at = content.data, *end; (end = strchr(at, '\n')); at = end + 1) {
        tr_json *line;
        assert_int_equal(tr_json_parse(at, (size_t)(end - at), path, &line), TR_OK);
        const char *event = tr_json_text_or_empty(tr_json_root(line), "event");
        size_t length = strlen(out);
        if (strcmp(event, "start") != 0 && strcmp(event, "end") != 0 && strcmp(event, "warning") != 0)
            snprintf(out + length, size - length, "%s%s %lld %.17g\n", event,
                     tr_json_text_or_empty(tr_json_root(line), "set"),
                     (long long)tr_json_integer_or(tr_json_root(line), "step", -1),
                     tr_json_number_or_nan(tr_json_root(line), "loss"));
        tr_json_destroy(&line);
    }
    assert_true(strlen(out) + 1 < size);
    tr_file_content_free(&content);
    tr_free(path);
}

/* The journal of a run whose root dies at an event, or in a step, has the lines of an undisturbed one, each
   once; and the run ends with a line of its own. */
static void each_line_is_told_once(void **state)
{
    (void)state;
    static const struct blow blows[] = {
        {AT_EVENT, 0, 1, 0, TR_EVENT_STEP},
        {AT_EVENT, 0, 3, 0, TR_EVENT_EVALUATION},
        {AT_EVENT, 0, 4, 0, TR_EVENT_CHECKPOINT},
        {AT_EVENT, 0, STEPS, 0, TR_EVENT_EVALUATION},
        {AT_EVENT, 0, STEPS, 0, TR_EVENT_END},
        {AT_UPDATE, 0, 4, 0, 0},
        {AT_LAYER, 0, 0, 0, 0},
        {AT_UPDATE, 1, 2, 0, 0},
    };
    static char expected[4096], told[4096];
    char out[SCRATCH_PATH + 24];
    struct job job;
    struct outcome alone;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=5");
    job_set(&job, "train.evaluate_every=1");
    job_set(&job, "train.checkpoint_every=2");
    job_set(&job, "train.log_every=1");
    job.settings.set = job.set;
    job.settings.steps = STEPS;
    snprintf(out, sizeof out, "%s/told-alone", family_place);
    job.settings.out = out;
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    list_told(out, expected, sizeof expected);
    ranks_become(RANKS_ARE_PROCESSES);
    for (size_t i = 0; i < sizeof blows / sizeof blows[0]; i++) {
        char how[80];
        struct plan plan = {.blow = {blows[i]}};
        snprintf(out, sizeof out, "%s/told-%zu", family_place, i);
        snprintf(how, sizeof how, "journal, blow %zu", i);
        shrink_expect(&job, &alone, &plan, 3, how);
        list_told(out, told, sizeof told);
        if (strcmp(told, expected) != 0) fail_msg("%s:\n%sexpected is\n%s", how, told, expected);
    }
    ranks_become(RANKS_ARE_THREADS);
}

/* ---- where it cannot be ---- */

static void refuse(const char *strategy, int apart, const char *word)
{
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    job.settings.steps = 4;
    job.settings.strategy = strategy;
    job.settings.outlives = true;
    run_ranks(&job.settings, 3, apart, ranks);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(ranks[r].outcome.status, TR_EUNSUPPORTED);
        if (!strstr(ranks[r].outcome.message, word)) fail_msg("%s: %s", strategy, ranks[r].outcome.message);
    }
}

static void who_cannot_says_so(void **state)
{
    (void)state;
    refuse("pipeline,stages=3", 0, "pipeline");
    refuse("parameter-server", 0, "parameter-server");
    refuse("local-sgd,replicas=3", 0, "local-sgd");
    refuse("allreduce", 1, "replicas_of_state");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_go_on),          cmocka_unit_test(processes_go_on),
        cmocka_unit_test(every_place_will_do),    cmocka_unit_test(between_steps_too),
        cmocka_unit_test(several_may_die),        cmocka_unit_test(who_cannot_says_so),
        cmocka_unit_test(each_line_is_told_once), cmocka_unit_test(shares_are_cut_anew),
    };
    return cmocka_run_group_tests_name("strategy.shrink", tests, family_place_make, family_place_remove);
}
