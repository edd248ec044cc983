/* A program that starts the processes of its jobs by itself, with nothing but the public headers: it is one
 * of them, the other is this program once more. They end with the hash of one process alone, and a process
 * that dies is noticed.
 */
#include <trireme/trireme.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 64
#define WIDTH 5

static const char model[] = "name: launched\n"
                            "layers: [{dense: {units: 8, activation: tanh}}, {dense: 3}]\n"
                            "optimizer: {rule: adam, rate: 1e-2}\n"
                            "train: {batch: 16, microbatches: 4, steps: 12}\n";

static float number[COUNT][WIDTH];
static int32_t class[COUNT];

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s: %s", tr_status_name(status), tr_error_message());
}

static tr_source *make_source(void)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *source = NULL;
    for (int i = 0; i < COUNT; i++) {
        class[i] = i * 7 % 3;
        for (int k = 0; k < WIDTH; k++) number[i][k] = (float)((i * 13 + k * 29) % 64) / 16 - (float)k;
    }
    arrays.features = (struct tr_array){number, TR_ARRAY_FLOAT32, 2, {COUNT, WIDTH}, {0}};
    arrays.labels = (struct tr_array){class, TR_ARRAY_INT32, 1, {COUNT}, {0}};
    must(tr_source_from_arrays(&arrays, &source));
    return source;
}

/* Trains as one of the processes that `transport` tells of; the status of the run, and the hash in `hex`. */
static tr_status train(const char *transport, char hex[65])
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_source *source = make_source();
    struct tr_named_source data = {"train", source};
    tr_trainer *trainer = NULL;
    settings.model_text = model;
    settings.transport = transport;
    settings.threads = 1;
    settings.data = &data;
    settings.data_count = 1;
    tr_status status = tr_trainer_create(&settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    if (status == TR_OK) status = tr_trainer_hash(trainer, hex);
    tr_trainer_destroy(&trainer);
    tr_source_close(&source);
    return status;
}

/* Starts this program as rank 1, which dies at once where `transport` is none. */
static pid_t start(const tr_local_group *group, const char *transport)
{
    pid_t process = fork();
    assert_true(process >= 0);
    if (process > 0) return process;
    fcntl(tr_local_group_descriptor(group), F_SETFD, 0);
    if (*transport) execl("/proc/self/exe", "test_launch", transport, (char *)NULL);
    _exit(1);
}

static void own_transport(const tr_local_group *group, char transport[TR_LOCAL_TRANSPORT_SIZE])
{
    int copy = fcntl(tr_local_group_descriptor(group), F_DUPFD_CLOEXEC, 0);
    assert_true(copy >= 0);
    must(tr_local_group_transport(group, 0, copy, transport, TR_LOCAL_TRANSPORT_SIZE));
}

static void test_one_hash(void **state)
{
    (void)state;
    char alone[65] = "", together[65] = "", own[TR_LOCAL_TRANSPORT_SIZE], other[TR_LOCAL_TRANSPORT_SIZE];
    tr_local_group *group = NULL;
    int status = -1;
    must(train(NULL, alone));
    must(tr_local_group_create(2, &group));
    must(tr_local_group_transport(group, 1, -1, other, sizeof other));
    pid_t process = start(group, other);
    own_transport(group, own);
    must(train(own, together));
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
    assert_string_equal(together, alone);
    tr_local_group_destroy(&group);
}

static void test_one_that_never_came(void **state)
{
    (void)state;
    char own[TR_LOCAL_TRANSPORT_SIZE], hex[65];
    tr_local_group *group = NULL;
    int status;
    must(tr_local_group_create(2, &group));
    pid_t process = start(group, "");
    assert_int_equal(waitpid(process, &status, 0), process);
    tr_local_group_ended(group, 1);
    own_transport(group, own);
    assert_int_equal(train(own, hex), TR_EPEER);
    tr_local_group_destroy(&group);
}

static void test_refused(void **state)
{
    (void)state;
    char transport[TR_LOCAL_TRANSPORT_SIZE];
    tr_local_group *group = NULL;
    must(tr_local_group_create(2, &group));
    assert_int_equal(tr_local_group_transport(group, 2, -1, transport, sizeof transport), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "rank 2 of 2"));
    assert_int_equal(tr_local_group_transport(group, -1, -1, transport, sizeof transport), TR_EINVAL);
    assert_int_equal(tr_local_group_transport(group, 0, -1, transport, sizeof transport - 1), TR_EINVAL);
    tr_local_group_ended(group, 2);
    tr_local_group_ended(group, -1);
    tr_local_group_destroy(&group);
    tr_local_group_destroy(&group);
}

int main(int count, char **words)
{
    char hex[65];
    if (count > 1) return train(words[1], hex) == TR_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_one_that_never_came),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
