/* Every kernel under Oclgrind, a simulator that finds accesses beyond a buffer, and threads that meet in
 * memory without a barrier. Results are compared with those of ref as well.
 *
 * First it must find what was planted; then small cases of each operation run; then every kernel of every
 * source must have been among them. Skipped, visibly, where Oclgrind is not installed.
 */
#include "device/cases/cases.h"
#include "device/gpu/internal.h"
#include "device/gpu/kernels.h"
#include "scratch.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const libraries[] = {"/usr/lib/oclgrind/liboclgrind-rt-icd.so",
                                        "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
                                        "/usr/local/lib/liboclgrind-rt-icd.so"};

enum { MOST_KERNELS = 128, MOST_BYTES = 24 << 10, MOST_CASES = 5 };

static struct gpu_api api;
static tr_device *reference, *device;
static char place[SCRATCH_PATH], log_path[SCRATCH_PATH];
static char launched[MOST_KERNELS][64];
static int launched_count, launches;

static bool was_launched(const char *name)
{
    for (int i = 0; i < launched_count; i++)
        if (strcmp(launched[i], name) == 0) return true;
    return false;
}

static tr_status note_launch(void *session, const struct gpu_launch *launch)
{
    launches++;
    if (!was_launched(launch->name)) {
        assert_true(launched_count < MOST_KERNELS);
        snprintf(launched[launched_count++], sizeof launched[0], "%s", launch->name);
    }
    return gpu_api_opencl.launch(session, launch);
}

/* It does not promise what it does: exact division and fused multiply-add. */
static tr_status describe(int number, struct gpu_info *out)
{
    tr_status status = gpu_api_opencl.describe(number, out);
    out->refusal[0] = '\0';
    out->own_division = out->slow = false;
    return status;
}

static int make_devices(void **state)
{
    const struct tr_device_choice choice = {.name = "opencl"};
    (void)state;
    api = gpu_api_opencl;
    api.describe = describe;
    api.launch = note_launch;
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    if (gpu_device_create(&api, &choice, &device) != TR_OK) fail_msg("%s", tr_error_message());
    assert_non_null(strstr(gpu_of(device)->info.platform, "Oclgrind"));
    return 0;
}

static int destroy_devices(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    tr_device_destroy(&reference);
    scratch_remove(place);
    return 0;
}

/* What the simulator found in what ran since it was last asked; freed with tr_free(). */
static char *findings(void)
{
    static size_t read;
    struct tr_file_content log = {0};
    if (access(log_path, R_OK) == 0) assert_int_equal(tr_file_read(log_path, 64 << 20, &log), TR_OK);
    char *fresh = tr_strdup(log.size > read ? log.data + read : "");
    assert_non_null(fresh);
    if (log.size > read) read = log.size;
    tr_file_content_free(&log);
    return fresh;
}

static void expect_nothing_found(const char *what)
{
    char *found = findings();
    if (found[0]) fail_msg("%s:\n%s", what, found);
    tr_free(found);
}

/* ---- that it finds something ---- */

static const char planted[] = "__kernel void race(__global int *x) {\n"
                              "    __local int shared[64];\n"
                              "    int t = get_local_id(0);\n"
                              "    shared[t] = t;\n"
                              "    x[t] = shared[63 - t];\n"
                              "}\n"
                              "__kernel void beyond(__global int *x) { x[get_local_id(0) + 1] = 1; }\n";

static void expect_found(const char *kernel, const char *finding)
{
    const char *const parts[] = {planted};
    const struct gpu_program_source source = {.name = "planted", .parts = parts, .count = 1, .options = ""};
    struct gpu_argument argument = {0};
    struct gpu_launch launch = {
        .name = kernel, .arguments = &argument, .count = 1, .threads = 64, .groups = {1, 1, 1}};
    void *session = gpu_of(device)->session, *program;
    assert_int_equal(gpu_api_opencl.alloc(session, 64 * sizeof(int), &argument.block), TR_OK);
    assert_int_equal(gpu_api_opencl.build(session, &source, &program), TR_OK);
    assert_int_equal(gpu_api_opencl.kernel(session, program, kernel, &launch.kernel), TR_OK);
    assert_int_equal(gpu_api_opencl.launch(session, &launch), TR_OK);
    assert_int_equal(gpu_api_opencl.wait(session), TR_OK);
    char *found = findings();
    if (!strstr(found, finding)) fail_msg("%s: \"%s\" is not in \"%s\"", kernel, finding, found);
    tr_free(found);
    gpu_api_opencl.free_kernel(session, launch.kernel);
    gpu_api_opencl.free_program(session, program);
    gpu_api_opencl.free(session, argument.block);
}

static void what_is_planted_is_found(void **state)
{
    (void)state;
    expect_found("race", "data race");
    expect_found("beyond", "Invalid write");
}

/* ---- */

static size_t bytes_of(const struct scene *scene)
{
    size_t bytes = 0;
    for (int i = 0; i < scene->buffers; i++) bytes += scene->buffer[i].bytes;
    return bytes;
}

/* One case, if it is small enough; whether it launched anything. */
static bool run_case(const struct case_list *list, const struct scene *expected)
{
    struct scene scene;
    char difference[256];
    int before = launches;
    if (bytes_of(expected) > MOST_BYTES) return false;
    scene_begin_like(&scene, device, expected);
    assert_true(list->run(&scene, (int)expected->number));
    if (scene_differs(expected, &scene, difference, sizeof difference))
        fail_msg("%s, case %u (%s): %s", list->operation, expected->number, expected->name, difference);
    scene_release(&scene);
    return launches > before;
}

static void test_operation(void **state)
{
    const struct case_list *list = *state;
    int ran = 0;
    case_must_exist(list);
    case_needs_operation(list, device);
    for (int index = 0; ran < MOST_CASES; index++) {
        struct scene expected;
        char what[256];
        scene_begin(&expected, reference, SCENE_PLAIN, (uint32_t)(list - case_lists), (uint32_t)index);
        if (!list->run(&expected, index)) break;
        ran += run_case(list, &expected);
        snprintf(what, sizeof what, "%s, case %d (%s)", list->operation, index, expected.name);
        scene_release(&expected);
        expect_nothing_found(what);
    }
    assert_true(ran > 0);
}

static void every_kernel_ran(void **state)
{
    (void)state;
    every_kernel_must(was_launched);
}

static const char *library(void)
{
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (access(libraries[i], R_OK) == 0) return libraries[i];
    return NULL;
}

int main(int count, char **arguments)
{
    struct CMUnitTest tests[CASE_LISTS + 2] = {cmocka_unit_test(what_is_planted_is_found)};
    if (!library()) {
        printf("skipped: no Oclgrind here; install oclgrind (Debian, Ubuntu)\n");
        return 0;
    }
    scratch_make(place);
    scratch_join(log_path, place, "log");
    setenv("OCL_ICD_VENDORS", library(), 1);
    setenv("OCLGRIND_DATA_RACES", "1", 1);
    setenv("OCLGRIND_LOG", log_path, 1);
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i + 1] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    tests[CASE_LISTS + 1] = (struct CMUnitTest)cmocka_unit_test(every_kernel_ran);
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("kernels under oclgrind", tests, make_devices, destroy_devices);
}
