/* Traces and profiles: what they contain, that they change no bit, and that they survive early ends. */
#include "support/ranks.h"

#include "base/files/file.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

/* The events of a trace file; a reference that the caller drops with its root. */
static json_t *events_of(const char *path, json_t **root)
{
    json_error_t error;
    *root = json_load_file(path, 0, &error);
    if (!*root) fail_msg("%s: %s in line %d", path, error.text, error.line);
    json_t *events = json_object_get(*root, "traceEvents");
    assert_true(json_is_array(events));
    return events;
}

static double number_of(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* The number of events of a category in a process, whose nesting is checked on the way. */
static int count_events(const json_t *events, int rank, const char *category)
{
    int count = 0;
    double ended = -INFINITY;
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        const json_t *kind = json_object_get(event, "cat");
        if (!kind || (int)number_of(event, "pid") != rank || number_of(event, "tid") > 0) continue;
        double end = number_of(event, "ts") + number_of(event, "dur");
        assert_true(number_of(event, "dur") >= 0);
        /* Within a lane spans are in the order of their ends. */
        assert_true(end >= ended - 0.01);
        ended = end;
        if (strcmp(json_string_value(kind), category) == 0) count++;
    }
    return count;
}

static void a_trace_of_one_process(void **state)
{
    (void)state;
    struct job job;
    struct outcome plain, traced;
    char path[SCRATCH_PATH + 16];
    snprintf(path, sizeof path, "%s/one.json", family_place);
    family_job(&job, &families[0], family_place);
    job.settings.steps = 5;
    job_outcome(&job, &plain);
    job.settings.trace = path;
    job.settings.trace_first = 1;
    job.settings.trace_steps = 3;
    job_outcome(&job, &traced);
    assert_int_equal(traced.status, TR_OK);
    assert_string_equal(plain.hash, traced.hash);
    json_t *root, *events = events_of(path, &root);
    assert_int_equal(count_events(events, 0, "step"), 3);
    assert_true(count_events(events, 0, "forward") > 3);
    assert_true(count_events(events, 0, "backward") > 3);
    assert_true(count_events(events, 0, "input") >= 3);
    assert_true(count_events(events, 0, "update") >= 3);
    json_decref(root);
}

static void a_trace_of_three_ranks(void **state)
{
    (void)state;
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    char path[SCRATCH_PATH + 16];
    snprintf(path, sizeof path, "%s/three.json", family_place);
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job_outcome(&job, &alone);
    job.settings.trace = path;
    /* Apart, as if each had a host of its own: clocks are compared. */
    run_ranks(&job.settings, 3, true, ranks);
    expect_ranks(&alone, ranks, 3, "with a trace");
    json_t *root, *events = events_of(path, &root);
    for (int r = 0; r < 3; r++) {
        assert_true(count_events(events, r, "forward") > 0);
        assert_true(count_events(events, r, "communication") > 0);
    }
    json_decref(root);
}

static void a_run_that_fails_leaves_a_trace(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char path[SCRATCH_PATH + 16];
    snprintf(path, sizeof path, "%s/failed.json", family_place);
    family_job(&job, &families[0], family_place);
    job_set(&job, "optimizer.rate=1e30");
    job.settings.trace = path;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_ENONFINITE);
    assert_non_null(strstr(outcome.message, "not finite"));
    json_t *root, *events = events_of(path, &root);
    assert_true(count_events(events, 0, "forward") > 0);
    json_decref(root);
}

/* The least and the largest step of a rank's events in its main lane; counts them. */
static int step_range(const json_t *events, int rank, int *least, int *most)
{
    int count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        const json_t *step = json_object_get(json_object_get(event, "args"), "step");
        if (!step || (int)number_of(event, "pid") != rank || number_of(event, "tid") > 0) continue;
        int value = (int)json_number_value(step);
        if (count == 0 || value < *least) *least = value;
        if (count == 0 || value > *most) *most = value;
        count++;
    }
    return count;
}

