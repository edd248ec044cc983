/* Stops from outside: of the creation, of a run; and objects in a process that was forked from theirs. */
#include "support/training.h"
#include "base/alloc.h"
#include "refuse.h"
#include "trireme/launch.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static void begin(struct job *job)
{
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i].name, "mnist-mlp") == 0) family_job(job, &families[i], family_place);
    job->settings.steps = 8;
    job_set(job, "train.log_every=1");
    job->settings.set = job->set;
}

/* ---- a stop ---- */

/* A source whose examples set the stop as they are read. */
static tr_stop *stop;
static int64_t calls;

static int read_on(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    (void)user;
    calls++;
    if (features)
        for (int64_t i = 0; i < *length; i++) ((float *)features)[i] = (float)((index + i) % 5);
    if (label) *(int32_t *)label = (int32_t)(index % 3);
    return 0;
}

static int read_and_stop(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    tr_stop_set(stop, 1);
    return read_on(user, index, features, length, label);
}

static const char model[] =
    "data: {train: {memory: {name: train, standardize: true}}}\n"
    "layers: [{dense: 3}]\nloss: softmax_cross_entropy\noptimizer: {rule: sgd, rate: 0.1}\n"
    "train: {batch: 4, steps: 6, log_every: 1}\n";

static void test_no_memory_for_a_stop(void **state)
{
    (void)state;
    refuse_begin(0);
    const tr_status status = tr_stop_create(&stop);
    assert_false(refuse_end());
    assert_int_equal(status, TR_ENOMEM);
    assert_null(stop);
}

static void test_create_obeys(void **state)
{
    struct job job;
    tr_trainer *trainer = NULL;
    (void)state;
    must_train(tr_stop_create(&stop));
    begin(&job);
    job.settings.stop = stop;
    tr_stop_set(stop, 1);
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_EINTERRUPTED);
    assert_null(trainer);
    assert_non_null(strstr(tr_error_message(), "creating the trainer"));
    tr_stop_set(stop, 0);
    must_train(tr_trainer_create(&job.settings, &trainer));
    tr_trainer_destroy(&trainer);
    tr_stop_destroy(&stop);
    assert_null(stop);
}

/* One that comes while the data are looked at, and leaves no directory behind. */
static void test_create_obeys_on_its_way(void **state)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    struct tr_named_source data = {"train", NULL};
    tr_source *source = NULL, *another = NULL;
    tr_trainer *trainer = NULL;
    char out[SCRATCH_PATH];
    (void)state;
    must_train(tr_stop_create(&stop));
    reader.info = (struct tr_source_info){
        .count = 20, .features = TR_FEATURE_FLOATS, .floats = 2, .labels = TR_LABEL_CLASS, .classes = 3};
    reader.read = read_and_stop;
    must_train(tr_source_from_reader(&reader, &source));
    data.source = source;
    settings.model_text = model;
    settings.data = &data;
    settings.data_count = 1;
    settings.threads = 1;
    settings.stop = stop;
    settings.out = scratch_join(out, family_place, "never");
    calls = 0;
    assert_int_equal(tr_trainer_create(&settings, &trainer), TR_EINTERRUPTED);
    assert_true(calls > 0); /* to measure the scaling */
    assert_null(trainer);
    assert_int_equal(access(out, F_OK), -1);
    tr_stop_set(stop, 0);
    reader.read = read_on;
    must_train(tr_source_from_reader(&reader, &another));
    data.source = another;
    must_train(tr_trainer_create(&settings, &trainer));
    tr_source_close(&another);
    tr_trainer_destroy(&trainer);
    tr_source_close(&source);
    tr_stop_destroy(&stop);
}

static void *set_later(void *unused)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    tr_stop_set(stop, 1);
    return unused;
}

/* One that comes while a process of the job has not joined. */
static void test_create_obeys_while_others_join(void **state)
{
    struct job job;
    char transport[TR_LOCAL_TRANSPORT_SIZE], out[SCRATCH_PATH];
    tr_local_group *group;
    tr_trainer *trainer = NULL;
    pthread_t thread;
    (void)state;
    must_train(tr_stop_create(&stop));
    must_train(tr_local_group_create(2, &group));
    int own = fcntl(tr_local_group_descriptor(group), F_DUPFD_CLOEXEC, 0);
    must_train(tr_local_group_transport(group, 0, own, transport, sizeof transport));
    begin(&job);
    job.settings.stop = stop;
    job.settings.transport = transport;
    job.settings.out = scratch_join(out, family_place, "alone");
    assert_int_equal(pthread_create(&thread, NULL, set_later, NULL), 0);
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_EINTERRUPTED);
    pthread_join(thread, NULL);
    assert_null(trainer);
    assert_int_equal(access(out, F_OK), -1);
    tr_local_group_destroy(&group);
    tr_stop_destroy(&stop);
}

static int set_at(void *user, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP && event->step == 3) tr_stop_set(user, 1);
    return 0;
}

