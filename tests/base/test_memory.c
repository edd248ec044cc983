/* How much memory may still be taken, by what a system of files says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "scratch.h"

#define MIB ((int64_t)1 << 20)

/* Writes a file below the root, with its folders. */
static void put(const char *name, const char *text)
{
    char path[SCRATCH_PATH];
    char *folder = tr_path_parent(scratch_join(path, scratch_place, name));
    assert_int_equal(tr_file_make_directories(NULL, folder), TR_OK);
    tr_free(folder);
    assert_int_equal(tr_file_write_atomic(NULL, path, text, strlen(text)), TR_OK);
}

static void expect(int64_t mib, const char *where)
{
    struct tr_memory_room room;
    tr_memory_look(scratch_place, &room);
    assert_int_equal(room.free, mib * MIB);
    assert_string_equal(room.where, where);
}

static int make_machine(void **state)
{
    scratch_place_make(state);
    put("proc/meminfo",
        "MemTotal:       2097152 kB\nMemFree:          10240 kB\nMemAvailable:    1024000 kB\n"
        "Buffers:            100 kB\nSwapTotal:        204800 kB\nSwapFree:         102400 kB\n");
    return 0;
}

static void a_machine_alone(void **state)
{
    (void)state;
    expect(1100, "this machine");
    put("proc/self/cgroup", "0::/\n");
    expect(1100, "this machine");
    put("sys/fs/cgroup/memory.max", "max\n");
    expect(1100, "this machine");
}

static void groups_of_version_2(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/jobs/one\n");
    put("sys/fs/cgroup/jobs/one/memory.max", "524288000\n"); /* 500 MiB */
    expect(500, "the control group /jobs/one");
    put("sys/fs/cgroup/jobs/one/memory.current", "209715200\n"); /* 200 MiB */
    expect(300, "the control group /jobs/one");
    put("sys/fs/cgroup/jobs/one/memory.stat",
        "anon 1\nfile 7\ninactive_file 104857600\nactive_file 52428800\n");
    expect(450, "the control group /jobs/one");
    /* A group above may have less. */
    put("sys/fs/cgroup/jobs/memory.max", "104857600\n");
    put("sys/fs/cgroup/jobs/memory.current", "52428800\n");
    expect(50, "the control group /jobs");
    /* Or more than all is taken already. */
    put("sys/fs/cgroup/jobs/memory.current", "209715200\n");
    expect(0, "the control group /jobs");
    put("sys/fs/cgroup/jobs/memory.max", "max\n");
    put("sys/fs/cgroup/jobs/one/memory.max", "max\n");
    expect(1100, "this machine");
}

/* In a container the group may be known by the machine's name for it, which is not to be seen there. */
static void a_container(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/docker/0123\n");
    put("sys/fs/cgroup/memory.max", "104857600\n");
    put("sys/fs/cgroup/memory.current", "0\n");
    expect(100, "the control group /");
}