/* Runs an endless job in a process of its own, and kills that once the trace is there. */
static void kill_once_traced(const struct tr_train_settings *settings, int ranks)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rank rank[RANKS];
        alarm(1200); /* a hang; on a busy machine, with sanitizers, 400 s are none */
        tr_trainer *trainer;
        if (ranks > 1)
            run_ranks(settings, ranks, true, rank);
        else if (tr_trainer_create(settings, &trainer) == TR_OK)
            tr_trainer_run(trainer, NULL, NULL);
        fprintf(stderr, "the job ended: %s\n", ranks > 1 ? rank[0].outcome.message : tr_error_message());
        _exit(1);
    }
    int state = 0;
    while (!tr_file_exists(settings->trace) && waitpid(child, &state, WNOHANG) == 0) usleep(1000);
    kill(child, SIGKILL);
    if (state == 0) assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFSIGNALED(state));
    assert_int_equal(WTERMSIG(state), SIGKILL);
}

static void a_run_that_is_killed_leaves_a_trace(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int ranks, told; /* of how many ranks there are events by then */
        int steps;       /* where ranks take what comes, enough that each has some */
    } cases[] = {{"allreduce", 1, 1, 4},
                 {"allreduce", 3, 3, 4},
                 {"pipeline,stages=2", 2, 2, 4},
                 {"local-sgd,replicas=2,every=4", 2, 2, 4},
                 {"parameter-server,mode=async", 3, 1, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        char path[SCRATCH_PATH + 16];
        snprintf(path, sizeof path, "%s/killed%zu.json", family_place, i);
        family_job(&job, &families[0], family_place);
        job_set(&job, "train.microbatches=4");
        job.settings.set = job.set;
        job.settings.strategy = cases[i].strategy;
        job.settings.steps = 1000000000;
        job.settings.trace = path;
        job.settings.trace_first = 2;
        job.settings.trace_steps = cases[i].steps;
        kill_once_traced(&job.settings, cases[i].ranks);
        json_t *root, *events = events_of(path, &root);
        for (int r = 0; r < cases[i].told; r++) {
            int least = 0, most = 0;
            assert_true(step_range(events, r, &least, &most) > 4);
            assert_in_range(least, 3, 2 + cases[i].steps);
            assert_in_range(most, least, 2 + cases[i].steps);
            if (strcmp(cases[i].strategy, "allreduce") == 0)
                assert_int_equal(count_events(events, r, "step"), 4);
        }
        json_decref(root);
    }
}

static void followers_trace_the_same_steps(void **state)
{
    (void)state;
    struct job job;
    struct rank ranks[RANKS];
    char path[SCRATCH_PATH + 16];
    snprintf(path, sizeof path, "%s/followers.json", family_place);
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    job.settings.strategy = "parameter-server,mode=async";
    job.settings.steps = 600;
    job.settings.trace = path;
    job.settings.trace_first = 5;
    job.settings.trace_steps = 500;
    run_ranks(&job.settings, 3, false, ranks);
    expect_well(ranks, 3, "asynchronous with a trace");
    json_t *root, *events = events_of(path, &root);
    for (int r = 0; r < 3; r++) {
        int least = 0, most = 0;
        assert_true(step_range(events, r, &least, &most) > 0);
        assert_in_range(least, 6, 505);
        assert_in_range(most, least, 505);
    }
    json_decref(root);
}

static void a_trace_begins_where_its_run_does(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char path[SCRATCH_PATH + 16], out[SCRATCH_PATH + 16];
    int least = 0, most = 0;
    snprintf(path, sizeof path, "%s/resumed.json", family_place);
    snprintf(out, sizeof out, "%s/resumed", family_place);
    family_job(&job, &families[0], family_place);
    job.settings.out = out;
    job.settings.steps = 5;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    job.settings.resume = out;
    job.settings.steps = 12;
    job.settings.trace = path;
    job.settings.trace_steps = 3;
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    json_t *root, *events = events_of(path, &root);
    assert_int_equal(count_events(events, 0, "step"), 3);
    assert_true(step_range(events, 0, &least, &most) > 3);
    assert_int_equal(most, 8);
    json_decref(root);
}

