/* The memory that ranks ask for, summed up by host and by device, and compared by the byte with what there
 * is; and what is expected of a job before anything is made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"

#include "base/fail.h"
#include "device/device.h"
#include "job/step/gradient.h"
#include "support/training.h"
#include "train/setup/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- ranks ---- */

#define SIZE 5

/* Two ranks on one host, whose first devices have the names of those of the other host, and three there, of
   which one has the device of the others as its second. */
static const int host[SIZE] = {0, 0, 1, 1, 1};
static const struct tr_train_demand asked[SIZE] = {
    {.own = 10, .shared = 50, .data = 20, .on = {{"gpu:0", 100, 900}}},
    {.own = 20, .shared = 40, .data = 30, .on = {{"gpu:1", 200, 900}}},
    {.own = 1, .shared = 7, .data = 3, .on = {{"gpu:0", 300, 550}}},
    {.own = 2, .shared = 9, .data = 2, .on = {{"gpu:0", 200, 550}}},
    {.own = 4, .shared = 8, .data = 4, .on = {{"gpu:1", 70, 900}, {"gpu:0", 50, 550}}},
};
/* Shared is the largest, of which the data are told apart. */
static const struct tr_train_memory expected[2] = {{.data = 30, .ranks = 30 + 50 - 30, .processes = 2},
                                                   {.data = 4, .ranks = 7 + 9 - 4, .processes = 3}};
static const int64_t on_device[SIZE] = {100, 200, 550, 550, 70};

static int64_t room_of[2], gpu; /* of each host, and of the device that several have; 0: as above */
static bool checks;
static tr_status wanted;
static const char *said; /* by all ranks */

static const char *admit(tr_comm *comm)
{
    const int rank = tr_comm_rank(comm);
    struct tr_train_memory got = {0};
    struct tr_train_demand own = asked[rank];
    /* Only the first rank of a host counts: the others see what it took already. */
    bool first = tr_comm_local_rank(comm) == 0;
    struct tr_memory_room room = {.free = first ? room_of[host[rank]] : 0, .where = "this machine"};
    if (first && host[rank] == 1) snprintf(room.where, sizeof room.where, "the control group /job");
    for (int i = 0; i < 2 && gpu > 0; i++)
        if (own.on[i].memory == 550) own.on[i].memory = gpu;
    tr_status status = tr_train_admit_memory(comm, &own, &room, checks, &got);
    if (status != wanted) return status == TR_OK ? "it is admitted" : tr_error_message();
    if (status != TR_OK) return strcmp(tr_error_message(), said) == 0 ? NULL : tr_error_message();
    const struct tr_train_memory *sum = &expected[host[rank]];
    if (got.data != sum->data || got.ranks != sum->ranks || got.processes != sum->processes)
        return "another sum of the host";
    if (got.free != room_of[host[rank]]) return "not the room that the first rank saw";
    return got.device == on_device[rank] ? NULL : "another sum of the device";
}

static void ask(int64_t first, int64_t second, int64_t device, bool check, const char *message)
{
    const struct tr_comm_settings settings = TR_COMM_SETTINGS_INIT;
    room_of[0] = first;
    room_of[1] = second;
    gpu = device;
    checks = check;
    said = message;
    wanted = message ? TR_ENOMEM : TR_OK;
    ranks_run(SIZE, host, &settings, admit);
}

static void hosts_and_devices_have_what_it_takes_or_not(void **state)
{
    (void)state;
    ask(80, 16, 0, true, NULL);
    ask(INT64_MAX, INT64_MAX, 551, true, NULL);
    ask(79, 16, 0, true,
        "the run takes 80 bytes of memory on host thread-host-0 (50 bytes for parameters, moments and passes "
        "of 2 processes, 30 bytes for data), this machine has 79 bytes free; make the network or the batch "
        "smaller, take fewer processes, or give `no_memory_check`");
    ask(80, 15, 0, true,
        "the run takes 16 bytes of memory on host thread-host-1 (12 bytes for parameters, moments and passes "
        "of 3 processes, 4 bytes for data), the control group /job has 15 bytes free; make the network or "
        "the "
        "batch smaller, take fewer processes, or give `no_memory_check`");
    ask(80, 16, 549, true,
        "the run takes 550 bytes of the memory of gpu:0 on host thread-host-1 (parameters, moments and "
        "passes "
        "of 3 processes, data that are kept there), which has 549 bytes; compute fewer examples at a time "
        "(train.pass), make the network smaller, take more devices, or give `no_memory_check`");
    /* The memory of the host is looked at first. */
    ask(80, 15, 549, true,
        "the run takes 16 bytes of memory on host thread-host-1 (12 bytes for parameters, moments and passes "
        "of 3 processes, 4 bytes for data), the control group /job has 15 bytes free; make the network or "
        "the "
        "batch smaller, take fewer processes, or give `no_memory_check`");
    ask(1, 0, 1, false, NULL);
}

