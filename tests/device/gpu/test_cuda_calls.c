/* Calls of the layer for CUDA in which the driver fails, on the stand-in for it: each says what failed, and
 * leaves nothing behind. No kernel is compiled.
 */
#include "device/gpu/internal.h"
#include "support/cuda/control.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_failed_is_said),
        cmocka_unit_test(times_that_fail_are_said),
        cmocka_unit_test(memory_that_is_kept_is_given_back_for_more),
        cmocka_unit_test(devices_that_are_not_there_are_not_opened),
    };
    driver = stand_in();
    return cmocka_run_group_tests_name("calls of cuda", tests, NULL, NULL);
}