struct obstacle {
    const char *directory;
    int warnings;
};

/* Takes the directory of the trace away before the time comes to write it, and gives it back afterwards. */
static int obstruct(void *user, const struct tr_train_event *event)
{
    struct obstacle *obstacle = user;
    if (event->kind == TR_EVENT_STEP && event->step == 1) assert_int_equal(rmdir(obstacle->directory), 0);
    if (event->kind != TR_EVENT_WARNING) return 0;
    assert_non_null(strstr(event->name, obstacle->directory));
    assert_int_equal(mkdir(obstacle->directory, 0777), 0);
    obstacle->warnings++;
    return 0;
}

static void a_trace_that_cannot_be_written_yet_is_written_at_the_end(void **state)
{
    (void)state;
    struct job job;
    char path[SCRATCH_PATH + 32], directory[SCRATCH_PATH + 16];
    struct obstacle obstacle = {directory, 0};
    snprintf(directory, sizeof directory, "%s/away", family_place);
    snprintf(path, sizeof path, "%s/trace.json", directory);
    assert_int_equal(mkdir(directory, 0777), 0);
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.log_every=1");
    job.settings.steps = 8;
    job.settings.trace = path;
    job.settings.trace_steps = 3;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, obstruct, &obstacle));
    tr_trainer_destroy(&trainer);
    assert_int_equal(obstacle.warnings, 1);
    json_t *root, *events = events_of(path, &root);
    assert_int_equal(count_events(events, 0, "step"), 3);
    json_decref(root);
}

static void a_trace_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    family_job(&job, &families[0], family_place);
    job.settings.trace = "/nowhere/at/all/trace.json";
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_ENOTFOUND);
    assert_non_null(strstr(outcome.message, "/nowhere/at/all"));
}

/* Ranks that record, and others that do not or record something else, would wait for each other. */
static void ranks_must_record_the_same(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    scratch_join(path, family_place, "one.json");
    for (int first = 0; first < 3; first++)
        for (int second = 0; second < 3; second++) {
            struct job job[2];
            struct rank ranks[RANKS];
            const struct tr_train_settings *settings[2];
            for (int r = 0; r < 2; r++) {
                int what = r == 0 ? first : second;
                family_job(&job[r], &families[0], family_place);
                job_set(&job[r], "train.microbatches=4");
                job[r].settings.set = job[r].set;
                job[r].settings.steps = 1;
                job[r].settings.profile = what == 1;
                job[r].settings.trace = what == 2 ? path : NULL;
                settings[r] = &job[r].settings;
            }
            run_ranks_each(settings, 2, false, ranks);
            if (ranks[0].outcome.status != (first == second ? TR_OK : TR_EMISMATCH))
                fail_msg("%d and %d: %s: %s", first, second, tr_status_name(ranks[0].outcome.status),
                         ranks[0].outcome.message);
        }
}

static void a_profile_adds_up(void **state)
{
    (void)state;
    struct job job;
    const struct tr_train_profile *profile;
    family_job(&job, &families[0], family_place);
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_profile(trainer, &profile), TR_EINVAL);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    assert_int_equal(tr_trainer_profile(trainer, &profile), TR_EINVAL);
    tr_trainer_destroy(&trainer);

    job.settings.profile = true;
    job.settings.steps = 4;
    trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_profile(trainer, &profile));
    assert_int_equal(profile->ranks, 1);
    assert_true(profile->layer_count > 1);
    assert_true(profile->peak > 0);
    double forward = 0;
    for (int i = 0; i < profile->layer_count; i++) {
        const struct tr_profile_layer *layer = &profile->layers[i];
        assert_true(layer->calls > 0 && layer->calls % 4 == 0);
        assert_true(layer->bytes > 0);
        if (layer->parameters > 0) assert_true(layer->forward_operations > 0);
        forward += layer->forward_seconds;
    }
    /* Beside the product of the last layer, its backward has those for its weights and for its input. */
    const struct tr_profile_layer *last = &profile->layers[profile->layer_count - 1];
    assert_true(last->parameters > 0);
    assert_float_equal(last->backward_operations / last->forward_operations, 2, 0.1);
    /* The loss is the rest. */
    assert_true(forward <= profile->rank[0].seconds[TR_CAUSE_FORWARD] + 1e-9);
    assert_true(forward > 0);
    tr_trainer_destroy(&trainer);
}

