/* What a gpu device does besides computing, on an interface without a driver (host.h): memory, tables, order,
 * launches, programs, and times; and what stays when a call fails.
 */
#include "device/gpu/host.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static tr_device *device;

static int open_host(void **state)
{
    (void)state;
    host_begin();
    device = host_open(NULL, false);
    return 0;
}

static int close_host(void **state)
{
    (void)state;
    host.fails = NULL;
    tr_device_destroy(&device);
    assert_int_equal(host.blocks + host.events + host.programs + host.kernels + host.lists + host.pinned, 0);
    assert_int_equal(tr_alloc_live(), 0);
    return 0;
}

static void fail_at(const char *function, int after)
{
    host.fails = function;
    host.after = after;
}

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

/* ---- memory ---- */

static void blocks_are_found_by_their_addresses(void **state)
{
    enum { BLOCKS = 40, FLOATS = 50 };
    float *there[BLOCKS], here[FLOATS];
    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(tr_device_alloc(device, FLOATS * sizeof(float), (void **)&there[i]), TR_OK);
        for (int k = 0; k < FLOATS; k++) here[k] = (float)(100 * i + k);
        assert_int_equal(tr_device_to_device(device, there[i], here, sizeof here), TR_OK);
    }
    for (int i = 0; i < BLOCKS; i += 3) {
        tr_device_free(device, there[i]);
        there[i] = NULL;
    }
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < BLOCKS; i++) {
            const int at = turn ? BLOCKS - 1 - i : i * 7 % BLOCKS;
            if (!there[at]) continue;
            assert_int_equal(tr_device_to_host(device, here, there[at] + 10, 4 * sizeof(float)), TR_OK);
            for (int k = 0; k < 4; k++) assert_true(here[k] == (float)(100 * at + 10 + k));
        }
    assert_int_equal(host.blocks, BLOCKS - 14);
    assert_int_equal(gpu_of(device)->held, (BLOCKS - 14) * sizeof here);
    /* In all of them, and behind the last float of one. */
    size_t at;
    assert_non_null(gpu_find(gpu_of(device), there[1] + FLOATS, &at));
    assert_int_equal(at, sizeof here);
    assert_true(gpu_aligned(device, NULL, 16));
    assert_true(gpu_aligned(device, there[1] + 4, 16));
    assert_false(gpu_aligned(device, there[1] + 5, 16));
    const int copies = host.copies;
    assert_int_equal(tr_device_to_host(device, here, there[1], 0), TR_OK);
    assert_int_equal(tr_device_to_device(device, there[1], here, 0), TR_OK);
    assert_int_equal(tr_device_to_host_beside(device, here, there[1], 0), TR_OK);
    assert_int_equal(host.copies, copies);
    assert_int_equal(tr_device_to_host_beside(device, here, there[1] + 1, 4), TR_OK);
    assert_true(here[0] == 101);
    void *empty, *pinned;
    assert_int_equal(tr_device_alloc(device, 0, &empty), TR_OK);
    tr_device_free(device, empty);
    assert_int_equal(tr_device_alloc_pinned(device, 0, &pinned), TR_OK);
    assert_int_equal(host.pinned, 1);
    tr_device_free_pinned(device, pinned);
}

