/* The program with OpenCL devices: what it says where there is none, or one that is refused, too small or
 * lost; and jobs of several processes that compute there.
 *
 * TRIREME_FAILING is the program with devices that fail as they are told
 * (support/operations/failing_table.c).
 */
#include "cli/session.h"
#include "device/gpu/kinds.h"
#include "support/gpu/opencl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define SAVES "--set=train.checkpoint_every=2"

/* Fails the test unless the program ended so, having said this to people. */
static void expect(struct session *session, int got, int code, const char *said)
{
    if (got != code || !strstr(session->text[1], said)) session_show(session);
    assert_int_equal(got, code);
    assert_non_null(strstr(session->text[1], said));
}

/* ---- no device ---- */

/* A library that cannot be loaded is none. */
static void a_missing_library_is_said(void **state)
{
    char here[512];
    struct session session;
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir("none", 0755), 0);
    write_text("none/libOpenCL.so.1", "");
    int code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/none", here), "train", "tiny.yaml",
                        "--device", "opencl", "-o", "none/run", NULL);
    expect_error(2, "no OpenCL here: libOpenCL.so.1 cannot be loaded (", &session, code);
    assert_non_null(strstr(session.text[1], "/none/libOpenCL.so.1: file too short"));
    session_release(&session);
    code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/none", here), "devices", NULL);
    if (!strstr(session.text[0], "no OpenCL here")) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "no OpenCL here"));
    session_release(&session);
    code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/none", here), "devices", "--json", NULL);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "\"reason\": \"no OpenCL here"));
    session_release(&session);
}

/* A library that is there and misses another one: the linker tells which. */
static void what_a_library_needs_is_said(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=" TRIREME_BROKEN), "train", "tiny.yaml",
                        "--device", "opencl", "-o", "none/run", NULL);
    expect_error(2, "no OpenCL here: libOpenCL.so.1 cannot be loaded (libabsent.so: ", &session, code);
    session_release(&session);
}

static void a_missing_driver_is_said(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(NULL, "OCL_ICD_VENDORS=/nonexistent/"), "train", "tiny.yaml",
                        "--device", "opencl", "-o", "none/run", NULL);
    expect_error(2, "OpenCL knows no device here; install", &session, code);
    session_release(&session);
}

/* ---- NVIDIA's driver, which nothing tells the loader of ---- */

/* Variables in addition: the driver, which passes all on to that of pocl, and one of its own. */
static bool with_driver(const char *libraries, const char *variable, struct setup *out)
{
    static char paths[2048], driver[512];
    static const char *environment[5];
    char line[256] = "";
    FILE *file = fopen("/etc/OpenCL/vendors/pocl.icd", "re");
    bool found = file && fgets(line, sizeof line, file);
    if (file) fclose(file);
    if (!found) return false;
    snprintf(driver, sizeof driver, "TRIREME_TEST_DRIVER=%.*s", (int)strcspn(line, "\n"), line);
    snprintf(paths, sizeof paths, "LD_LIBRARY_PATH=%s:" TRIREME_NVIDIA, libraries);
    environment[0] = paths;
    environment[1] = driver;
    environment[2] = "OCL_ICD_VENDORS=/nonexistent/";
    environment[3] = variable;
    *out = (struct setup){.environment = environment};
    return true;
}

static void a_driver_is_used_directly(void **state)
{
    char bare[600];
    struct session session;
    struct setup setup;
    (void)state;
    const struct {
        const char *libraries, *variable, *why;
    } ways[] = {
        {"/nonexistent", NULL, "libOpenCL.so.1 knows no driver: libnvidia-opencl.so.1 is used directly"},
        {"/nonexistent", "TRIREME_TEST_BY_NAME=1", "libnvidia-opencl.so.1 is used directly"},
        {bare, NULL, "bare/libOpenCL.so.1: file too short): libnvidia-opencl.so.1 is used directly"}};
    assert_non_null(getcwd(bare, sizeof bare - 8));
    strcat(bare, "/bare");
    assert_int_equal(mkdir("bare", 0755), 0);
    write_text("bare/libOpenCL.so.1", "");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (!with_driver(ways[i].libraries, ways[i].variable, &setup)) skip(); /* no pocl to pass on to */
        int code = run_with(&session, setup, "train", "tiny.yaml", "--device", "opencl", "-o", "direct",
                            "--overwrite", NULL);
        expect(&session, code, 0, ways[i].why);
        expect_tiny_hash(&session, code);
        session_release(&session);
    }
}

/* One that cannot be loaded is no news where there are other drivers, and is named where there are none. */
static void a_driver_that_cannot_be_loaded_is_named(void **state)
{
    char here[512], paths[600];
    struct session session;
    const char *environment[] = {paths, "OCL_ICD_VENDORS=/nonexistent/", NULL};
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir("damaged", 0755), 0);
    write_text("damaged/libnvidia-opencl.so.1", "");
    snprintf(paths, sizeof paths, "LD_LIBRARY_PATH=%s/damaged", here);
    int code = run_with(&session, (struct setup){.environment = environment}, "train", "tiny.yaml",
                        "--device", "opencl", "-o", "none/run", NULL);
    expect_error(2, "OpenCL knows no device here (libnvidia-opencl.so.1 cannot be loaded: ", &session, code);
    session_release(&session);
}