/* What a rank's main thread waited for others, and what others waited for it. */
struct waited {
    double waited, awaited;
};

static void *run_profiled(void *user)
{
    struct rank *rank = user;
    struct waited *sums = rank->user;
    const struct tr_train_profile *profile;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_profile(trainer, &profile));
    for (int r = 0; r < profile->ranks; r++)
        sums[r] = (struct waited){profile->rank[r].seconds[TR_CAUSE_WAITING], profile->rank[r].awaited};
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* Two ranks wait for a slow one: it is awaited for more than either of them waited. */
static void all_that_was_waited_is_somebodys(void **state)
{
    (void)state;
    enum { SIZE = 3 };
    struct job job;
    struct rank ranks[RANKS] = {0};
    struct waited sums[SIZE][SIZE];
    double waited = 0, awaited = 0, most = 0;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    job.settings.set = job.set;
    job.settings.steps = 6;
    job.settings.slow = "0:20";
    job.settings.profile = true;
    for (int r = 0; r < SIZE; r++) ranks[r].user = sums[r];
    run_ranks_by(run_profiled, &job.settings, SIZE, false, ranks);
    for (int r = 0; r < SIZE; r++) {
        waited += sums[0][r].waited;
        awaited += sums[0][r].awaited;
        if (sums[0][r].waited > most) most = sums[0][r].waited;
    }
    if (!(awaited > 1.1 * most && awaited < waited + 1e-6))
        fail_msg("%g s were waited, at most %g by one, and %g for others", waited, most, awaited);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]); /* all know the same */
    assert_memory_equal(sums[0], sums[2], sizeof sums[0]);
}

/* The bytes of a layer are those of its output in the largest pass: of 21 examples in 5 microbatches, one at
 * a time, 5 are the most. */
static void a_profile_tells_the_bytes_of_a_pass(void **state)
{
    (void)state;
    struct job job;
    const struct tr_train_profile *profile;
    int dense = 0;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.pass=1");
    job.settings.set = job.set;
    job.settings.profile = true;
    job.settings.steps = 3;
    tr_trainer *trainer = job_trainer(&job);
    const struct tr_model *model = trainer_job(trainer)->model;
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_profile(trainer, &profile));
    for (int i = 0; i < profile->layer_count; i++)
        for (int k = 0; k < model->layer_count; k++) {
            const struct tr_layer *layer = &model->layers[k];
            if (strcmp(layer->name, profile->layers[i].name) != 0 || layer->out.rank == 3) continue;
            int64_t bytes = 5 * tr_shape_count(&layer->out) * (int64_t)sizeof(float);
            if (profile->layers[i].bytes != bytes)
                fail_msg("%s: %lld bytes are told, the output of a pass has %lld", layer->name,
                         (long long)profile->layers[i].bytes, (long long)bytes);
            dense++;
        }
    assert_true(dense >= 2);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_of_one_process),
        cmocka_unit_test(a_trace_of_three_ranks),
        cmocka_unit_test(a_run_that_fails_leaves_a_trace),
        cmocka_unit_test(a_run_that_is_killed_leaves_a_trace),
        cmocka_unit_test(followers_trace_the_same_steps),
        cmocka_unit_test(a_trace_begins_where_its_run_does),
        cmocka_unit_test(a_trace_that_cannot_be_written_yet_is_written_at_the_end),
        cmocka_unit_test(a_trace_that_cannot_be_written_is_an_error),
        cmocka_unit_test(ranks_must_record_the_same),
        cmocka_unit_test(a_profile_adds_up),
        cmocka_unit_test(all_that_was_waited_is_somebodys),
        cmocka_unit_test(a_profile_tells_the_bytes_of_a_pass),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