static void memory_is_limited(void **state)
{
    (void)state;
    void *first, *second;
    gpu_of(device)->info.memory = 10 << 20;
    gpu_of(device)->info.allocation = 6 << 20;
    assert_int_equal(tr_device_room(device), 6 << 20);
    assert_int_equal(tr_device_memory(device), 10 << 20);
    assert_int_equal(tr_device_alloc(device, (6 << 20) + 1, &first), TR_ENOMEM);
    assert_null(first);
    assert_int_equal(tr_device_alloc(device, 6 << 20, &first), TR_OK);
    assert_int_equal(tr_device_room(device), 4 << 20);
    assert_int_equal(tr_device_alloc(device, (4 << 20) + 1, &second), TR_ENOMEM);
    assert_string_equal(tr_error_message(),
                        "host:0 (a host) has no room for 4.0 MiB: it has 10.0 MiB, at most 6.0 MiB in one "
                        "piece, and this run holds 6.0 MiB of it; fewer examples at a time (train.pass) need "
                        "less");
    assert_int_equal(tr_device_alloc(device, 4 << 20, &second), TR_OK);
    assert_int_equal(tr_device_room(device), 0);
    tr_device_free(device, first);
    tr_device_free(device, second);
    /* Where the device itself has none, or is lost. */
    for (int lost = 0; lost < 2; lost++) {
        host.how = lost ? TR_EPEER : TR_ENOMEM;
        fail_at("alloc", 0);
        assert_int_equal(tr_device_alloc(device, 1 << 20, &first), host.how);
        assert_message_has(lost ? "alloc failed" : "has no room for 1.0 MiB");
        assert_null(first);
        assert_int_equal(gpu_of(device)->held, 0);
        assert_int_equal(gpu_of(device)->block_count, 0);
    }
    gpu_of(device)->info.unified = true;
    assert_int_equal(tr_device_memory(device), 0);
    gpu_of(device)->info = (struct gpu_info){.memory = UINT64_MAX};
    assert_true(tr_device_memory(device) == INT64_MAX);
}

/* Kilobytes of addresses. */
static long addresses(void)
{
    long kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmSize: %ld", &kilobytes) == 1) break;
    fclose(file);
    assert_true(kilobytes > 0);
    return kilobytes;
}

static void addresses_are_given_back(void **state)
{
    (void)state;
    void *memory;
    const long before = addresses();
    for (int i = 0; i < 200; i++) {
        fail_at("alloc", i % 2);
        assert_int_equal(tr_device_alloc(device, 64 << 20, &memory), i % 2 ? TR_OK : TR_EPEER);
        tr_device_free(device, memory);
    }
    assert_true(addresses() < before + 1000000); /* of the 13 million that were taken */
}

static void scratch_grows(void **state)
{
    (void)state;
    void *first, *second;
    assert_int_equal(gpu_scratch(device, 1000, &first), TR_OK);
    assert_int_equal(gpu_scratch(device, 1000, &second), TR_OK);
    assert_ptr_equal(first, second);
    assert_int_equal(gpu_scratch(device, 10, &second), TR_OK);
    assert_ptr_equal(first, second);
    assert_int_equal(gpu_of(device)->held, 1000);
    assert_int_equal(gpu_scratch(device, 1001, &second), TR_OK);
    assert_int_equal(gpu_of(device)->held, 1001);
    assert_int_equal(host.blocks, 1);
    fail_at("alloc", 0);
    assert_int_equal(gpu_scratch(device, 2000, &second), TR_EPEER);
    assert_int_equal(gpu_of(device)->held, 0);
    host.fails = NULL;
    assert_int_equal(gpu_scratch(device, 10, &second), TR_OK);
    assert_int_equal(gpu_of(device)->held, 10);
}

/* ---- tables ---- */

static void expect_table(const void *table, const void *contents, size_t bytes)
{
    char back[64];
    assert_int_equal(tr_device_to_host(device, back, table, bytes), TR_OK);
    assert_memory_equal(back, contents, bytes);
}

/* Many more than are kept, of which some are wanted all the time: those stay, and every one has its contents.
 */
