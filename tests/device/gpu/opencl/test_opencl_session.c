/* Sessions of OpenCL, on one without a driver (fake/opencl.h): the order of their queues, their memory,
 * programs, launches and lists, and what stays when a call fails.
 */
#include "device/gpu/fake/opencl.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct gpu_api *const api = &gpu_api_opencl;

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static void *open_session(bool timed)
{
    void *session;
    must(api->open(0, timed, &session));
    return session;
}

static int begin(void **state)
{
    (void)state;
    fake_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(fake.live, 0);
    assert_int_equal(tr_alloc_live(), 0);
    return 0;
}

/* ---- order and memory ---- */

static void a_device_that_is_not_there_is_not_opened(void **state)
{
    void *other;
    (void)state;
    assert_int_equal(api->open(1, false, &other), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), "there is no OpenCL device 1; there is 1, counted from 0");
    assert_int_equal(fake.contexts, 0);
}

static void copies_beside_come_behind_what_was_before(void **state)
{
    char from[] = "0123456789", beside[4] = "", to[4] = "";
    void *block, *session = open_session(false), *mark;
    bool reached;
    (void)state;
    assert_true(fake.properties == 0);
    must(api->alloc(session, sizeof from, &block));
    must(api->to_device(session, block, 0, from, sizeof from, NULL));
    must(api->to_host_beside(session, beside, block, 2, 4, NULL));
    assert_int_equal(fake.queues, 2);
    must(api->to_host(session, to, block, 6, 4, NULL));
    must(api->record(session, &mark));
    must(api->reached(session, mark, &reached));
    assert_false(reached);
    assert_int_equal(beside[0], 0);
    must(api->wait_for(session, mark));
    assert_memory_equal(beside, "2345", 4);
    assert_memory_equal(to, "6789", 4);
    must(api->reached(session, mark, &reached));
    assert_true(reached);
    api->free_event(session, mark);
    /* Without anybody who waits, since both queues were flushed. */
    memset(beside, 0, sizeof beside);
    must(api->to_host_beside(session, beside, block, 1, 4, NULL));
    must(api->record(session, &mark));
    fake_work();
    must(api->reached(session, mark, &reached));
    assert_true(reached);
    assert_memory_equal(beside, "1234", 4);
    api->free_event(session, mark);
    must(api->to_host_beside(session, beside, block, 5, 4, NULL));
    must(api->to_host(session, to, block, 1, 4, NULL));
    must(api->wait(session));
    assert_memory_equal(beside, "5678", 4);
    assert_memory_equal(to, "1234", 4);
    assert_int_equal(fake.queues, 2); /* the second one is kept */
    api->free(session, block);
    api->close(session);
}

static void pinned_memory_is_given_back(void **state)
{
    void *session = open_session(false), *pinned[3];
    (void)state;
    const int live = fake.live;
    for (int i = 0; i < 3; i++) must(api->alloc_pinned(session, 100, &pinned[i]));
    memset(pinned[1], 7, 100);
    api->free_pinned(session, pinned[1]);
    assert_int_equal(fake.live, live + 2);
    api->free_pinned(session, pinned[1]); /* that is none any more */
    assert_int_equal(fake.live, live + 2);
    api->free_pinned(session, pinned[2]);
    assert_int_equal(fake.live, live + 1);
    api->close(session); /* the rest goes with it */
}

static void events_tell_their_times(void **state)
{
    char byte = 1;
    void *session = open_session(true), *block, *event[3];
    struct gpu_times times;
    (void)state;
    assert_true(fake.properties == CL_QUEUE_PROFILING_ENABLE);
    must(api->alloc(session, 1, &block));
    must(api->to_device(session, block, 0, &byte, 1, &event[0]));
    must(api->to_host(session, &byte, block, 0, 1, &event[1]));
    must(api->to_host_beside(session, &byte, block, 0, 1, &event[2]));
    assert_true(fake.properties == CL_QUEUE_PROFILING_ENABLE);
    must(api->wait(session));
    for (int i = 0; i < 3; i++) {
        must(api->times(session, event[i], &times));
        assert_int_equal(times.begin - times.queued, 100);
        assert_int_equal(times.end - times.begin, 200);
        assert_int_equal(times.queued, i == 1 ? 1000 : 0);
        api->free_event(session, event[i]);
    }
    api->free(session, block);
    api->close(session);
}

/* ---- programs ---- */

static const char *const two_parts[] = {"one, ", "two"}, *const wrong_part[] = {"#error"};