static void a_device_that_is_not_there_is_said(void **state)
{
    struct session session;
    (void)state;
    int code = run(&session, "train", "tiny.yaml", "--device", "opencl:63", "-o", "none/run", NULL);
    expect_error(2, "there is no OpenCL device 63; there ", &session, code);
    session_release(&session);
}

/* ---- a device that fails ---- */

static void a_device_that_is_not_exact_is_refused_and_listed(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=lacks"), "devices", NULL);
    if (!strstr(session.text[0], "it lacks infinities and NaN")) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "it lacks infinities and NaN"));
    session_release(&session);
    code = run_with(&session, setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=lacks"), "train", "tiny.yaml",
                    "--device", "opencl", "-o", "none/run", NULL);
    expect_error(2, "cannot give the bits of other devices: it lacks infinities and NaN", &session, code);
    session_release(&session);
}

/* Neither promise is needed. */
static void a_poor_device_is_slow_and_exact(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=poor"), "devices", NULL);
    if (!strstr(session.text[0], "exact, slow")) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "exact, slow"));
    session_release(&session);
    code = run_with(&session, setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=poor"), "train", "tiny.yaml",
                    "--device", "opencl", "-o", "poor", NULL);
    expect_tiny_hash(&session, code);
    session_release(&session);
}

static void a_device_without_room_is_said(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=full=3000000"), "train",
                        "tiny.yaml", "--set", "layers[0].dense=100000", "--device", "opencl", "-o",
                        "none/run", NULL);
    expect(&session, code, 1, "no room for ");
    assert_non_null(strstr(session.text[1], "opencl:0 ("));
    assert_non_null(strstr(session.text[1], "train.pass"));
    session_release(&session);
}

/* "...: the device failed", with the name of the first device. */
static const char *failure_of_device(void)
{
    static char text[300];
    assert_int_equal(tr_device_kind_opencl.describe(0, text, 128), TR_OK);
    char *end = strstr(text, ", ");
    assert_non_null(end);
    snprintf(end, sizeof text - (size_t)(end - text), ": the device failed ");
    return text;
}

/* The run ends with the device's name, and goes on where it was saved, on another device. */
static void a_lost_device_ends_the_run(void **state)
{
    struct session session;
    (void)state;
    int code =
        run_with(&session,
                 setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=lost=ends/checkpoint-00000004:lost-alone"),
                 "train", "tiny.yaml", SAVES, "--device", "opencl", "-o", "ends", "--log", "none", NULL);
    expect(&session, code, 1, "is lost to this run");
    assert_non_null(strstr(session.text[1], failure_of_device()));
    assert_int_equal(access("lost-alone", F_OK), 0);
    session_release(&session);
    code = run(&session, "train", "tiny.yaml", SAVES, "--continue", "-o", "ends", NULL);
    expect_tiny_hash(&session, code);
    session_release(&session);
}

static void restarts_go_on(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(
        &session, setup_with(TRIREME_FAILING, "TRIREME_TEST_FAILURE=lost=on/checkpoint-00000004:lost-one"),
        "launch", "-n", "2", "--restarts", "1", "train", "tiny.yaml", SAVES, "--device", "opencl", "-o", "on",
        "--log", "none", "-t", "1", NULL);
    expect(&session, code, 0, "is lost to this run");
    assert_non_null(strstr(session.text[1], failure_of_device()));
    assert_non_null(strstr(session.text[1], "restart 1 of 1 in "));
    assert_non_null(strstr(session.text[1], "from the checkpoint of step "));
    expect_tiny_hash(&session, code);
    session_release(&session);
}

/* ---- jobs of several processes ---- */

static void processes_share_a_hash(void **state)
{
    static const char *const jobs[][8] = {
        {"-n", "2", "--device=opencl", "--parameters-on=opencl"},
        {"-n", "2", "--device=opencl", "--parameters-on=cpu"},
        {"-n", "3", "--device=cpu,opencl:0", "--shares=auto"},
        {"-n", "2", "--device=opencl:0,cpu",
         "--shares=1,3"}, /* who gives the first parameters has them apart */
    };
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        struct session session;
        int code = run(&session, "launch", jobs[i][0], jobs[i][1], "train", "tiny.yaml", jobs[i][2],
                       jobs[i][3], "-o", "several", "--overwrite", "-t", "1", NULL);
        expect_tiny_hash(&session, code);
        session_release(&session);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_said),
        cmocka_unit_test(what_a_library_needs_is_said),
        cmocka_unit_test(a_missing_driver_is_said),
        cmocka_unit_test(a_driver_is_used_directly),
        cmocka_unit_test(a_driver_that_cannot_be_loaded_is_named),
        cmocka_unit_test(a_device_that_is_not_there_is_said),
        cmocka_unit_test(a_device_that_is_not_exact_is_refused_and_listed),
        cmocka_unit_test(a_poor_device_is_slow_and_exact),
        cmocka_unit_test(a_device_without_room_is_said),
        cmocka_unit_test(a_lost_device_ends_the_run),
        cmocka_unit_test(restarts_go_on),
        cmocka_unit_test(processes_share_a_hash),
    };
    if (!opencl_is_here()) return 0;
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("the program on opencl", tests, place_make, place_remove);
}