static void tables_are_found_by_their_contents(void **state)
{
    enum { MANY = 9000, WORDS = 5 };
    const void *kept, *found, *table;
    const int32_t always[WORDS] = {1, 2, 3, 4, 5};
    (void)state;
    assert_int_equal(gpu_table(device, always, sizeof always, &kept), TR_OK);
    for (int32_t i = 0; i < MANY; i++) {
        const int32_t numbers[WORDS] = {i, -i, i * 3, 7, i / 2};
        assert_int_equal(gpu_table(device, numbers, sizeof numbers, &table), TR_OK);
        assert_int_equal(gpu_table(device, numbers, sizeof numbers, &found), TR_OK);
        assert_ptr_equal(table, found);
        assert_int_equal(gpu_table(device, numbers, sizeof numbers - 4, &found), TR_OK);
        assert_ptr_not_equal(table, found);
        expect_table(found, numbers, sizeof numbers - 4);
        assert_int_equal(gpu_table(device, always, sizeof always, &found), TR_OK);
        assert_ptr_equal(kept, found);
        expect_table(table, numbers, sizeof numbers);
    }
    expect_table(kept, always, sizeof always);
    assert_true(gpu_of(device)->held <= 4096 * sizeof always);
    assert_int_equal(host.blocks, gpu_of(device)->table_count);
    assert_true(host.waits > 0); /* before those were freed that the device might read */
}

/* Where one cannot be made, nothing of it stays, and it is made the next time. */
static void tables_that_fail_are_none(void **state)
{
    (void)state;
    static const char *const functions[] = {"alloc", "to_device"};
    const int32_t numbers[] = {7, 8, 9};
    const void *table;
    for (int i = 0; i < 2; i++) {
        fail_at(functions[i], 0);
        assert_int_equal(gpu_table(device, numbers, sizeof numbers, &table), TR_EPEER);
        assert_int_equal(gpu_of(device)->held, 0);
        assert_int_equal(gpu_of(device)->table_count, 0);
        assert_int_equal(host.blocks, 0);
    }
    host.fails = NULL;
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = gpu_table(device, numbers, sizeof numbers, &table);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(gpu_of(device)->table_count, done);
        assert_int_equal(host.blocks, done);
    }
    expect_table(table, numbers, sizeof numbers);
    fail_at("wait", 0); /* to make room */
    for (int32_t i = 1; i < 4096; i++) assert_int_equal(gpu_table(device, &i, sizeof i, &table), TR_OK);
    assert_int_equal(gpu_table(device, numbers, 4, &table), TR_OK); /* it is 7 */
    const int32_t more = 5000;
    assert_int_equal(gpu_table(device, &more, sizeof more, &table), TR_EPEER);
    host.fails = NULL;
    assert_int_equal(gpu_table(device, &more, sizeof more, &table), TR_OK);
    expect_table(table, &more, sizeof more);
    assert_in_range(gpu_of(device)->table_count, 2040, 2060); /* the half that was used last */
    assert_int_equal(gpu_table(device, numbers, sizeof numbers, &table), TR_OK);
    expect_table(table, numbers, sizeof numbers);
}

/* ---- order ---- */

static bool is_reached(tr_event event)
{
    bool there = false;
    assert_int_equal(tr_device_reached(device, event, &there), TR_OK);
    return there;
}

