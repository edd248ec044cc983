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
        cmocka_unit_test_setup_teardown(nonsense_sets_no_limit, make_machine, scratch_place_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