static void programs_are_built_with_exact_options(void **state)
{
    static const char strict[] = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -DX";
    struct gpu_program_source source = {
        .name = "of a test", .parts = two_parts, .count = 2, .options = "-DX"};
    void *session = open_session(false), *program, *kernel, *binary;
    size_t bytes;
    (void)state;
    assert_string_equal(api->exact, "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt ");
    must(api->build(session, &source, &program));
    assert_int_equal(fake.parts, 2);
    assert_string_equal(fake.options, strict);
    must(api->binary(session, program, &binary, &bytes));
    assert_int_equal(bytes, strlen("binary of it"));
    assert_memory_equal(binary, "binary of it", bytes);
    must(api->kernel(session, program, "any", &kernel));
    api->free_kernel(session, kernel);
    api->free_program(session, program);
    source.binary = binary;
    source.binary_bytes = bytes;
    must(api->build(session, &source, &program));
    assert_string_equal(fake.options, strict);
    api->free_program(session, program);
    tr_free(binary);
    /* What does not promise exact quotients is not told to divide exactly. */
    fake.platform[0].device[0].promises &= ~CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    source.binary = NULL;
    must(api->build(session, &source, &program));
    assert_string_equal(fake.options, "-cl-std=CL1.2 -DX");
    api->free_program(session, program);
    api->close(session);
}

static void what_is_no_program_is_told(void **state)
{
    struct gpu_program_source source = {
        .name = "of a test", .parts = wrong_part, .count = 1, .options = "-DX"};
    void *session = open_session(false), *program;
    static const char *const binaries[] = {"no binary", "binary with an error"};
    const int live = fake.live;
    (void)state;
    assert_int_equal(api->build(session, &source, &program), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "a gpu: its compiler refuses the kernels \"of a test\" (OpenCL "
                                            "error -11): line 1: of all things");
    assert_int_equal(fake.live, live);
    fake.fails = "clGetProgramBuildInfo";
    assert_int_equal(api->build(session, &source, &program), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(), "a gpu: its compiler refuses the kernels \"of a test\" (OpenCL "
                                            "error -11): ");
    fake.fails = NULL;
    for (int i = 0; i < 2; i++) {
        source.binary = binaries[i];
        source.binary_bytes = strlen(binaries[i]);
        assert_int_equal(api->build(session, &source, &program), TR_EFORMAT);
        assert_string_equal(tr_error_message(), "of a test: not a program of this device");
        assert_int_equal(fake.live, live);
    }
    api->close(session);
}

/* ---- launches ---- */

static const struct gpu_program_source any = {
    .name = "of a test", .parts = two_parts, .count = 2, .options = ""};