static void marks_are_reached_in_order(void **state)
{
    (void)state;
    tr_event mark[4];
    bool there;
    host.late = true;
    for (int i = 0; i < 4; i++) assert_int_equal(tr_device_record(device, &mark[i]), TR_OK);
    assert_int_equal(host.events, 4);
    for (int i = 0; i < 4; i++) assert_false(is_reached(mark[i]));
    assert_int_equal(tr_device_wait_for(device, mark[1]), TR_OK);
    assert_int_equal(host.waits, 1);
    assert_int_equal(host.events, 2); /* what is before it has been reached, too */
    assert_true(is_reached(mark[0]) && is_reached(mark[1]));
    assert_false(is_reached(mark[2]) || is_reached(mark[3]));
    assert_int_equal(tr_device_wait_for(device, mark[0]), TR_OK);
    assert_int_equal(tr_device_wait_for(device, mark[1]), TR_OK);
    assert_int_equal(host.waits, 1);
    fail_at("wait_for", 0);
    assert_int_equal(tr_device_wait_for(device, mark[2]), TR_EPEER);
    fail_at("reached", 0);
    assert_int_equal(tr_device_reached(device, mark[3], &there), TR_EPEER);
    fail_at("record", 0);
    const tr_event before = mark[0];
    assert_int_equal(tr_device_record(device, &mark[0]), TR_EPEER);
    host.fails = NULL;
    assert_int_equal(host.events, 2);
    assert_true(is_reached(mark[2])); /* by the wait that failed */
    assert_false(is_reached(mark[3]));
    assert_int_equal(tr_device_wait(device), TR_OK);
    assert_int_equal(host.events, 0);
    for (int i = 1; i < 4; i++) assert_true(is_reached(mark[i]));
    assert_true(is_reached(before));
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = tr_device_record(device, &mark[0]);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
    }
    assert_true(mark[0].number > mark[3].number);
    assert_false(is_reached(mark[0]));
    host.late = false;
    assert_int_equal(tr_device_record(device, &mark[1]), TR_OK);
    assert_false(is_reached(mark[1])); /* not before the one before it */
    fail_at("wait", 0);
    assert_int_equal(tr_device_wait(device), TR_EPEER);
    assert_message_has("wait failed");
}

/* ---- launches ---- */

static void begin(struct gpu_call *call)
{
    gpu_begin(call, device, "elementwise", "", "any");
}

static void launches_have_no_more_groups_than_may_be(void **state)
{
    (void)state;
    struct gpu_call call;
    begin(&call);
    assert_int_equal(gpu_threads(device), 256);
    assert_int_equal(gpu_run(&call, 0, 1, 1), TR_OK);
    begin(&call);
    assert_int_equal(gpu_run(&call, 1, -1, 1), TR_OK);
    begin(&call);
    assert_int_equal(gpu_run(&call, 1, 1, 0), TR_OK);
    assert_int_equal(host.launches, 0);
    begin(&call);
    assert_int_equal(gpu_run(&call, INT32_MAX, 65535, 1), TR_OK);
    assert_int_equal(host.launches, 1);
    assert_true(host.last.groups[0] == INT32_MAX && host.last.groups[1] == 65535 && host.last.groups[2] == 1);
    begin(&call);
    assert_int_equal(gpu_run(&call, 3, 65536, 65540), TR_OK);
    assert_int_equal(host.launches, 5);
    assert_true(host.last.first[0] == 0 && host.last.first[1] == 65535 && host.last.first[2] == 65535);
    assert_true(host.last.groups[0] == 3 && host.last.groups[1] == 1 && host.last.groups[2] == 5);
    for (int axis = 0; axis < 3; axis++) {
        const int64_t large = (int64_t)INT32_MAX + 1;
        begin(&call);
        assert_int_equal(gpu_run(&call, axis == 0 ? large : 1, axis == 1 ? large : 1, axis == 2 ? large : 1),
                         TR_EUNSUPPORTED);
        assert_message_has("any in ");
        assert_message_has("more than 2147483647 are too many for a gpu");
    }
    begin(&call);
    fail_at("launch", 1);
    assert_int_equal(gpu_run(&call, 1, 65536, 1), TR_EPEER);
    assert_int_equal(host.launches, 6);
    host.fails = NULL;
    begin(&call);
    assert_int_equal(gpu_run_each(&call, 257), TR_OK);
    assert_int_equal(host.last.groups[0], 2);
    assert_int_equal(host.last.threads, 256);
    /* 2^shift columns for each line of a group. */
    static const int shifts[][2] = {{1, 0}, {2, 1}, {3, 2}, {4, 2}, {128, 7}, {129, 8}, {256, 8}, {1000, 8}};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++)
        assert_int_equal(gpu_shift(device, shifts[i][0]), shifts[i][1]);
    begin(&call);
    assert_int_equal(gpu_run_lines(&call, 3, 33, 17), TR_OK);
    assert_true(host.last.groups[0] == 2 && host.last.groups[1] == 3);
}