static void groups_of_version_1(void **state)
{
    (void)state;
    put("proc/self/cgroup", "9:name=systemd:/a\n8:cpu,cpuacct:/a\n4:hugetlb,memory:/slurm/job_1\n0::/\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "314572800\n");
    put("sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", "104857600\n");
    expect(200, "the control group /slurm/job_1");
    put("sys/fs/cgroup/memory/slurm/job_1/memory.stat",
        "inactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 10485760\n");
    expect(220, "the control group /slurm/job_1");
    /* A controller whose name only begins like this one is another. */
    put("proc/self/cgroup", "4:memory2:/slurm/job_1\n");
    expect(1100, "this machine");
}

/* No more of the caches can be reclaimed than is used; all that is used may be more than the limit. */
static void numbers_that_do_not_fit_together(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/one//\n");
    put("sys/fs/cgroup/one/memory.max", "524288000\n");     /* 500 MiB */
    put("sys/fs/cgroup/one/memory.current", "104857600\n"); /* 100 MiB */
    put("sys/fs/cgroup/one/memory.stat", "inactive_file 104857600\nactive_file 104857601\n");
    expect(500, "the control group /one");
    put("sys/fs/cgroup/one/memory.stat", "inactive_file 104857600\n");
    expect(500, "the control group /one");
    put("sys/fs/cgroup/one/memory.stat", "inactive_file 52428800\ninactive_files 1\nactive_file x\n");
    expect(450, "the control group /one");
    put("sys/fs/cgroup/one/memory.current", "max\n");
    expect(500, "the control group /one");
    put("sys/fs/cgroup/one/memory.current", "");
    expect(500, "the control group /one");
    put("sys/fs/cgroup/one/memory.current", "-1\n");
    expect(500, "the control group /one");
    put("sys/fs/cgroup/one/memory.max", "0\n");
    expect(0, "the control group /one");
    put("sys/fs/cgroup/one/memory.max", "4611686018427387903\n"); /* so much is none */
    expect(1100, "this machine");
}

/* A machine with both versions, and the places of a controller in a list. */
static void versions_beside_each_other(void **state)
{
    (void)state;
    static const char *const with[] = {"memory", "memory,cpu", "cpu,memory", "cpu,memory,io",
                                       "memory2,memory"};
    static const char *const without[] = {"memory2", "cpu,memory2", "xmemory", "cpu,xmemory,io", "mem,ory"};
    char line[64];
    put("proc/self/cgroup", "0::/one\n");
    put("sys/fs/cgroup/unified/one/memory.max", "314572800\n");
    expect(300, "the control group /one");
    put("sys/fs/cgroup/one/memory.max", "209715200\n");
    expect(200, "the control group /one");
    put("sys/fs/cgroup/memory/one/memory.limit_in_bytes", "104857600\n");
    expect(200, "the control group /one");
    for (size_t i = 0; i < 5; i++) {
        snprintf(line, sizeof line, "4:%s:/one\n", with[i]);
        put("proc/self/cgroup", line);
        expect(100, "the control group /one");
        snprintf(line, sizeof line, "4:%s:/one\n", without[i]);
        put("proc/self/cgroup", line);
        expect(1100, "this machine");
    }
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char group[151], path[256], line[256], where[256];
    memset(group, 'g', 150);
    group[0] = '/';
    group[150] = '\0';
    snprintf(line, sizeof line, "0::%s\n", group);
    put("proc/self/cgroup", line);
    snprintf(path, sizeof path, "sys/fs/cgroup%s/memory.max", group);
    put(path, "104857600\n");
    snprintf(where, sizeof where, "the control group %.120s", group);
    expect(100, where);
}

static void a_machine_that_says_little(void **state)
{
    (void)state;
    struct tr_memory_room room;
    put("proc/meminfo", "MemTotal: 2097152 kB\n");
    tr_memory_look(scratch_place, &room);
    assert_true(room.free == INT64_MAX);
    put("proc/meminfo", "MemAvailable: 1024 kB\n");
    expect(1, "this machine");
    put("proc/meminfo", "SwapFree: 1024 kB\nMemAvailable: 9007199254740991 kB\n");
    tr_memory_look(scratch_place, &room);
    assert_true(room.free == INT64_MAX);
    tr_memory_look(NULL, &room); /* this one */
    assert_true(room.free > 0);
}

static void nonsense_sets_no_limit(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "x", "-1\n", "0::", ":::", "0::/\n0::/\n", "4:memory\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put("proc/self/cgroup", texts[i]);
        put("sys/fs/cgroup/memory.max", "what?\n");
        put("sys/fs/cgroup/memory/memory.limit_in_bytes", texts[i][0] == '-' ? "-5\n" : "");
        expect(1100, "this machine");
    }
    struct tr_memory_room room;
    tr_memory_look("/nowhere", &room);
    assert_true(room.free == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_alone, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(groups_of_version_2, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_container, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(groups_of_version_1, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(numbers_that_do_not_fit_together, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(versions_beside_each_other, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(long_names_are_cut, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_machine_that_says_little, make_machine, scratch_place_remove),
        cmocka_unit_test_setup_teardown(nonsense_sets_no_limit, make_machine, scratch_place_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