static void launches_say_where_their_groups_begin(void **state)
{
    void *session = open_session(false), *program, *kernel, *block, *list;
    (void)state;
    must(api->build(session, &any, &program));
    must(api->kernel(session, program, "any", &kernel));
    must(api->alloc(session, 64, &block));
    const struct gpu_argument arguments[] = {{.block = block},
                                             {.size = 8, .value = {1, 2, 3, 4, 5, 6, 7, 8}},
                                             {.size = 4, .value = {9, 8, 7, 6}},
                                             {.block = NULL}};
    struct gpu_launch launch = {.kernel = kernel,
                                .name = "any",
                                .arguments = arguments,
                                .count = 4,
                                .threads = 64,
                                .groups = {3, 5, 7}};
    if (fake.platform[0].device[0].has_lists) fail();
    for (int listed = 0; listed < 2; listed++) {
        for (int first = 0; first < 3; first++) {
            launch.first[1] = first == 1 ? 11 : 0;
            launch.first[2] = first == 2 ? 13 : 0;
            memset(&fake.last, 0xee, sizeof fake.last);
            if (listed) {
                must(api->build_list(session, &launch, 1, &list));
                api->free_list(session, list);
            } else {
                must(api->launch(session, &launch));
            }
            assert_string_equal(fake.last.kernel, "any");
            static const size_t global[] = {192, 5, 7}, local[] = {64, 1, 1};
            assert_memory_equal(fake.last.global, global, sizeof global);
            assert_memory_equal(fake.last.local, local, sizeof local);
            assert_int_equal(fake.last.has_offset, first > 0);
            assert_true(fake.last.offset[0] == 0 && fake.last.offset[1] == (first == 1 ? 11u : 0u) &&
                        fake.last.offset[2] == (first == 2 ? 13u : 0u));
            assert_int_equal(fake.last.arguments, 4);
            assert_true(fake.last.size[0] == sizeof(void *) && fake.last.size[1] == 8 &&
                        fake.last.size[2] == 4 && fake.last.size[3] == sizeof(void *));
            static const void *const nothing = NULL;
            assert_memory_equal(fake.last.value[0], &block, sizeof block);
            assert_memory_equal(fake.last.value[1], arguments[1].value, 8);
            assert_memory_equal(fake.last.value[2], arguments[2].value, 4);
            assert_memory_equal(fake.last.value[3], &nothing, sizeof nothing);
        }
        if (listed) break;
        assert_int_equal(fake.launches, 3);
        assert_int_equal(api->build_list(session, &launch, 1, &list), TR_EUNSUPPORTED);
        assert_string_equal(tr_error_message(), "a gpu has no cl_khr_command_buffer");
        /* One that has lists. */
        api->free(session, block);
        api->free_kernel(session, kernel);
        api->free_program(session, program);
        api->close(session);
        fake.platform[0].device[0].extensions = "cl_khr_command_buffer";
        fake.platform[0].device[0].has_lists = true;
        fake.platform[0].device[0].lists = CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR;
        session = open_session(false);
        must(api->build(session, &any, &program));
        must(api->kernel(session, program, "any", &kernel));
        must(api->alloc(session, 64, &block));
        ((struct gpu_argument *)(uintptr_t)arguments)[0].block = block;
        launch.kernel = kernel;
    }
    const struct gpu_launch both[] = {launch, launch};
    must(api->build_list(session, both, 2, &list));
    const int launches = fake.launches;
    for (int i = 1; i < 3; i++) {
        must(api->launch_list(session, list));
        assert_int_equal(fake.launches, launches + 2 * i);
    }
    must(api->wait(session));
    api->free_list(session, list);
    api->free(session, block);
    api->free_kernel(session, kernel);
    api->free_program(session, program);
    api->close(session);
}

/* ---- failures ---- */

static void *session, *block, *program, *kernel, *list, *pinned, *event, *beside, *mark, *binary;

/* A little of everything. */
static tr_status do_all(void)
{
    void *made; /* which a failure may leave as anything */
    char bytes[8] = "";
    size_t size;
    bool reached;
    struct gpu_times times;
    TR_TRY(api->open(0, true, &session));
    TR_TRY(api->alloc(session, 8, &block));
    TR_TRY(api->alloc_pinned(session, 8, &pinned));
    TR_TRY(api->build(session, &any, &program));
    TR_TRY(api->binary(session, program, &binary, &size));
    TR_TRY(api->kernel(session, program, "the kernel", &kernel));
    const struct gpu_argument argument = {.block = block};
    const struct gpu_launch launch = {.kernel = kernel,
                                      .name = "a launch",
                                      .arguments = &argument,
                                      .count = 1,
                                      .threads = 64,
                                      .groups = {1, 1, 1}};
    TR_TRY(api->launch(session, &launch));
    TR_TRY(api->build_list(session, &launch, 1, &list));
    TR_TRY(api->launch_list(session, list));
    TR_TRY(api->to_device(session, block, 0, bytes, 8, NULL));
    TR_TRY(api->to_host_beside(session, pinned, block, 0, 8, &made));
    beside = made;
    TR_TRY(api->to_host(session, pinned, block, 0, 8, &event));
    TR_TRY(api->record(session, &mark));
    TR_TRY(api->wait_for(session, mark));
    TR_TRY(api->reached(session, mark, &reached));
    TR_TRY(api->wait(session));
    return api->times(session, event, &times);
}

static void undo_all(void)
{
    if (session) (void)api->wait(session);
    if (mark) api->free_event(session, mark);
    if (event) api->free_event(session, event);
    if (beside) api->free_event(session, beside);
    if (list) api->free_list(session, list);
    if (kernel) api->free_kernel(session, kernel);
    if (program) api->free_program(session, program);
    if (block) api->free(session, block);
    if (session) api->close(session);
    tr_free(binary);
    session = block = program = kernel = list = pinned = event = beside = mark = binary = NULL;
}

static void with_lists(void)
{
    fake_begin();
    fake.platform[0].device[0].extensions = "cl_khr_command_buffer";
    fake.platform[0].device[0].has_lists = true;
    fake.platform[0].device[0].lists = CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR;
}

static bool is_question(const char *function)
{
    return strcmp(function, "clGetDeviceInfo") == 0;
}