static void sizes_must_fit(void **state)
{
    (void)state;
    struct gpu_call call;
    begin(&call);
    gpu_size(&call, INT32_MAX);
    gpu_int(&call, -3);
    gpu_uint(&call, 4000000000u);
    gpu_float(&call, 0.5f);
    gpu_memory(&call, NULL, 4);
    assert_int_equal(gpu_run_each(&call, 1), TR_OK);
    assert_int_equal(host.last.count, 6);
    int32_t number;
    uint32_t natural;
    float real;
    memcpy(&number, host.argument[0].value, 4);
    assert_int_equal(number, INT32_MAX);
    memcpy(&number, host.argument[1].value, 4);
    assert_int_equal(number, -3);
    memcpy(&natural, host.argument[2].value, 4);
    assert_true(natural == 4000000000u);
    memcpy(&real, host.argument[3].value, 4);
    assert_true(real == 0.5f);
    assert_true(!host.argument[4].block && host.argument[4].size == 0 && host.argument[5].size == 8);
    begin(&call);
    gpu_size(&call, (int64_t)INT32_MAX + 1);
    gpu_size(&call, (int64_t)INT32_MAX + 2);
    assert_int_equal(gpu_run_each(&call, 1), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "any of 2147483648: more than 2147483647 are too many for a gpu");
    assert_int_equal(host.launches, 1);
    fail_at("kernel", 0);
    struct gpu_call other;
    gpu_begin(&other, device, "elementwise", "", "another");
    assert_int_equal(gpu_run_each(&other, 1), TR_EPEER);
    assert_int_equal(host.launches, 1);
}

/* Leaves are combined into nodes, unless each is one. */
static void leaves_become_nodes(void **state)
{
    (void)state;
    static const int64_t row[] = {0, 2, 5, 9};
    static const int32_t each[] = {0, 1, 2, 3}, two[] = {0, 2, 3};
    struct tr_cut cut = {3, row, 3, each, 50};
    float *memory, *out;
    int64_t stride;
    assert_int_equal(tr_device_alloc(device, 200 * sizeof(float), (void **)&memory), TR_OK);
    out = memory + 7;
    assert_ptr_equal(gpu_leaves(&cut, 20, out, memory, &stride), out);
    assert_int_equal(stride, 50);
    assert_int_equal(gpu_tree(device, &cut, 20, out, memory), TR_OK);
    assert_int_equal(host.launches, 0);
    cut.nodes = 2;
    cut.bound = two;
    assert_ptr_equal(gpu_leaves(&cut, 20, out, memory, &stride), memory);
    assert_int_equal(stride, 20);
    assert_int_equal(gpu_tree(device, &cut, 300, out, memory + 3), TR_OK);
    assert_int_equal(host.launches, 1);
    assert_string_equal(host.last.kernel, "tree");
    assert_true(host.last.groups[0] == 2 && host.last.groups[1] == 2);
    /* width, nodes, leaves, stride, nodes' sums: arrays are a block and a place in it */
    static const int64_t numbers[][2] = {{0, 300}, {2, 0}, {4, 3}, {5, 50}, {7, 7}};
    assert_int_equal(host.last.count, 8);
    for (int i = 0; i < 5; i++) {
        int64_t number;
        memcpy(&number, host.argument[numbers[i][0]].value, sizeof number);
        assert_int_equal(number, numbers[i][1]);
    }
    assert_memory_equal(host.argument[1].block, two, sizeof two);
    assert_ptr_equal(host.argument[3].block, host.argument[6].block);
    struct gpu_cut there;
    assert_int_equal(gpu_cut(device, &cut, &there), TR_OK);
    expect_table(there.row, row, sizeof row);
    expect_table(there.bound, two, sizeof two);
    tr_device_free(device, memory);
}