static void test_runs_obey(void **state)
{
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer[2];
    (void)state;
    must_train(tr_stop_create(&stop));
    begin(&job);
    job.settings.stop = stop;
    /* One stop for two trainers. */
    trainer[0] = job_trainer(&job);
    trainer[1] = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer[0], set_at, stop), TR_EINTERRUPTED);
    must_train(tr_trainer_info(trainer[0], &info));
    assert_int_equal(info.step, 3);
    assert_int_equal(tr_trainer_run(trainer[1], NULL, NULL), TR_EINTERRUPTED);
    must_train(tr_trainer_info(trainer[1], &info));
    assert_int_equal(info.step, 0);
    tr_stop_set(stop, 0);
    must_train(tr_trainer_run(trainer[1], NULL, NULL));
    must_train(tr_trainer_run(trainer[0], NULL, NULL));
    tr_trainer_destroy(&trainer[0]);
    tr_trainer_destroy(&trainer[1]);
    tr_stop_destroy(&stop);
}

/* ---- forks ---- */

static void demand(int holds, int line)
{
    if (holds) return;
    fprintf(stderr, "line %d does not hold in the child: %s\n", line, tr_error_message());
    _exit(1);
}
#define DEMAND(holds) demand(holds, __LINE__)
#define REFUSED(call)                                                                                        \
    do {                                                                                                     \
        DEMAND((call) == TR_EUNSUPPORTED);                                                                   \
        DEMAND(strstr(tr_error_message(), "in the child") != NULL);                                          \
    } while (0)

/* What a child finds of objects that have several threads each. */
static void use_in_child(tr_trainer *trainer, tr_predictor *predictor, tr_source *source,
                         const char *expected)
{
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    struct tr_predict_settings answering = TR_PREDICT_SETTINGS_INIT;
    struct tr_parameter_info info = TR_PARAMETER_INFO_INIT;
    struct tr_examples examples = TR_EXAMPLES_INIT;
    tr_predictor *another = NULL;
    struct job job;
    char hash[65];
    double loss, accuracy;
    float value = 0;
    void *bytes;
    size_t size;
    alarm(240); /* what hangs must end */
    REFUSED(tr_trainer_step(trainer, &event));
    REFUSED(tr_trainer_run(trainer, NULL, NULL));
    REFUSED(tr_trainer_evaluate(trainer, "test", &event));
    REFUSED(tr_trainer_save(trainer, NULL));
    REFUSED(tr_trainer_save_at(trainer, "elsewhere"));
    REFUSED(tr_trainer_save_state(trainer, &bytes, &size));
    REFUSED(tr_trainer_set_rate(trainer, 0.1));
    REFUSED(tr_trainer_hash(trainer, hash));
    REFUSED(tr_trainer_predictor(trainer, &answering, &another));
    DEMAND(tr_trainer_parameter_at(trainer, 0, &info) == TR_OK);
    REFUSED(tr_trainer_parameter(trainer, info.name, &value, 1));
    REFUSED(tr_trainer_set_parameter(trainer, info.name, &value, 1));
    REFUSED(tr_predictor_source(predictor, source, 0, 1, &value));
    REFUSED(tr_predictor_evaluate(predictor, source, &loss, &accuracy, NULL));
    REFUSED(tr_predictor_batch(predictor, &examples, NULL, NULL));
    tr_trainer_destroy(&trainer);
    tr_predictor_destroy(&predictor);
    DEMAND(!trainer && !predictor);
    /* One of the child's own does what any would. */
    begin(&job);
    job.settings.threads = 2;
    DEMAND(tr_trainer_create(&job.settings, &trainer) == TR_OK);
    DEMAND(tr_trainer_run(trainer, NULL, NULL) == TR_OK);
    DEMAND(tr_trainer_hash(trainer, hash) == TR_OK);
    DEMAND(strcmp(hash, expected) == 0);
    tr_trainer_destroy(&trainer);
    _exit(0);
}

static void test_fork(void **state)
{
    struct job job;
    struct tr_predict_settings answering = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor = NULL;
    tr_source *source = NULL;
    char expected[65], hash[65];
    int status;
    (void)state;
    begin(&job);
    job.settings.threads = 2;
    tr_trainer *trainer = job_trainer(&job), *whole = job_trainer(&job);
    must_train(tr_trainer_run(whole, NULL, NULL));
    must_train(tr_trainer_hash(whole, expected));
    tr_trainer_destroy(&whole);
    must_train(tr_trainer_step(trainer, NULL));
    answering.threads = 2;
    must_train(tr_trainer_predictor(trainer, &answering, &predictor));
    must_train(tr_predictor_open_data(predictor, "test", &source));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) use_in_child(trainer, predictor, source, expected);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The parent knows nothing of it. */
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_hash(trainer, hash));
    assert_string_equal(hash, expected);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory_for_a_stop),
        cmocka_unit_test(test_create_obeys),
        cmocka_unit_test(test_create_obeys_on_its_way),
        cmocka_unit_test(test_create_obeys_while_others_join),
        cmocka_unit_test(test_runs_obey),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