/* Whichever call fails: what it means is told, with the device and the error, and nothing stays behind. */
static void any_call_may_fail(void **state)
{
    static const struct {
        int32_t code;
        tr_status status;
        const char *says;
    } kinds[] = {
        {-4, TR_ENOMEM, "a gpu: out of memory or other resources "},
        {-5, TR_ENOMEM, "(OpenCL error -5); fewer examples at a time (train.pass) need less"},
        {-6, TR_ENOMEM, "(OpenCL error -6); fewer"},
        {-61, TR_ENOMEM, "(OpenCL error -61); fewer"},
        {-36, TR_EPEER, "(OpenCL error -36) and is lost to this run; go on from the last checkpoint"},
        {-3, TR_EPEER, "a gpu: the device failed "}};
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (int at = 0;; at++) {
            with_lists();
            fake.fails = "";
            fake.after = at;
            fake.code = kinds[kind].code;
            const tr_status status = do_all();
            const char *failed = fake.failed;
            if (!failed) {
                must(status);
                undo_all();
                assert_true(at > 30);
                break;
            }
            const bool lacking = status == TR_ENOTFOUND || status == TR_EUNSUPPORTED;
            if (status == TR_OK || lacking) {
                if (lacking && strcmp(failed, "clGetPlatformIDs") != 0 &&
                    strcmp(failed, "clGetDeviceIDs") != 0 && strcmp(failed, "clBuildProgram") != 0 &&
                    !is_question(failed) && strcmp(failed, "clGetExtensionFunctionAddressForPlatform") != 0)
                    fail_msg("%s failed: %s", failed, tr_error_message());
                if (status == TR_OK && !is_question(failed) && strcmp(failed, "clGetDeviceIDs") != 0)
                    fail_msg("%s failed, and nobody says so", failed);
            } else if (status != kinds[kind].status) {
                fail_msg("%s failed by %d: %s", failed, fake.code, tr_error_message());
            } else if (!strstr(tr_error_message(), kinds[kind].says) && !is_question(failed)) {
                fail_msg("%s failed: \"%s\"", failed, tr_error_message());
            }
            fake.fails = NULL;
            undo_all();
            if (fake.live != 0) fail_msg("%s failed: %d objects are left", failed, fake.live);
            assert_int_equal(tr_alloc_live(), 0);
        }
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        with_lists();
        refuse_begin(at);
        const tr_status status = do_all();
        done = refuse_end();
        /* Whether there are lists is not asked without memory. */
        assert_true(status == (done ? TR_OK : TR_ENOMEM) || (!done && status == TR_EUNSUPPORTED));
        undo_all();
        assert_int_equal(fake.live, 0);
        assert_int_equal(tr_alloc_live(), 0);
    }
}

/* Events say what became of their commands, and drivers more of it in words. */
static void failures_of_commands_are_told(void **state)
{
    (void)state;
    bool reached = true;
    void *event_of;
    session = open_session(false);
    must(api->record(session, &event_of));
    fake_work();
    fake.state = -14;
    assert_int_equal(api->reached(session, event_of, &reached), TR_EPEER);
    assert_false(reached);
    assert_string_equal(tr_error_message(),
                        "a gpu: the device failed computing (OpenCL error -14) and is lost "
                        "to this run; go on from the last checkpoint");
    fake.notify("a page fault", NULL, 0, fake.notified);
    assert_int_equal(api->wait_for(session, event_of), TR_EPEER);
    assert_string_equal(tr_error_message(),
                        "a gpu: the device failed computing (OpenCL error -14, a page fault) "
                        "and is lost to this run; go on from the last checkpoint");
    fake.state = CL_COMPLETE;
    fake.fails = "clWaitForEvents";
    fake.code = -5;
    assert_int_equal(api->wait_for(session, event_of), TR_ENOMEM);
    assert_string_equal(tr_error_message(), "a gpu: out of memory or other resources computing (OpenCL error "
                                            "-5); fewer examples at a time (train.pass) need less");
    api->free_event(session, event_of);
    api->close(session);
    session = NULL;
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_device_that_is_not_there_is_not_opened),
        TEST(copies_beside_come_behind_what_was_before),
        TEST(pinned_memory_is_given_back),
        TEST(events_tell_their_times),
        TEST(programs_are_built_with_exact_options),
        TEST(what_is_no_program_is_told),
        TEST(launches_say_where_their_groups_begin),
        TEST(any_call_may_fail),
        TEST(memory_may_fail),
        TEST(failures_of_commands_are_told),
    };
    return cmocka_run_group_tests_name("sessions of opencl", tests, NULL, NULL);
}