static void a_process_asks_for_itself(void **state)
{
    (void)state;
    struct tr_train_memory got;
    struct tr_train_demand demand = {
        .own = 5, .shared = 9, .data = 3, .on = {{"gpu:0", 30, 30}, {"gpu:1", 40, 40}}};
    struct tr_memory_room room = {14, "this machine"};
    must_train(tr_train_admit_memory(NULL, &demand, &room, true, &got));
    assert_true(got.data == 3 && got.ranks == 11 && got.free == 14 && got.processes == 1 && got.device == 30);
    room.free = 13;
    assert_int_equal(tr_train_admit_memory(NULL, &demand, &room, true, &got), TR_ENOMEM);
    assert_non_null(
        strstr(tr_error_message(),
               "takes 14 bytes of memory (11 bytes for parameters, moments and passes of 1 process, "));
    room.free = 14;
    demand.on[1].memory = 39;
    assert_int_equal(tr_train_admit_memory(NULL, &demand, &room, true, &got), TR_ENOMEM);
    assert_non_null(strstr(tr_error_message(),
                           "40 bytes of the memory of gpu:1 (parameters, moments and passes "
                           "of 1 process, data that are kept there), which has 39 bytes"));
    demand.on[0].memory = 29;
    assert_int_equal(tr_train_admit_memory(NULL, &demand, &room, true, &got), TR_ENOMEM);
    assert_non_null(strstr(tr_error_message(), "30 bytes of the memory of gpu:0 ("));
    /* Sums end at the largest number. */
    demand.own = demand.shared = INT64_MAX;
    demand.on[0].bytes = demand.on[1].bytes = 0;
    room.free = INT64_MAX;
    must_train(tr_train_admit_memory(NULL, &demand, &room, true, &got));
    room.free = INT64_MAX - 1;
    assert_int_equal(tr_train_admit_memory(NULL, &demand, &room, true, &got), TR_ENOMEM);
}

/* Where all are on one host, it needs no name. */
static const char *admit_alone(tr_comm *comm)
{
    struct tr_train_memory got;
    const struct tr_train_demand own = {.own = 6};
    const struct tr_memory_room room = {11, "this machine"};
    if (tr_train_admit_memory(comm, &own, &room, true, &got) != TR_ENOMEM) return "it is admitted";
    return strstr(tr_error_message(),
                  "takes 12 bytes of memory (12 bytes for parameters, moments and passes of "
                  "2 processes, 0 bytes for data), this machine has 11 bytes free;")
               ? NULL
               : tr_error_message();
}

static void one_host_has_no_name(void **state)
{
    (void)state;
    ranks_run(2, NULL, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, admit_alone);
}

/* ---- devices ---- */

static int64_t memory_of(const tr_device *device)
{
    return device->threads; /* as good as any number */
}

static void demands_are_noted_by_device(void **state)
{
    (void)state;
    const struct tr_device_class class = {.memory = memory_of};
    tr_device plain = {.class = &class, .name = "cpu"},
              one = {.class = &class, .name = "gpu:0", .threads = 7},
              other = {.class = &class, .name = "gpu:1", .threads = 8};
    struct tr_train_demand demand = {0};
    tr_train_demand_add(&demand, &plain, 3);
    tr_train_demand_add(&demand, &plain, 4);
    assert_int_equal(demand.own, 7);
    assert_int_equal(demand.on[0].bytes, 0);
    tr_train_demand_add(&demand, &one, 10);
    tr_train_demand_add(&demand, &one, 20);
    assert_int_equal(demand.on[0].bytes, 30);
    assert_int_equal(demand.on[0].memory, 7);
    assert_int_equal(demand.on[1].bytes, 0);
    tr_train_demand_add(&demand, &other, 5);
    tr_train_demand_add(&demand, &other, 6);
    assert_string_equal(demand.on[0].device, "gpu:0");
    assert_string_equal(demand.on[1].device, "gpu:1");
    assert_int_equal(demand.on[0].bytes, 30);
    assert_int_equal(demand.on[1].bytes, 11);
    assert_int_equal(demand.on[1].memory, 8);
    assert_int_equal(demand.own, 7);
    tr_train_demand_add(&demand, &other, INT64_MAX);
    assert_true(demand.on[1].bytes == INT64_MAX);
}

/* ---- before anything is made ---- */

#define MODEL                                                                                                \
    "name: job\ninput: {shape: [200]}\nlayers: [{dense: 30}, {batch_norm: }, {dense: 3}]\n"                  \
    "optimizer: {rule: adam, rate: 0.01, ema: 0.9}\ntrain: {batch: 48, microbatches: 8, steps: 1}\n"

static struct tr_train_expected expect_of(const char *const *set, int count, const char *strategy, int ranks,
                                          int64_t *arena)
{
    const struct tr_job_settings settings = {
        .outline = true, .strategy = strategy, .set = set, .set_count = count};
    const struct tr_job_text text = {MODEL, sizeof MODEL - 1, "model", NULL};
    struct tr_train_expected got;
    struct tr_job *job;
    must_train(tr_job_open_text(&text, &settings, &job));
    must_train(tr_train_expect_memory(job, ranks, &got));
    *arena = job->model->arena_floats * (int64_t)sizeof(float);
    tr_job_destroy(&job);
    return got;
}

