/* Calls of the layer for CUDA in which the driver fails, on the stand-in for it: each says what failed, and
 * leaves nothing behind. No kernel is compiled.
 */
#include "device/gpu/internal.h"
#include "support/cuda/control.h"
#include "support/gpu/opencl.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/gpu/cuda/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct gpu_api *const api = &gpu_api_cuda;
static const struct stand_in *driver;

enum { BYTES = 64 };

struct scene {
    void *session, *block, *pinned;
    bool timed;
    void *other, *other_pinned, *event; /* what a try makes */
    char numbers[BYTES];
};

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static void begin(struct scene *s, bool timed)
{
    *s = (struct scene){.timed = timed};
    must(api->open(0, timed, &s->session));
    must(api->alloc(s->session, BYTES, &s->block));
    must(api->alloc_pinned(s->session, BYTES, &s->pinned));
}

static void end(struct scene *s)
{
    if (s->event) api->free_event(s->session, s->event);
    if (s->other_pinned) api->free_pinned(s->session, s->other_pinned);
    if (s->other) api->free(s->session, s->other);
    api->free_pinned(s->session, s->pinned);
    api->free(s->session, s->block);
    api->close(s->session);
}

/* ---- what is tried ---- */

static tr_status try_alloc(struct scene *s)
{
    return api->alloc(s->session, BYTES, &s->other);
}

static tr_status try_pinned(struct scene *s)
{
    return api->alloc_pinned(s->session, BYTES, &s->other_pinned);
}

static tr_status try_to_device(struct scene *s)
{
    return api->to_device(s->session, s->block, 0, s->numbers, BYTES, s->timed ? &s->event : NULL);
}

static tr_status try_to_host(struct scene *s)
{
    return api->to_host(s->session, s->numbers, s->block, 0, BYTES, s->timed ? &s->event : NULL);
}

static tr_status copy_beside(struct scene *s, void **event)
{
    return api->to_host_beside(s->session, s->pinned, s->block, 0, BYTES, event);
}

static tr_status try_beside(struct scene *s)
{
    return copy_beside(s, s->timed ? &s->event : NULL);
}

static tr_status try_record(struct scene *s)
{
    return api->record(s->session, &s->event);
}

static tr_status try_wait(struct scene *s)
{
    return api->wait(s->session);
}

/* ---- each call of the driver in turn ---- */

/* Only these may fail without harm: they give back. */
static bool may_fail(const char *call)
{
    return !strcmp(call, "cuEventDestroy_v2") || !strcmp(call, "cuCtxPopCurrent_v2");
}

static void expect_said(const char *what, tr_status (*try)(struct scene *s), bool timed, bool beside)
{
    char said[160];
    snprintf(said, sizeof said, ": the device failed %s (CUDA_ERROR_INVALID_VALUE: invalid argument)", what);
    for (int64_t at = 0, tries = 0;; at++, tries++) {
        const int64_t live = tr_alloc_live(), there = driver->stand_in_live();
        struct scene s;
        begin(&s, timed);
        if (beside) must(copy_beside(&s, NULL)); /* from then on there is a second stream */
        driver->stand_in_fail(at, CUDA_ERROR_INVALID_VALUE);
        const tr_status status = try(&s);
        const char *failed = driver->stand_in_failed();
        if (failed && status == TR_OK && !may_fail(failed))
            fail_msg("%s: %s failed, and nothing is said", what, failed);
        if (status != TR_OK && (status != TR_EPEER || !strstr(tr_error_message(), said)))
            fail_msg("%s: %s failed: %s", what, failed, tr_error_message());
        driver->stand_in_fail(-1, 0);
        end(&s);
        if (driver->stand_in_live() != there || tr_alloc_live() != live)
            fail_msg("%s: %s failed, and something is left", what, failed ? failed : "nothing");
        if (failed) continue;
        assert_int_equal(status, TR_OK);
        assert_true(tries >= 2);
        return;
    }
}

static void what_failed_is_said(void **state)
{
    static const struct {
        const char *what;
        tr_status (*try)(struct scene *s);
    } tries[] = {
        {"making room for data", try_alloc},
        {"making room for copies", try_pinned},
        {"copying to it", try_to_device},
        {"copying from it", try_to_host},
        {"copying from it", try_beside},
        {"marking a moment", try_record},
        {"computing", try_wait},
    };
    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        for (int way = 0; way < 4; way++) expect_said(tries[i].what, tries[i].try, way & 1, way & 2);
}

static void times_that_fail_are_said(void **state)
{
    (void)state;
    for (int64_t at = 0;; at++) {
        struct scene s;
        struct gpu_times times;
        void *event;
        begin(&s, true);
        must(api->to_device(s.session, s.block, 0, s.numbers, BYTES, &event));
        must(api->wait(s.session));
        driver->stand_in_fail(at, CUDA_ERROR_INVALID_VALUE);
        const tr_status status = api->times(s.session, event, &times);
        const char *failed = driver->stand_in_failed();
        driver->stand_in_fail(-1, 0);
        if (status != TR_OK)
            assert_non_null(strstr(tr_error_message(), "failed telling times (CUDA_ERROR_INVALID_VALUE"));
        else
            assert_true(!failed || may_fail(failed));
        api->free_event(s.session, event);
        end(&s);
        if (failed) continue;
        assert_true(at >= 3);
        assert_true(times.queued <= times.end && times.begin <= times.end);
        return;
    }
}

