/* The layer for CUDA on the stand-in for its driver: the order of its streams, the lives of what it makes,
 * and what becomes of a call that fails, of several devices, and of one that is lost. That kernels get their
 * arguments is shown by device.cuda_equality; lists by device.gpu_lists_cuda.
 */
#include "device/gpu/cuda/internal.h"
#include "device/gpu/internal.h"
#include "device/gpu/kinds.h"
#include "device/gpu/opencl/internal.h"
#include "scratch.h"
#include "support/cuda/control.h"
#include "support/gpu/opencl.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct stand_in *driver;

static tr_device *open_device(const char *name)
{
    const struct tr_device_choice choice = {.name = name, .cache = TEST_PROGRAMS};
    tr_device *device;
    if (tr_device_open(&choice, &device) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(driver->stand_in_depth(), 0);
    return device;
}

static void *room(tr_device *device, size_t bytes)
{
    void *memory;
    assert_int_equal(tr_device_alloc(device, bytes, &memory), TR_OK);
    return memory;
}

static void fill(tr_device *device, void *memory, int64_t count, float value)
{
    const struct tr_op_fill op = {count, value, memory};
    assert_int_equal(tr_device_fill(device, &op), TR_OK);
}

static void add(tr_device *device, int64_t count, void *a, void *b, void *y)
{
    const struct tr_op_add op = {count, a, b, y};
    assert_int_equal(tr_device_add(device, &op), TR_OK);
}

static void expect_all(const float *numbers, int64_t count, float expected)
{
    for (int64_t i = 0; i < count; i++)
        if (numbers[i] != expected)
            fail_msg("number %lld is %g, should be %g", (long long)i, (double)numbers[i], (double)expected);
}

/* ---- order ---- */

enum { COUNT = 1000 };

/* Nothing is done where it is only enqueued: neither launches nor copies, to memory of whatever kind. What a
   copy brings is there once it was waited for, and not before. */
static void nothing_waits_that_need_not(void **state)
{
    tr_device *device = open_device("cuda");
    float numbers[COUNT], later[COUNT], *pinned;
    void *memory = room(device, sizeof numbers), *other = room(device, sizeof numbers);
    tr_event event;
    (void)state;
    assert_int_equal(tr_device_alloc_pinned(device, sizeof numbers, (void **)&pinned), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    for (int i = 0; i < COUNT; i++) numbers[i] = later[i] = pinned[i] = -1;
    int64_t done = driver->stand_in_done();
    fill(device, memory, COUNT, 3);
    assert_int_equal(tr_device_to_host(device, numbers, memory, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_to_host_beside(device, pinned, memory, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    add(device, COUNT, memory, memory, other);
    assert_int_equal(tr_device_to_host(device, later, other, sizeof later), TR_OK);
    assert_int_equal(driver->stand_in_done(), done);
    expect_all(numbers, COUNT, -1);
    expect_all(pinned, COUNT, -1);
    assert_int_equal(tr_device_wait_for(device, event), TR_OK);
    expect_all(numbers, COUNT, 3);
    expect_all(pinned, COUNT, 3);
    expect_all(later, COUNT, -1);
    assert_int_equal(tr_device_wait(device), TR_OK);
    expect_all(later, COUNT, 6);
    tr_device_free_pinned(device, pinned);
    tr_device_free(device, memory);
    tr_device_free(device, other);
    tr_device_destroy(&device);
}

/* More small copies to memory of any kind than there is room for on their way; and large ones. */
static void every_copy_arrives(void **state)
{
    enum { MANY = 300, LARGE = 100000 };
    tr_device *device = open_device("cuda");
    static float numbers[MANY][COUNT], large[LARGE];
    float *memory = room(device, sizeof large);
    tr_event event;
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        memset(numbers, 0, sizeof numbers);
        for (int i = 0; i < MANY; i++) {
            fill(device, memory, COUNT, (float)(i + turn));
            assert_int_equal(tr_device_to_host(device, numbers[i], memory, sizeof numbers[i]), TR_OK);
            if (i == MANY / 2) assert_int_equal(tr_device_record(device, &event), TR_OK);
        }
        fill(device, memory, LARGE, 5);
        assert_int_equal(tr_device_to_host(device, large, memory, sizeof large), TR_OK);
        bool reached = false;
        while (!reached) assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
        for (int i = 0; i <= MANY / 2; i++) expect_all(numbers[i], COUNT, (float)(i + turn));
        assert_int_equal(tr_device_wait(device), TR_OK);
        for (int i = 0; i < MANY; i++) expect_all(numbers[i], COUNT, (float)(i + turn));
        expect_all(large, LARGE, 5);
    }
    tr_device_free(device, memory);
    tr_device_destroy(&device);
}

/* What is freed is kept as long as what was enqueued before needs it, on the queue and beside it. The
   stand-in ends a process that uses memory after it was freed. */
static void freeing_waits_for_nothing_and_breaks_nothing(void **state)
{
    tr_device *device = open_device("cuda");
    enum { TURNS = 20 };
    float *pinned, numbers[COUNT];
    void *sum = room(device, sizeof numbers);
    (void)state;
    assert_int_equal(tr_device_alloc_pinned(device, TURNS * sizeof numbers, (void **)&pinned), TR_OK);
    fill(device, sum, COUNT, 0);
    assert_int_equal(tr_device_wait(device), TR_OK);
    int64_t done = driver->stand_in_done(), live = driver->stand_in_live();
    for (int i = 0; i < TURNS; i++) {
        void *memory = room(device, sizeof numbers);
        fill(device, memory, COUNT, (float)i);
        add(device, COUNT, sum, memory, sum);
        assert_int_equal(
            tr_device_to_host_beside(device, pinned + (ptrdiff_t)i * COUNT, memory, sizeof numbers), TR_OK);
        tr_device_free(device, memory);
    }
    assert_int_equal(driver->stand_in_done(), done);
    assert_int_equal(tr_device_to_host(device, numbers, sum, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    expect_all(numbers, COUNT, TURNS * (TURNS - 1) / 2);
    for (int i = 0; i < TURNS; i++) expect_all(pinned + (ptrdiff_t)i * COUNT, COUNT, (float)i);
    assert_in_range(driver->stand_in_live(), live, live + 3); /* the stream for copies, and a list */
    tr_device_free_pinned(device, pinned);
    tr_device_free(device, sum);
    tr_device_destroy(&device);
}

/* What comes again becomes a graph, which is launched again before it was done. */
static void what_comes_again_is_a_graph(void **state)
{
    tr_device *device = open_device("cuda");
    float numbers[COUNT];
    void *sum = room(device, sizeof numbers), *one = room(device, sizeof numbers);
    tr_event event;
    (void)state;
    fill(device, sum, COUNT, 0);
    fill(device, one, COUNT, 1);
    assert_int_equal(tr_device_wait(device), TR_OK);
    int64_t graphs = driver->stand_in_graphs();
    for (int step = 0; step < 20; step++) {
        add(device, COUNT, sum, one, sum);
        add(device, COUNT, one, sum, sum);
        assert_int_equal(tr_device_record(device, &event), TR_OK);
    }
    assert_int_equal(tr_device_to_host(device, numbers, sum, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    expect_all(numbers, COUNT, 40);
    assert_int_equal(driver->stand_in_graphs() - graphs, 17);
    tr_device_free(device, sum);
    tr_device_free(device, one);
    tr_device_destroy(&device);
}

/* What is alike becomes one that is changed, also before it was done: what was enqueued stays as it was. */
static void what_is_alike_is_a_graph_that_changes(void **state)
{
    enum { STEPS = 20, ALIKE = 6 };
    tr_device *device = open_device("cuda");
    float numbers[COUNT];
    void *sum = room(device, sizeof numbers), *one = room(device, sizeof numbers);
    tr_event event;
    (void)state;
    fill(device, sum, COUNT, 0);
    fill(device, one, COUNT, 1);
    assert_int_equal(tr_device_wait(device), TR_OK);
    int64_t graphs = driver->stand_in_graphs(), changes = driver->stand_in_changes();
    for (int step = 0; step < STEPS; step++) {
        add(device, COUNT - step, sum, one, sum);
        add(device, COUNT - step, one, sum, sum);
        assert_int_equal(tr_device_record(device, &event), TR_OK);
    }
    assert_int_equal(driver->stand_in_graphs(), graphs);
    assert_int_equal(tr_device_to_host(device, numbers, sum, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(numbers[i] == (float)(2 * (COUNT - i < STEPS ? COUNT - i : STEPS)));
    assert_int_equal(driver->stand_in_graphs() - graphs, STEPS - ALIKE);
    assert_int_equal(driver->stand_in_changes() - changes, 2 * (STEPS - ALIKE));
    tr_device_free(device, sum);
    tr_device_free(device, one);
    tr_device_destroy(&device);
}

/* ---- memory ---- */

/* Where blocks are freed later, what is freed counts once there is no other room. */
static void what_was_freed_is_had_again(void **state)
{
    tr_device *device = open_device("cuda");
    const size_t bytes = (size_t)400 << 20; /* of 512 MiB */
    (void)state;
    for (int i = 0; i < 3; i++) {
        void *memory = room(device, bytes);
        fill(device, memory, 4, 1);
        tr_device_free(device, memory);
    }
    tr_device_destroy(&device);
}

/* ---- a call that fails ---- */

/* A little of everything; what is enqueued is waited for. Host memory outlives the device. */
static tr_status do_all(tr_device *device, float *numbers, float *got)
{
    void *memory = NULL, *pinned = NULL;
    tr_event event;
    bool reached;
    tr_status status = tr_device_alloc(device, COUNT * sizeof *numbers, &memory);
    if (status == TR_OK) status = tr_device_alloc_pinned(device, COUNT * sizeof *numbers, &pinned);
    for (int turn = 0; turn < 5 && status == TR_OK; turn++) {
        const struct tr_op_fill op = {COUNT, 2, memory};
        const struct tr_op_add twice = {COUNT, memory, memory, memory};
        if (turn == 0) status = tr_device_to_device(device, memory, numbers, COUNT * sizeof *numbers);
        if (status == TR_OK) status = tr_device_fill(device, &op);
        if (status == TR_OK) status = tr_device_add(device, &twice);
        if (status == TR_OK) status = tr_device_record(device, &event);
        if (status == TR_OK) status = tr_device_reached(device, event, &reached);
        if (status == TR_OK) status = tr_device_wait_for(device, event);
    }
    if (status == TR_OK) status = tr_device_to_host_beside(device, pinned, memory, COUNT * sizeof *numbers);
    if (status == TR_OK) status = tr_device_to_host(device, got, memory, COUNT * sizeof *numbers);
    if (status == TR_OK) status = tr_device_record(device, &event);
    if (status == TR_OK) status = tr_device_wait(device);
    if (status == TR_OK) expect_all(got, COUNT, 4);
    if (status == TR_OK) expect_all(pinned, COUNT, 4);
    tr_device_free_pinned(device, pinned);
    tr_device_free(device, memory);
    return status;
}

/* Whichever call fails: a failure with the name of the device and of the error, or none where the layer can
   do without; nothing is left behind, nothing is wrong, and the process goes on. */
static void any_call_may_fail(void **state)
{
    const bool timed = *state;
    static float numbers[COUNT], got[COUNT];
    int failures = 0;
    tr_device *first = open_device("cuda"); /* what is loaded once */
    tr_device_destroy(&first);
    for (int64_t at = 0;; at++) {
        const struct tr_device_choice choice = {.name = "cuda", .cache = TEST_PROGRAMS, .timed = timed};
        int64_t live = tr_alloc_live(), there = driver->stand_in_live();
        tr_device *device = NULL;
        driver->stand_in_fail(at, CUDA_ERROR_INVALID_VALUE);
        tr_status status = tr_device_open(&choice, &device);
        if (status == TR_OK) status = do_all(device, numbers, got);
        char said[TR_MESSAGE_SIZE];
        snprintf(said, sizeof said, "%s", status == TR_OK ? "" : tr_error_message());
        tr_device_destroy(&device);
        const char *failed = driver->stand_in_failed();
        driver->stand_in_fail(-1, 0);
        if (!failed) break;
        failures += status != TR_OK;
        if (status == TR_EPEER && (!strstr(said, "CUDA_ERROR_INVALID_VALUE: invalid argument") ||
                                   !(strstr(said, "stand-in for a GPU") || strstr(said, "CUDA device 0"))))
            fail_msg("%s failed: \"%s\"", failed, said);
        if (status != TR_OK && !said[0]) fail_msg("%s failed, and nothing is said", failed);
        if (driver->stand_in_depth() != 0) fail_msg("%s failed: a context is left current", failed);
        if (driver->stand_in_live() != there)
            fail_msg("%s failed: %lld things are left at the driver", failed,
                     (long long)(driver->stand_in_live() - there));
        if (tr_alloc_live() != live)
            fail_msg("%s failed: %lld allocations are left", failed, (long long)(tr_alloc_live() - live));
    }
    assert_true(failures > 40);
}

/* ---- a device that is lost ---- */

static void a_lost_device_is_named_and_given_back(void **state)
{
    int64_t live = tr_alloc_live(), there = driver->stand_in_live();
    static float numbers[COUNT];
    tr_device *device = open_device("cuda");
    void *memory = room(device, sizeof numbers), *pinned;
    tr_event event;
    (void)state;
    assert_int_equal(tr_device_alloc_pinned(device, sizeof numbers, &pinned), TR_OK);
    fill(device, memory, COUNT, 1);
    assert_int_equal(tr_device_to_host(device, numbers, memory, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_to_host_beside(device, pinned, memory, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    driver->stand_in_lose(1);
    assert_int_equal(tr_device_wait_for(device, event), TR_EPEER);
    assert_non_null(strstr(tr_error_message(), "stand-in for a GPU: the device failed computing "
                                               "(CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure)"));
    assert_int_equal(tr_device_wait(device), TR_EPEER);
    tr_device_free_pinned(device, pinned);
    tr_device_free(device, memory);
    tr_device_destroy(&device);
    expect_all(numbers, COUNT, 0); /* of a copy that never came */
    driver->stand_in_lose(0);
    assert_int_equal(driver->stand_in_live(), there);
    assert_int_equal(tr_alloc_live(), live);
    device = open_device("cuda");
    tr_device_destroy(&device);
}

/* ---- several devices ---- */

static void devices_have_memory_of_their_own(void **state)
{
    tr_device *device[2] = {open_device("cuda:0"), open_device("cuda:1")};
    void *memory[2];
    float numbers[2][COUNT];
    (void)state;
    for (int i = 0; i < 2; i++) memory[i] = room(device[i], sizeof numbers[i]);
    for (int i = 0; i < 2; i++) fill(device[i], memory[i], COUNT, (float)(i + 7));
    for (int i = 0; i < 2; i++)
        assert_int_equal(tr_device_to_host(device[i], numbers[i], memory[i], sizeof numbers[i]), TR_OK);
    for (int i = 1; i >= 0; i--) assert_int_equal(tr_device_wait(device[i]), TR_OK);
    for (int i = 0; i < 2; i++) {
        expect_all(numbers[i], COUNT, (float)(i + 7));
        tr_device_free(device[i], memory[i]);
        tr_device_destroy(&device[i]);
    }
    const struct tr_device_choice third = {.name = "cuda:2"};
    assert_int_equal(tr_device_open(&third, &device[0]), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "there is no CUDA device 2"));
    void *session;
    assert_int_equal(gpu_api_cuda.open(2, false, &session), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "there is no CUDA device 2"));
    assert_int_equal(tr_device_kind_cuda.count(), 2);
}

/* Two of one device, as ranks that are threads have: memory, programs and marks are the session's. */
static void sessions_share_a_device(void **state)
{
    tr_device *one = open_device("cuda:0"), *other = open_device("cuda:0");
    float numbers[COUNT];
    (void)state;
    void *first = room(one, sizeof numbers), *second = room(other, sizeof numbers);
    fill(one, first, COUNT, 1);
    fill(other, second, COUNT, 2);
    tr_device_free(one, first);
    tr_device_destroy(&one);
    assert_int_equal(tr_device_to_host(other, numbers, second, sizeof numbers), TR_OK);
    assert_int_equal(tr_device_wait(other), TR_OK);
    expect_all(numbers, COUNT, 2);
    tr_device_free(other, second);
    tr_device_destroy(&other);
    assert_int_equal(driver->stand_in_depth(), 0);
}

/* ---- each GPU once ---- */

static int32_t (*device_info)(cl_device device, uint32_t what, size_t size, void *value, size_t *bytes);
static uint32_t place[4];

/* Says of OpenCL's devices that they are GPUs, and where they are. */
static int32_t tell_place(cl_device device, uint32_t what, size_t size, void *value, size_t *bytes)
{
    const uint64_t gpu = 4;
    const void *answer = what == CL_DEVICE_TYPE ? (const void *)&gpu : place;
    size_t length = what == CL_DEVICE_TYPE ? sizeof gpu : sizeof place;
    if (what != CL_DEVICE_TYPE && what != CL_DEVICE_PCI_BUS_INFO_KHR)
        return device_info(device, what, size, value, bytes);
    if (size < length) return -30;
    memcpy(value, answer, length);
    if (bytes) *bytes = length;
    return CL_SUCCESS;
}

static void expect_gpu(const char *name, const char *expected)
{
    char found[TR_DEVICE_NAME] = "none";
    tr_status status = tr_device_find(name, found);
    assert_int_equal(status, strcmp(expected, "none") == 0 ? TR_ENOTFOUND : TR_OK);
    assert_string_equal(found, expected);
}

/* A processor is no GPU; a GPU that both interfaces have is CUDA's; others are OpenCL's. */
static void a_gpu_is_had_by_cuda_first(void **state)
{
    (void)state;
    expect_gpu("gpu", "cuda:0");
    expect_gpu("gpu:1", "cuda:1");
    char text[256];
    assert_int_equal(tr_device_kind_gpu.describe(2, text, sizeof text), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), "there is no GPU 2; there are fewer, counted from 0");
    assert_int_equal(tr_device_kind_cuda.describe(2, text, sizeof text), TR_ENOTFOUND);
    assert_int_equal(tr_device_kind_opencl.describe(999, text, sizeof text), TR_ENOTFOUND);
    expect_gpu("gpu:2", "none");
    assert_int_equal(tr_device_kind_gpu.count(), 2);
    device_info = opencl_library.clGetDeviceInfo;
    opencl_library.clGetDeviceInfo = tell_place;
    place[1] = 11; /* that of cuda:1 */
    expect_gpu("gpu:2", "none");
    place[1] = 12;
    expect_gpu("gpu:2", "opencl:0");
    assert_int_equal(tr_device_kind_gpu.count(), 3);
    place[1] = 10;
    snprintf(cuda_library.compiler_missing, sizeof cuda_library.compiler_missing, "for this test");
    expect_gpu("gpu", "opencl:0");
    expect_gpu("gpu:1", "none");
    assert_int_equal(tr_device_kind_gpu.describe(1, text, sizeof text), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), "there is no GPU 1; there is 1, counted from 0");
    cuda_library.compiler_missing[0] = '\0';
    opencl_library.clGetDeviceInfo = device_info;
    const struct tr_device_choice choice = {.name = "gpu", .cache = TEST_PROGRAMS};
    tr_device *device;
    assert_int_equal(tr_device_open(&choice, &device), TR_OK);
    assert_string_equal(device->name, "cuda:0");
    tr_device_destroy(&device);
}

/* ---- the compiler ---- */

static tr_status build(const char *text, char said[TR_MESSAGE_SIZE])
{
    char *sources;
    assert_int_equal(gpu_sources_unpack(&sources), TR_OK);
    const char *parts[] = {gpu_source(sources, gpu_prelude[0]), text};
    const struct gpu_program_source source = {
        .name = "of a test", .parts = parts, .count = 2, .options = "-DD_THREADS=256"};
    void *session, *program;
    assert_int_equal(gpu_api_cuda.open(0, false, &session), TR_OK);
    tr_status status = gpu_api_cuda.build(session, &source, &program);
    snprintf(said, TR_MESSAGE_SIZE, "%s", status == TR_OK ? "" : tr_error_message());
    if (status == TR_OK) gpu_api_cuda.free_program(session, program);
    gpu_api_cuda.close(session);
    tr_free(sources);
    return status;
}

static void what_the_compiler_says_is_told(void **state)
{
    char said[TR_MESSAGE_SIZE];
    (void)state;
    assert_int_equal(build("#error stand-in: of all things\n", said), TR_EUNSUPPORTED);
    assert_non_null(strstr(said, "its compiler refuses the kernels \"of a test\" (NVRTC_ERROR_COMPILATION): "
                                 "#error stand-in: of all things"));
}

static void bytes_that_are_no_program_are_none(void **state)
{
    static const char *const wrong[] = {"", "x", "\177EL", "\177ELF not of the stand-in",
                                        "// stand-in ptx 90\nx\ny"};
    void *session, *program;
    (void)state;
    assert_int_equal(gpu_api_cuda.open(0, false, &session), TR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct gpu_program_source source = {
            .name = "kept", .binary = wrong[i], .binary_bytes = strlen(wrong[i]) + (i > 2)};
        assert_int_equal(gpu_api_cuda.build(session, &source, &program), TR_EFORMAT);
    }
    gpu_api_cuda.close(session);
}

static int built(const char *cache)
{
    const struct tr_device_choice choice = {.name = "cuda", .cache = cache};
    tr_device *device;
    if (tr_device_open(&choice, &device) != TR_OK) fail_msg("%s", tr_error_message());
    void *memory = room(device, COUNT * sizeof(float));
    fill(device, memory, COUNT, 1);
    tr_device_free(device, memory);
    int count = gpu_of(device)->built;
    tr_device_destroy(&device);
    return count;
}

/* Programs are of an architecture: the device's own, or the greatest below that the compiler knows, in words
   from which the driver makes one. What is kept for the one is none for the other. */
static void programs_are_of_an_architecture(void **state)
{
    char directory[SCRATCH_PATH], cache[SCRATCH_PATH];
    struct gpu_info info;
    (void)state;
    scratch_make(directory);
    scratch_join(cache, directory, "programs");
    assert_int_equal(gpu_api_cuda.describe(0, &info), TR_OK);
    assert_string_equal(info.place, "0000:0a:00.0");
    assert_non_null(strstr(info.driver, "CUDA 12.4, NVRTC 12.4, sm_80"));
    int all = built(cache);
    assert_true(all > 2);
    assert_int_equal(built(cache), 0);
    const struct cuda_library library = cuda_library;
    cuda_library.arch_count = 1;
    cuda_library.archs[0] = 52;
    assert_int_equal(gpu_api_cuda.describe(0, &info), TR_OK);
    assert_non_null(strstr(info.driver, "compute_52"));
    assert_int_equal(built(cache), all);
    assert_int_equal(built(cache), 0);
    cuda_library.archs[0] = 90;
    assert_int_equal(gpu_api_cuda.describe(0, &info), TR_OK);
    assert_string_equal(info.refusal, "NVRTC 12.4 does not compile for so old a device");
    cuda_library = library;
    assert_int_equal(built(cache), 0);
    scratch_remove(directory);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits_that_need_not),
        cmocka_unit_test(every_copy_arrives),
        cmocka_unit_test(freeing_waits_for_nothing_and_breaks_nothing),
        cmocka_unit_test(what_comes_again_is_a_graph),
        cmocka_unit_test(what_is_alike_is_a_graph_that_changes),
        cmocka_unit_test(what_was_freed_is_had_again),
        {"any_call_may_fail", any_call_may_fail, NULL, NULL, NULL},
        {"any_call_of_a_timed_device_may_fail", any_call_may_fail, NULL, NULL, (void *)1},
        cmocka_unit_test(a_lost_device_is_named_and_given_back),
        cmocka_unit_test(devices_have_memory_of_their_own),
        cmocka_unit_test(sessions_share_a_device),
        cmocka_unit_test(a_gpu_is_had_by_cuda_first),
        cmocka_unit_test(what_the_compiler_says_is_told),
        cmocka_unit_test(bytes_that_are_no_program_are_none),
        cmocka_unit_test(programs_are_of_an_architecture),
    };
    if (!opencl_is_here()) return 0;
    driver = stand_in();
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