static struct tr_train_expected expect(const char *strategy, int ranks, int64_t *arena)
{
    return expect_of(NULL, 0, strategy, ranks, arena);
}

/* Gradients and passes over a share of the microbatches. */
static int64_t gradient_of(int64_t microbatches, int64_t rows)
{
    const struct tr_job_settings settings = {.outline = true};
    const struct tr_job_text text = {MODEL, sizeof MODEL - 1, "model", NULL};
    const struct tr_gradient_part part = {.end = microbatches};
    struct tr_gradient_plan plan;
    struct tr_job *job;
    size_t pass;
    must_train(tr_job_open_text(&text, &settings, &job));
    tr_gradient_plan(job, &part, rows, 0, 0, &plan);
    must_train(tr_pass_memory(NULL, job->model, &plan.limits, &pass));
    tr_job_destroy(&job);
    return (int64_t)pass + plan.slots * plan.stride * (int64_t)sizeof(float);
}

/* Adam's moments and the moving average; where ranks keep parts, theirs. */
static void a_job_is_expected_to_take_its_parts(void **state)
{
    (void)state;
    static const struct {
        int ranks, microbatches, rows;
    } shares[] = {{1, 8, 48}, {2, 4, 24}, {3, 2, 12}, {4, 2, 12}, {8, 1, 6}, {11, 1, 6}};
    int64_t arena;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct tr_train_expected got = expect("allreduce,factors=never", shares[i].ranks, &arena);
        assert_int_equal(got.parameters, arena);
        assert_int_equal(got.states, 3 * arena);
        assert_int_equal(got.gradient, gradient_of(shares[i].microbatches, shares[i].rows));
        got = expect("pipeline", shares[i].ranks, &arena);
        if (shares[i].ranks == 1) continue;
        assert_int_equal(got.parameters, 0);
        assert_int_equal(got.gradient, 0);
        assert_int_equal(got.states, 4 * arena / shares[i].ranks);
    }
    assert_int_equal(expect("pipeline", 1, &arena).parameters, arena);
    assert_true(expect("pipeline", 1, &arena).gradient > 0);
}

/* One arena for each moment and average that the optimizer keeps. */
static void states_are_those_of_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *optimizer;
        int arenas;
    } cases[] = {{"optimizer={rule: sgd, rate: 0.1}", 0},
                 {"optimizer={rule: sgd, rate: 0.1, ema: 0.9}", 1},
                 {"optimizer={rule: momentum, rate: 0.1}", 1},
                 {"optimizer={rule: adam, rate: 0.1}", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t arena, states = expect_of(&cases[i].optimizer, 1, "allreduce", 2, &arena).states;
        assert_int_equal(states, cases[i].arenas * arena);
    }
}

/* One process applies gradients of large weights as it forms them, and needs room for a piece of 43 of 200
   inputs alone, and for their rows; or, where small ones are formed, too, for rows of all of these inputs. */
static void pieces_are_expected_to_spare_memory(void **state)
{
    (void)state;
    static const char *const set[] = {"layers.0.units=3000", "train.batch=8"};
    int64_t arena;
    int64_t whole = expect_of(set, 2, "allreduce,factors=never", 1, &arena).gradient;
    assert_int_equal(whole - expect_of(set, 2, "allreduce", 1, &arena).gradient,
                     4 * (200 * 3000 - 43 * 8 - 43 * 3000));
    assert_int_equal(whole - expect_of(set, 2, "allreduce,factors=always", 1, &arena).gradient,
                     4 * (203 * 3000 - 3000 * 8 - 43 * 3000));
    assert_int_equal(expect_of(set, 2, "allreduce,factors=always", 2, &arena).gradient,
                     expect_of(set, 2, "allreduce,factors=never", 2, &arena).gradient);
    /* At least two pieces; and at most 64, of 313 inputs or one less. */
    static const struct {
        const char *inputs, *units;
        int64_t spared;
    } cases[] = {
        {"input.shape=[86]", "layers.0.units=3000", 86 * 3000 - 43 * 8 - 43 * 3000},
        {"input.shape=[85]", "layers.0.units=3000", 0},
        {"input.shape=[20000]", "layers.0.units=2000", 20000 * 2000 - 313 * 8 - 313 * 2000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const other[] = {cases[i].inputs, cases[i].units, "train.batch=8"};
        assert_int_equal(expect_of(other, 3, "allreduce,factors=never", 1, &arena).gradient -
                             expect_of(other, 3, "allreduce", 1, &arena).gradient,
                         4 * cases[i].spared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_devices_have_what_it_takes_or_not),
        cmocka_unit_test(a_process_asks_for_itself),
        cmocka_unit_test(one_host_has_no_name),
        cmocka_unit_test(demands_are_noted_by_device),
        cmocka_unit_test(a_job_is_expected_to_take_its_parts),
        cmocka_unit_test(states_are_those_of_the_rule),
        cmocka_unit_test(pieces_are_expected_to_spare_memory),
    };
    return cmocka_run_group_tests_name("train.admit", tests, NULL, NULL);
}