/* A list that uses a block goes with it, once the device is done with it. */
static void lists_run_before_they_are_freed(void **state)
{
    (void)state;
    void *first, *second;
    float number;
    tr_device_destroy(&device);
    host.info.lists = true;
    device = host_open(NULL, false);
    assert_int_equal(tr_device_alloc(device, 64, &first), TR_OK);
    assert_int_equal(tr_device_alloc(device, 64, &second), TR_OK);
    for (int turn = 0; turn < 6; turn++) {
        const struct tr_op_fill fill = {16, (float)turn, first};
        const struct tr_op_fill again = {16, 3, first};
        const struct tr_op_scale scale = {16, 2, first, second};
        assert_int_equal(tr_device_fill(device, turn == 0 ? &fill : &again), TR_OK);
        assert_int_equal(tr_device_scale(device, &scale), TR_OK);
        assert_int_equal(tr_device_to_host(device, &number, second, sizeof number), TR_OK);
        assert_true(number == (turn == 0 ? 0 : 6));
    }
    assert_int_equal(host.lists, 1);
    assert_true(host.running);
    const int waits = host.waits;
    tr_device_free(device, second);
    assert_int_equal(host.lists, 0);
    assert_int_equal(host.waits, waits + 1);
    tr_device_free(device, first);
    assert_int_equal(host.waits, waits + 1);
}

/* ---- programs ---- */

static void fill_some(tr_status expected)
{
    void *memory;
    host.how = TR_EPEER;
    assert_int_equal(tr_device_alloc(device, 64, &memory), TR_OK);
    const struct tr_op_fill fill = {16, 1, memory};
    assert_int_equal(tr_device_fill(device, &fill), expected);
    tr_device_free(device, memory);
}

static void programs_are_built_once(void **state)
{
    (void)state;
    void *one, *two, *other;
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "", "one", &one), TR_OK);
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "", "two", &two), TR_OK);
    assert_int_equal(host.builds, 1);
    assert_int_equal(host.kernels, 2);
    assert_string_equal(host.options, "-DD_THREADS=256 ");
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "", "one", &other), TR_OK);
    assert_ptr_equal(one, other);
    assert_int_equal(host.kernels, 2);
    gpu_of(device)->own_fma = gpu_of(device)->info.processor = gpu_of(device)->info.own_division = true;
    assert_int_equal(gpu_program_kernel(gpu_of(device), "elementwise", "-DX", "one", &other), TR_OK);
    assert_string_equal(host.options, "-DD_THREADS=256 -DD_KEEP_ROLLED -DD_OWN_DIVISION -DD_OWN_FMA -DX");
    assert_int_equal(gpu_program_kernel(gpu_of(device), "reduction", "", "one", &other), TR_OK);
    assert_int_equal(host.builds, 3);
    /* What failed is tried again. */
    static const char *const functions[] = {"build", "kernel"};
    for (int i = 0; i < 2; i++) {
        fail_at(functions[i], 0);
        assert_int_equal(gpu_program_kernel(gpu_of(device), "norm", "", "one", &other), TR_EPEER);
        host.fails = NULL;
    }
    assert_int_equal(host.programs, 4);
    assert_int_equal(gpu_program_kernel(gpu_of(device), "norm", "", "one", &other), TR_OK);
    assert_int_equal(host.programs, 4);
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = gpu_program_kernel(gpu_of(device), "softmax", "-DY", "one", &other);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
    }
    assert_int_equal(host.programs, 5);
    gpu_programs_release(gpu_of(device));
    assert_int_equal(host.programs + host.kernels, 0);
    fill_some(TR_OK); /* and they are built anew */
}

static int reopen(const char *cache)
{
    host.fails = NULL;
    tr_device_destroy(&device);
    host.builds = host.from_binary = 0;
    device = host_open(cache, false);
    fill_some(TR_OK);
    return 10 * host.builds + host.from_binary;
}

