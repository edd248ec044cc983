/* The program with CUDA's devices, on the stand-in for the driver: what it says where something is missing or
 * lost, what it lists, and jobs of several processes that compute there.
 */
#include "cli/session.h"
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

static void expect_in(const struct session *session, int stream, const char *said)
{
    if (!strstr(session->text[stream], said)) session_show(session);
    assert_non_null(strstr(session->text[stream], said));
}

/* ---- what is missing ---- */

static char here[512];

static void a_missing_driver_is_said(void **state)
{
    struct session session;
    (void)state;
    assert_int_equal(mkdir("none", 0755), 0);
    write_text("none/libcuda.so.1", "");
    int code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/none", here), "train", "tiny.yaml",
                        "--device", "cuda", "-o", "none/run", NULL);
    expect_error(2, "no CUDA here: ", &session, code);
    expect_in(&session, 1, "none/libcuda.so.1: file too short; install NVIDIA's driver");
    session_release(&session);
    code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/none", here), "devices", NULL);
    assert_int_equal(code, 0);
    expect_in(&session, 0, "no CUDA here: ");
    assert_null(strstr(session.text[0], "gpu:0"));
    session_release(&session);
    code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/none", here), "train", "tiny.yaml",
                    "--device", "gpu", "-o", "none/run", NULL);
    expect_error(2, "there is no GPU here", &session, code);
    session_release(&session);
}

static void a_missing_device_is_said(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(NULL, "TRIREME_STAND_IN=devices=0"), "train", "tiny.yaml",
                        "--device", "cuda", "-o", "none/run", NULL);
    expect_error(2, "no CUDA here: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", &session, code);
    session_release(&session);
    code = run(&session, "train", "tiny.yaml", "--device", "cuda:2", "-o", "none/run", NULL);
    expect_error(2, "there is no CUDA device 2; there ", &session, code);
    session_release(&session);
}

static void a_missing_compiler_is_said(void **state)
{
    struct session session;
    (void)state;
    assert_int_equal(mkdir("half", 0755), 0);
    assert_int_equal(symlink(TRIREME_CUDA "/libcuda.so.1", "half/libcuda.so.1"), 0);
    static const char *const names[] = {"half/libnvrtc.so.13", "half/libnvrtc.so.12", "half/libnvrtc.so.11.2",
                                        "half/libnvrtc.so"};
    for (int i = 0; i < 4; i++) write_text(names[i], "");
    int code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/half", here), "train", "tiny.yaml",
                        "--device", "cuda", "-o", "none/run", NULL);
    expect_error(2, "its compiler NVRTC is not here: ", &session, code);
    expect_in(&session, 1, "half/libnvrtc.so.12: file too short");
    session_release(&session);
    code = run_with(&session, setup_with(NULL, "LD_LIBRARY_PATH=%s/half", here), "train", "tiny.yaml",
                    "--device", "gpu", "-o", "none/run", NULL);
    expect_error(2, "there is no GPU here that can be used: its compiler NVRTC", &session, code);
    session_release(&session);
}

/* ---- what is there ---- */

static void devices_are_listed_and_tested(void **state)
{
    struct session session;
    (void)state;
    int code = run(&session, "devices", NULL);
    assert_int_equal(code, 0);
    expect_in(&session, 0, "cuda:0    stand-in for a GPU, 0.5 GiB (CUDA)");
    expect_in(&session, 0, "cuda:1 ");
    expect_in(&session, 0, "gpu:1     cuda:1 ");
    session_release(&session);
    code = run(&session, "devices", "--json", NULL);
    assert_int_equal(code, 0);
    expect_in(&session, 0, "\"is\": \"cuda:1\"");
    session_release(&session);
}

/* A driver may end the process that it is in. */
static void a_driver_that_aborts_ends_no_list(void **state)
{
    static const char *const ways[] = {"--no-json", "--json"};
    static const char *const listed[] = {"cuda:0    stand-in for a GPU, 0.5 GiB (CUDA)",
                                         "\"is\": \"cuda:1\""};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct session session;
        int code = run_with(&session, setup_with(NULL, "TRIREME_STAND_IN=abort"), "devices", ways[i],
                            "--data-cache-dir", "untested", NULL);
        assert_int_equal(code, 0);
        expect_in(&session, 0, listed[i]);
        expect_in(&session, 0, "tested when it is opened");
        expect_in(&session, 1, "the driver aborts");
        expect_in(&session, 1, "warning: a driver ended the test of the devices (Aborted)");
        session_release(&session);
    }
}

static void processes_share_a_hash(void **state)
{
    static const char *const jobs[][8] = {
        {"-n", "2", "--device=cuda", "--parameters-on=cpu"},
        {"-n", "2", "--device=gpu:0", "--parameters-on=gpu:0"},
        {"-n", "3", "--device=cpu,cuda:0", "--shares=auto"},
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

/* The run ends with the device's name, and goes on where it was saved, on another device. */
static void a_lost_device_ends_the_run(void **state)
{
    struct session session;
    (void)state;
    int code =
        run_with(&session, setup_with(NULL, "TRIREME_STAND_IN=lost=ends/checkpoint-00000004:lost-alone"),
                 "train", "tiny.yaml", SAVES, "--device", "cuda", "-o", "ends", "--log", "none", NULL);
    if (code != 1) session_show(&session);
    assert_int_equal(code, 1);
    expect_in(&session, 1, "stand-in for a GPU: the device failed ");
    expect_in(&session, 1, "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure) and is lost to this run");
    assert_int_equal(access("lost-alone", F_OK), 0);
    session_release(&session);
    code = run(&session, "train", "tiny.yaml", SAVES, "--continue", "-o", "ends", NULL);
    expect_tiny_hash(&session, code);
    session_release(&session);
}

static void a_device_without_room_is_said(void **state)
{
    struct session session;
    (void)state;
    int code = run_with(&session, setup_with(NULL, "TRIREME_STAND_IN=full=40000000"), "train", "tiny.yaml",
                        "--set", "layers[0].dense=1000000", "--device", "cuda", "-o", "none/run", NULL);
    if (code == 0) session_show(&session);
    assert_int_not_equal(code, 0);
    expect_in(&session, 1, "cuda:0");
    session_release(&session);
}

static int place_and_here(void **state)
{
    int failed = place_make(state);
    return failed || !getcwd(here, sizeof here);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_driver_is_said),          cmocka_unit_test(a_missing_device_is_said),
        cmocka_unit_test(a_missing_compiler_is_said),        cmocka_unit_test(devices_are_listed_and_tested),
        cmocka_unit_test(a_driver_that_aborts_ends_no_list), cmocka_unit_test(processes_share_a_hash),
        cmocka_unit_test(a_lost_device_ends_the_run),        cmocka_unit_test(a_device_without_room_is_said),
    };
    if (!opencl_is_here()) return 0;
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("the program on cuda", tests, place_and_here, place_remove);
}