/* What was freed and is kept is given back to the driver first, and then there is room. */
static void memory_that_is_kept_is_given_back_for_more(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, false);
    driver->stand_in_fail(1, CUDA_ERROR_OUT_OF_MEMORY);
    must(try_alloc(&s));
    assert_string_equal(driver->stand_in_failed(), "cuMemAllocFromPoolAsync");
    driver->stand_in_fail(1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(try_pinned(&s), TR_ENOMEM);
    driver->stand_in_fail(-1, 0);
    assert_non_null(
        strstr(tr_error_message(), ": out of memory making room for copies (CUDA_ERROR_OUT_OF_MEM"));
    assert_non_null(strstr(tr_error_message(), "); fewer examples at a time (train.pass) need less"));
    end(&s);
}

static void devices_that_are_not_there_are_not_opened(void **state)
{
    struct gpu_info info;
    void *session;
    int there = 0;
    (void)state;
    while (api->describe(there, &info) == TR_OK) there++;
    assert_true(there >= 1);
    char said[TR_MESSAGE_SIZE];
    snprintf(said, sizeof said, "%s", tr_error_message());
    assert_int_equal(api->open(there, false, &session), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), said);
}

/* ---- what is told of a device ---- */

static void devices_are_described(void **state)
{
    struct gpu_info info;
    (void)state;
    for (int number = 0; number < 2; number++) {
        must(api->describe(number, &info));
        assert_string_equal(info.platform, "CUDA");
        assert_string_equal(info.vendor, "NVIDIA Corporation");
        assert_string_equal(info.name, "stand-in for a GPU");
        assert_string_equal(info.place, number == 0 ? "0000:0a:00.0" : "0000:0b:00.0");
        const char *driver_text =
            strstr(info.driver, "CUDA 12.4, NVRTC 12.4, sm_80"); /* after nvidia's own */
        assert_true(driver_text && strlen(driver_text) == 28);
        assert_true(info.memory == (uint64_t)512 << 20 && info.allocation == info.memory);
        assert_true(info.shared == 48 << 10 && info.group == 1024 && info.units == 4);
        assert_true(!info.unified && info.lists);
        assert_string_equal(info.refusal, "");
    }
}

/* What the driver fails to tell is left out, or is why the device is not used. */
static void what_is_not_told_is_left_out(void **state)
{
    int names = 0, places = 0, memories = 0, refused = 0, lost = 0;
    (void)state;
    for (int64_t at = 0;; at++) {
        struct gpu_info info = {.name = ""};
        driver->stand_in_fail(at, CUDA_ERROR_INVALID_VALUE);
        const tr_status status = api->describe(0, &info);
        const char *failed = driver->stand_in_failed();
        driver->stand_in_fail(-1, 0);
        if (!failed) break;
        if (!strcmp(failed, "cuDeviceGetCount") || !strcmp(failed, "cuDeviceGet")) {
            assert_int_equal(status, TR_ENOTFOUND);
            assert_string_equal(tr_error_message(),
                                "CUDA does not tell its devices: CUDA_ERROR_INVALID_VALUE: "
                                "invalid argument");
            lost++;
            continue;
        }
        assert_int_equal(status, TR_OK);
        const bool name = !strcmp(failed, "cuDeviceGetName"), place = !strcmp(failed, "cuDeviceGetPCIBusId"),
                   memory = !strcmp(failed, "cuDeviceTotalMem_v2");
        assert_string_equal(info.name, name ? "a CUDA device" : "stand-in for a GPU");
        assert_string_equal(info.place, place ? "" : "0000:0a:00.0");
        assert_true(info.memory == (memory ? 0 : (uint64_t)512 << 20) && info.allocation == info.memory);
        names += name, places += place, memories += memory;
        if (!info.refusal[0]) continue;
        assert_string_equal(failed, "cuDeviceGetAttribute");
        assert_true(!strcmp(info.refusal, "NVRTC 12.4 does not compile for so old a device") ||
                    !strcmp(info.refusal, "its groups have 0 threads, kernels need 64"));
        refused++;
    }
    assert_true(names == 1 && places == 1 && memories == 1 && lost == 2 && refused == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_failed_is_said),
        cmocka_unit_test(times_that_fail_are_said),
        cmocka_unit_test(memory_that_is_kept_is_given_back_for_more),
        cmocka_unit_test(devices_that_are_not_there_are_not_opened),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(what_is_not_told_is_left_out),
    };
    if (!opencl_is_here()) return 0;
    driver = stand_in();
    return cmocka_run_group_tests_name("calls of cuda", tests, NULL, NULL);
}