enum { BUILT = 10, KEPT = 1 };

/* A program is kept for a device of that platform, maker, name and driver, and its options. */
static void programs_are_kept(void **state)
{
    (void)state;
    char cache[SCRATCH_PATH], place[SCRATCH_PATH];
    scratch_make(place);
    scratch_join(cache, place, "deep/cache");
    assert_int_equal(reopen(cache), BUILT);
    assert_int_equal(reopen(cache), KEPT);
    char *const texts[] = {host.info.platform, host.info.vendor, host.info.name, host.info.driver};
    for (int i = 0; i < 4; i++) {
        texts[i][0] = 'A';
        assert_int_equal(reopen(cache), BUILT);
        assert_int_equal(reopen(cache), KEPT);
    }
    host.info.group = 100;
    assert_int_equal(reopen(cache), BUILT);
    assert_string_equal(host.options, "-DD_THREADS=64 ");
    host.info.keeps_programs = true;
    assert_int_equal(reopen(cache), BUILT);
    assert_int_equal(reopen(cache), BUILT);
    host.info.keeps_programs = false;
    assert_int_equal(reopen(cache), KEPT);
    assert_int_equal(reopen(NULL), BUILT);
    /* One whose binary is not to be had is not kept. */
    host.info.group = 200;
    assert_int_equal(reopen(cache), BUILT);
    assert_string_equal(host.options, "-DD_THREADS=128 ");
    scratch_remove(place);
    fail_at("binary", 0);
    tr_device_destroy(&device);
    device = host_open(cache, false);
    fill_some(TR_OK);
    assert_int_equal(reopen(cache), BUILT);
    scratch_remove(place);
}

/* ---- times ---- */

static void times_become_spans(void **state)
{
    (void)state;
    static const struct tr_timeline_settings all = {100, 0, INT64_MAX, true};
    tr_timeline *timeline;
    void *memory;
    float numbers[16];
    int64_t count;
    tr_device_destroy(&device);
    device = host_open(NULL, true);
    snprintf(device->name, sizeof device->name, "host:0");
    assert_true(device->timed);
    assert_int_equal(tr_timeline_create(&all, &timeline), TR_OK);
    assert_int_equal(tr_device_alloc(device, 64, &memory), TR_OK);
    const struct tr_op_fill fill = {16, 1, memory};
    tr_timeline_enter(timeline, "main");
    assert_int_equal(tr_device_fill(device, &fill), TR_OK); /* in no span */
    assert_int_equal(host.events, 0);
    for (int clock = 0; clock < 2; clock++) {
        /* A clock that is far ahead is known from the first commands; one that changes, anew. */
        host.ahead = clock ? -70000000000 : 5000000000;
        const int64_t before = tr_timeline_clock();
        tr_span_begin(TR_ACTIVITY_FORWARD, "layer");
        assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        assert_int_equal(tr_device_to_host(device, numbers, memory, sizeof numbers), TR_OK);
        assert_int_equal(tr_device_to_device(device, memory, numbers, sizeof numbers), TR_OK);
        fail_at("launch", 0);
        assert_int_equal(tr_device_fill(device, &fill), TR_EPEER);
        host.fails = NULL;
        assert_int_equal(tr_device_to_host_beside(device, numbers, memory, sizeof numbers), TR_OK);
        tr_span_end();
        assert_int_equal(host.events, 4);
        assert_int_equal(tr_timeline_lanes(timeline), 1 + clock);
        assert_int_equal(tr_device_wait(device), TR_OK);
        const int64_t after = tr_timeline_clock();
        assert_int_equal(host.events, 0);
        assert_int_equal(tr_timeline_lanes(timeline), 2);
        tr_lane *lane = tr_timeline_lane(timeline, 1);
        assert_string_equal(tr_lane_name(lane), "host:0");
        const struct tr_span *span = tr_lane_spans(lane, &count);
        assert_int_equal(count, 4 * (clock + 1));
        for (int64_t i = 4 * clock; i < count; i++) {
            assert_int_equal(span[i].end - span[i].begin, 200);
            assert_string_equal(tr_lane_text(lane, span[i].name), "layer");
            assert_true(span[i].begin >= before && span[i].begin <= after + 100);
        }
    }
    /* What cannot be told is forgotten, and so is what nobody waits for. */
    for (int waits = 0; waits < 2; waits++) {
        tr_span_begin(TR_ACTIVITY_FORWARD, "layer");
        for (int i = 0; i < 3; i++) assert_int_equal(tr_device_fill(device, &fill), TR_OK);
        tr_span_end();
        if (waits) break;
        fail_at("times", 1);
        assert_int_equal(tr_device_wait(device), TR_EPEER);
        host.fails = NULL;
        assert_int_equal(host.events, 0);
    }
    refuse_begin(0);
    tr_span_begin(TR_ACTIVITY_FORWARD, "layer");
    tr_span_end();
    refuse_end();
    tr_device_free(device, memory);
    tr_timeline_leave();
    assert_int_equal(host.events, 3);
    tr_device_destroy(&device);
    assert_int_equal(host.events, 0);
    tr_lane_spans(tr_timeline_lane(timeline, 1), &count);
    assert_int_equal(count, 8);
    tr_timeline_destroy(&timeline);
}

