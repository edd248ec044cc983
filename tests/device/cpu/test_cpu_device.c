/* The cpu device as such: its threads and scratch, who does short work, what it does while it waits, and what
 * stays where it cannot be made.
 */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

#include "base/alloc.h"
#include "refuse.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_device *open_device(int threads)
{
    tr_device *device;
    if (tr_device_create("cpu", threads, "plain", &device) != TR_OK) fail_msg("%s", tr_error_message());
    return device;
}

static void it_has_the_threads_that_were_asked_for(void **state)
{
    static const char *const said[] = {"cpu (plain, 1 thread)", "cpu (plain, 2 threads)"};
    tr_device *device;
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        device = open_device(threads);
        assert_int_equal(device->threads, threads);
        assert_int_equal(tr_team_size(cpu_device_of(device)->team), threads);
        assert_string_equal(device->description, said[threads - 1]);
        assert_string_equal(device->name, "cpu");
        tr_device_destroy(&device);
    }
    device = open_device(0);
    const int processors = tr_team_processors();
    assert_int_equal(device->threads, processors < TR_TEAM_MAX ? processors : TR_TEAM_MAX);
    tr_device_destroy(&device);
    assert_int_equal(tr_device_create("cpu", 1, "mmx", &device), TR_EUNSUPPORTED);
    assert_null(device);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_device_create("cpu", 2, "plain", &device);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(device != NULL, done);
        tr_device_destroy(&device);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void memory_is_that_of_the_host(void **state)
{
    (void)state;
    tr_device *device = open_device(1);
    void *memory;
    char to[4] = "";
    assert_int_equal(tr_device_alloc(device, 100, &memory), TR_OK);
    assert_int_equal((uintptr_t)memory % 64, 0);
    assert_ptr_equal(tr_device_host_view(device, memory), memory);
    assert_int_equal(tr_device_to_device(device, memory, "abc", 4), TR_OK);
    assert_int_equal(tr_device_to_host(device, to, memory, 4), TR_OK);
    assert_string_equal(to, "abc");
    assert_int_equal(tr_device_to_host(device, NULL, NULL, 0), TR_OK);
    assert_int_equal(tr_device_wait(device), TR_OK);
    tr_device_free(device, memory);
    refuse_begin(0);
    assert_int_equal(tr_device_alloc(device, 100, &memory), TR_ENOMEM);
    refuse_end();
    assert_null(memory);
    tr_device_destroy(&device);
}

/* It grows and is kept; what was had is not lost where more is not to be had. */
static void scratch_grows(void **state)
{
    (void)state;
    tr_device *device = open_device(2);
    struct cpu_device *cpu = cpu_device_of(device);
    assert_int_equal(cpu_reserve(cpu, 0, 0), TR_OK);
    assert_null(cpu_scratch(cpu, 0));
    assert_null(cpu_shared(cpu));
    assert_int_equal(cpu_reserve(cpu, 1000, 0), TR_OK);
    void *const first = cpu_scratch(cpu, 0), *const second = cpu_scratch(cpu, 1);
    assert_true(first && second && first != second && !cpu_shared(cpu));
    assert_int_equal((uintptr_t)second % CPU_ALIGN, 0);
    assert_int_equal(cpu_reserve(cpu, 1000, 500), TR_OK);
    assert_ptr_equal(cpu_scratch(cpu, 0), first);
    assert_non_null(cpu_shared(cpu));
    assert_int_equal(cpu_reserve(cpu, 10, 10), TR_OK);
    assert_ptr_equal(cpu_scratch(cpu, 1), second);
    const int64_t live = tr_alloc_live();
    for (int at = 0; at < 3; at++) {
        refuse_begin(at);
        assert_int_equal(cpu_reserve(cpu, (size_t)2000 + (size_t)at, (size_t)2000 + (size_t)at), TR_ENOMEM);
        assert_false(refuse_end());
        assert_int_equal(tr_alloc_live(), live);
        memset(cpu_scratch(cpu, 1), 1, 1000);
        memset(cpu_shared(cpu), 1, 500);
    }
    tr_device_destroy(&device);
    assert_int_equal(cpu_round(0), 0);
    assert_int_equal(cpu_round(1), 64);
    assert_int_equal(cpu_round(64), 64);
    assert_int_equal(cpu_round(65), 128);
}

/* How many members a run has, of those that took part. */
static int sizes[2];

static void note_size(void *arguments, int member, int size)
{
    (void)arguments;
    sizes[member] = size;
}

static void short_work_is_done_by_the_caller(void **state)
{
    static void (*const runs[])(struct cpu_device *, double, tr_team_function, void *) = {cpu_run,
                                                                                          cpu_run_together};
    (void)state;
    tr_device *device = open_device(2);
    struct cpu_device *cpu = cpu_device_of(device);
    cpu->alone = 500;
    for (int i = 0; i < 2; i++) {
        sizes[0] = sizes[1] = 0;
        runs[i](cpu, 499, note_size, NULL);
        assert_true(sizes[0] == 1 && sizes[1] == 0);
        runs[i](cpu, 500, note_size, NULL);
        assert_true(sizes[0] == 2 && sizes[1] == 2);
    }
    tr_device_destroy(&device);
}

static bool do_nothing(void *arguments)
{
    (void)arguments;
    return false;
}

/* One kind of idle work at a time, where anybody waits. */
static void a_team_has_one_idle_work(void **state)
{
    (void)state;
    tr_device *device = open_device(1);
    assert_false(tr_device_set_idle(device, do_nothing, NULL));
    assert_false(tr_device_set_idle(device, NULL, NULL));
    tr_device_destroy(&device);
    device = open_device(2);
    for (int i = 0; i < 2; i++) {
        assert_true(tr_device_set_idle(device, do_nothing, NULL));
        assert_false(tr_device_set_idle(device, do_nothing, NULL));
        assert_true(tr_device_set_idle(device, NULL, NULL));
    }
    tr_device_destroy(&device);
}

static double ten_times(double seconds)
{
    return 10 * seconds;
}

/* The rate of a device is that of all its threads. */
static void the_peak_is_of_all_threads(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        tr_device *device = open_device(threads);
        struct cpu_device *cpu = cpu_device_of(device);
        assert_true(tr_device_peak(device, 0.001) > 0);
        struct cpu_kernels kernels = *cpu->kernels;
        kernels.peak = ten_times;
        cpu->kernels = &kernels;
        assert_true(tr_device_peak(device, 0.5) == 5 * threads);
        tr_device_destroy(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_threads_that_were_asked_for),
        cmocka_unit_test(memory_is_that_of_the_host),
        cmocka_unit_test(scratch_grows),
        cmocka_unit_test(short_work_is_done_by_the_caller),
        cmocka_unit_test(a_team_has_one_idle_work),
        cmocka_unit_test(the_peak_is_of_all_threads),
    };
    return cmocka_run_group_tests_name("device.cpu_device", tests, NULL, NULL);
}