/* ---- opening ---- */

static void opening_may_fail(void **state)
{
    (void)state;
    const struct tr_device_choice choice = {.name = "host", .cache = "/nowhere"};
    tr_device *other;
    host.info.lists = true;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        other = device;
        refuse_begin(at);
        const tr_status status = gpu_device_create(&gpu_api_host, &choice, &other);
        done = refuse_end();
        /* Without memory for lists there are none. */
        assert_true(status == TR_OK || (!done && status == TR_ENOMEM));
        assert_int_equal(other != NULL, status == TR_OK);
        if (status == TR_OK) assert_true(gpu_of(other)->session && gpu_of(other)->cache);
        tr_device_destroy(&other);
        assert_int_equal(tr_alloc_live(), live);
    }
    static const char *const functions[] = {"open", "self_test"};
    for (int i = 0; i < 2; i++) {
        fail_at(functions[i], 0);
        host.self_tests = 0;
        assert_int_equal(gpu_device_create(&gpu_api_host, &choice, &other), TR_EPEER);
        assert_int_equal(host.self_tests, i);
        assert_null(other);
    }
    const struct tr_device_choice second = {.name = "host", .number = 1};
    assert_int_equal(gpu_device_create(&gpu_api_host, &second, &other), TR_ENOTFOUND);
    assert_message_has("there is one host");
    snprintf(host.info.refusal, sizeof host.info.refusal, "it guesses");
    assert_int_equal(gpu_device_create(&gpu_api_host, &choice, &other), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "host:0 (a host) cannot give the bits of other devices: it "
                                            "guesses; choose another device");
    assert_null(other);
}

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, close_host)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(blocks_are_found_by_their_addresses),
        ON_HOST(memory_is_limited),
        ON_HOST(addresses_are_given_back),
        ON_HOST(scratch_grows),
        ON_HOST(tables_are_found_by_their_contents),
        ON_HOST(tables_that_fail_are_none),
        ON_HOST(marks_are_reached_in_order),
        ON_HOST(launches_have_no_more_groups_than_may_be),
        ON_HOST(sizes_must_fit),
        ON_HOST(leaves_become_nodes),
        ON_HOST(lists_run_before_they_are_freed),
        ON_HOST(programs_are_built_once),
        ON_HOST(programs_are_kept),
        ON_HOST(times_become_spans),
        ON_HOST(opening_may_fail),
    };
    return cmocka_run_group_tests_name("gpu on the host", tests, NULL, NULL);
}
