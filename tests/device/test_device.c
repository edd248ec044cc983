/* Devices by their names, and what a device need not have: those of this program's own table of kinds. */
#include "device/device.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* ---- devices that note what is asked of them ---- */

static struct tr_device_choice asked; /* by the last creation */
static char called[512];              /* the functions of the class, in order */

static void note(const char *name)
{
    strncat(called, called[0] ? " " : "", sizeof called - strlen(called) - 1);
    strncat(called, name, sizeof called - strlen(called) - 1);
}

static void expect_called(const char *names)
{
    assert_string_equal(called, names);
    called[0] = '\0';
}

static tr_status own_alloc(tr_device *device, size_t bytes, void **out)
{
    (void)device;
    note("alloc");
    if (bytes > 1000) return tr_fail(TR_ENOMEM, "no room");
    *out = called;
    return TR_OK;
}

static void own_free(tr_device *device, void *memory)
{
    (void)device;
    assert_ptr_equal(memory, called);
    note("free");
}

static tr_status own_copy(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    note("copy");
    if (bytes > 0) memcpy(to, from, bytes);
    return TR_OK;
}

static tr_status own_copy_beside(tr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device, (void)to, (void)from, (void)bytes;
    note("beside");
    return TR_OK;
}

static tr_status own_wait(tr_device *device)
{
    (void)device;
    note("wait");
    return tr_fail(TR_EIO, "lost");
}

static tr_status own_record(tr_device *device, tr_event *out)
{
    (void)device;
    note("record");
    out->number = 5;
    return TR_OK;
}

static tr_status own_reached(tr_device *device, tr_event event, bool *out)
{
    (void)device;
    note("reached");
    *out = event.number != 5;
    return TR_OK;
}

static tr_status own_wait_for(tr_device *device, tr_event event)
{
    (void)device, (void)event;
    note("wait_for");
    return TR_OK;
}

static void own_free_pinned(tr_device *device, void *memory)
{
    (void)device, (void)memory;
    note("free_pinned");
}

static tr_status own_create_like(const tr_device *device, int threads, tr_device **out)
{
    (void)device;
    asked = (struct tr_device_choice){.threads = threads};
    *out = NULL;
    note("create_like");
    return TR_OK;
}

static int64_t own_room(tr_device *device)
{
    (void)device;
    return 123;
}

static int64_t own_memory(const tr_device *device)
{
    (void)device;
    return 456;
}

static double own_peak(tr_device *device, double seconds)
{
    (void)device;
    return 2 * seconds;
}

static bool own_set_idle(tr_device *device, tr_team_idle idle, void *arguments)
{
    (void)device, (void)idle;
    return arguments != NULL;
}

static void own_destroy(tr_device *device)
{
    (void)device;
    note("destroy");
}

static const struct tr_device_class bare = {.name = "bare",
                                            .version = TR_DEVICE_VERSION,
                                            .alloc = own_alloc,
                                            .free = own_free,
                                            .to_device = own_copy,
                                            .to_host = own_copy,
                                            .wait = own_wait,
                                            .destroy = own_destroy};
static const struct tr_device_class full = {.name = "full",
                                            .version = TR_DEVICE_VERSION,
                                            .host_memory = true,
                                            .alloc = own_alloc,
                                            .free = own_free,
                                            .to_device = own_copy,
                                            .to_host = own_copy,
                                            .to_host_beside = own_copy_beside,
                                            .wait = own_wait,
                                            .record = own_record,
                                            .reached = own_reached,
                                            .wait_for = own_wait_for,
                                            .alloc_pinned = own_alloc,
                                            .free_pinned = own_free_pinned,
                                            .create_like = own_create_like,
                                            .room = own_room,
                                            .memory = own_memory,
                                            .set_idle = own_set_idle,
                                            .peak = own_peak,
                                            .destroy = own_destroy};
static tr_device bare_device = {.class = &bare, .description = "a bare one", .threads = 3};
static tr_device full_device = {.class = &full, .description = "a full one", .threads = 3};

/* ---- the kinds ---- */

static tr_status create_one(const struct tr_device_choice *choice, tr_device **out)
{
    asked = *choice;
    *out = &bare_device;
    return TR_OK;
}

static tr_status create_many(const struct tr_device_choice *choice, tr_device **out)
{
    asked = *choice;
    if (choice->number == 9) return tr_fail(TR_EUNSUPPORTED, "the ninth is broken");
    *out = &full_device;
    return TR_OK;
}

static tr_status describe_many(int number, char *text, size_t size)
{
    snprintf(text, size, "one of many, %d", number);
    return TR_OK;
}

static tr_status describe_broken(int number, char *text, size_t size)
{
    (void)number;
    snprintf(text, size, "not to be seen");
    return tr_fail(TR_ENOTFOUND, "no driver");
}

static const struct tr_device_kind kind_one = {.name = "one", .help = "one", .create = create_one};
static const struct tr_device_kind kind_many = {
    .name = "many", .help = "many", .create = create_many, .describe = describe_many};
static const struct tr_device_kind kind_broken = {
    .name = "broken", .help = "broken", .create = create_many, .describe = describe_broken};

static tr_status resolve(int *number, const struct tr_device_kind **kind)
{
    if (*number > 5) return tr_fail(TR_ENOTFOUND, "there are five");
    *number += 10;
    *kind = &kind_many;
    return TR_OK;
}

static const struct tr_device_kind kind_other = {
    .name = "other", .help = "other", .resolve = resolve, .describe = describe_many};
static const struct tr_entry *const entries[] = {&kind_one.entry, &kind_many.entry, &kind_broken.entry,
                                                 &kind_other.entry, NULL};
const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- tests ---- */

static void names_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *name, *found;
    } good[] = {{"one", "one"},           {"many", "many:0"},   {"many:0", "many:0"},  {"many:07", "many:7"},
                {"many:999", "many:999"}, {"other", "many:10"}, {"other:5", "many:15"}};
    static const char number[] = "after the colon stands the number of a device, from 0";
    static const struct {
        const char *name;
        tr_status status;
        const char *part;
    } bad[] = {
        {"one:0", TR_EINVAL, "device \"one:0\": there is one one device, without a number"},
        {"one:", TR_EINVAL, "device \"one:\": there is one one device, without a number"},
        {"many:", TR_EINVAL, number},
        {"many:x", TR_EINVAL, number},
        {"many:-1", TR_EINVAL, number},
        {"many:+1", TR_EINVAL, number},
        {"many: 1", TR_EINVAL, number},
        {"many:1 ", TR_EINVAL, number},
        {"many:1:2", TR_EINVAL, number},
        {"many:1000", TR_EINVAL, "device \"many:1000\": after the colon stands"},
        {"many:99999999999999999999", TR_EINVAL, number},
        {"other:6", TR_ENOTFOUND, "there are five"},
        {"mny", TR_ENOTFOUND, "did you mean \"many\"?"},
        {"none:3", TR_ENOTFOUND, "; many:0 is one of many, 0; broken:0 cannot be used here: no driver"},
        {"oneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneone", TR_ENOTFOUND, "; many:0 is"},
    };
    char found[TR_DEVICE_NAME];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(tr_device_find(good[i].name, found), TR_OK);
        assert_string_equal(found, good[i].found);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tr_device *device = &bare_device;
        assert_int_equal(tr_device_find(bad[i].name, found), bad[i].status);
        if (!strstr(tr_error_message(), bad[i].part))
            fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), bad[i].part);
        assert_int_equal(tr_device_create(bad[i].name, 1, NULL, &device), bad[i].status);
        assert_null(device);
    }
    assert_null(strstr(tr_error_message(), "other:0")); /* it is listed as what it stands for */
    assert_null(strstr(tr_error_message(), "not to be seen"));
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_device_find("none", found);
        done = refuse_end();
        assert_true(status == TR_ENOTFOUND || (!done && status == TR_ENOMEM));
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void choices_are_handed_on(void **state)
{
    (void)state;
    tr_device *device;
    struct tr_device_choice choice = {
        .name = "other:2", .threads = 256, .isa = "x", .cache = "c", .timed = true};
    assert_int_equal(tr_device_open(&choice, &device), TR_OK);
    assert_ptr_equal(device, &full_device);
    assert_string_equal(device->name, "many:12");
    assert_int_equal(asked.number, 12);
    assert_int_equal(asked.threads, 256);
    assert_string_equal(asked.isa, "x");
    assert_string_equal(asked.cache, "c");
    assert_true(asked.timed);
    assert_int_equal(choice.number, 0);
    assert_int_equal(tr_device_create("one", 0, NULL, &device), TR_OK);
    assert_string_equal(device->name, "one");
    assert_true(asked.threads == 0 && !asked.isa && !asked.cache && !asked.timed);
    assert_int_equal(tr_device_create("one", -1, NULL, &device), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "threads: -1 is out of range; choose 1 to 256, or 0 for one per core");
    assert_null(device);
    assert_int_equal(tr_device_create("one", 257, NULL, &device), TR_EINVAL);
    /* One like another: by its own function, or by its name. */
    assert_int_equal(tr_device_create_like(&full_device, 7, &device), TR_OK);
    expect_called("create_like");
    assert_int_equal(asked.threads, 7);
    assert_int_equal(tr_device_create_like(&bare_device, 8, &device), TR_OK);
    assert_ptr_equal(device, &bare_device);
    assert_int_equal(asked.threads, 8);
    assert_string_equal(asked.name, "one");
    tr_device_destroy(&device);
    expect_called("destroy");
    assert_null(device);
    tr_device_destroy(&device);
    expect_called("");
}

/* What a class leaves out is as for a device of the host that is always done. */
static void what_a_device_lacks_has_a_meaning(void **state)
{
    (void)state;
    tr_device *device = &bare_device;
    tr_event event = {9};
    bool reached = false;
    void *memory = &event;
    char from[4] = "abc", to[4] = "";
    const int64_t live = tr_alloc_live();
    assert_true(tr_device_peak(device, 1) == 0);
    assert_false(tr_device_set_idle(device, NULL, &event));
    assert_true(tr_device_room(device) == INT64_MAX);
    assert_int_equal(tr_device_memory(device), 0);
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    assert_int_equal(event.number, 0);
    assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
    assert_true(reached);
    expect_called("");
    assert_int_equal(tr_device_wait_for(device, event), TR_EIO);
    expect_called("wait");
    assert_int_equal(tr_device_to_host_beside(device, to, from, 4), TR_OK);
    expect_called("copy");
    assert_string_equal(to, "abc");
    assert_int_equal(tr_device_alloc_pinned(device, 100, &memory), TR_OK);
    assert_int_equal((uintptr_t)memory % 64, 0);
    memset(memory, 1, 100);
    assert_int_equal(tr_alloc_live(), live + 1);
    tr_device_free_pinned(device, memory);
    tr_device_free_pinned(device, NULL);
    assert_int_equal(tr_alloc_live(), live);
    refuse_begin(0);
    assert_int_equal(tr_device_alloc_pinned(device, 100, &memory), TR_ENOMEM);
    refuse_end();
    assert_null(memory);
    assert_null(tr_device_host_view(device, from));
    assert_null(tr_device_adopt(device, from));
    tr_device_discard(device, memory, 100); /* it is not the host's */
    expect_called("");
    const struct tr_op_scale scale = {0};
    assert_int_equal(tr_device_scale(device, &scale), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(),
                        "device a bare one has no operation \"scale\"; use another device");
}

static void what_a_device_has_is_asked(void **state)
{
    (void)state;
    tr_device *device = &full_device;
    tr_event event = {9};
    bool reached = true;
    void *memory = &event;
    char from[4] = "abc", to[4] = "";
    assert_true(tr_device_peak(device, 1.5) == 3);
    assert_true(tr_device_set_idle(device, NULL, &event));
    assert_false(tr_device_set_idle(device, NULL, NULL));
    assert_int_equal(tr_device_room(device), 123);
    assert_int_equal(tr_device_memory(device), 456);
    assert_int_equal(tr_device_record(device, &event), TR_OK);
    assert_int_equal(event.number, 5);
    assert_int_equal(tr_device_reached(device, event, &reached), TR_OK);
    assert_false(reached);
    assert_int_equal(tr_device_wait_for(device, event), TR_OK);
    expect_called("record reached wait_for");
    assert_int_equal(tr_device_to_host_beside(device, to, from, 4), TR_OK);
    assert_int_equal(tr_device_to_device(device, to, from, 4), TR_OK);
    assert_int_equal(tr_device_to_host(device, to, from, 0), TR_OK);
    expect_called("beside copy copy");
    assert_int_equal(tr_device_alloc(device, 1001, &memory), TR_ENOMEM);
    assert_null(memory);
    assert_int_equal(tr_device_alloc(device, 1000, &memory), TR_OK);
    assert_ptr_equal(memory, called);
    called[0] = '\0';
    tr_device_free(device, memory);
    tr_device_free(device, NULL);
    expect_called("free");
    assert_int_equal(tr_device_alloc_pinned(device, 8, &memory), TR_OK);
    tr_device_free_pinned(device, memory);
    tr_device_free_pinned(device, NULL);
    expect_called("alloc free_pinned");
    assert_ptr_equal(tr_device_host_view(device, from), from);
    assert_ptr_equal(tr_device_adopt(device, from), from);
    assert_int_equal(tr_device_wait(device), TR_EIO);
    tr_fail(TR_EINVAL, "kept");
    tr_device_finish(device);
    expect_called("wait wait");
    assert_string_equal(tr_error_message(), "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_understood),
        cmocka_unit_test(choices_are_handed_on),
        cmocka_unit_test(what_a_device_lacks_has_a_meaning),
        cmocka_unit_test(what_a_device_has_is_asked),
    };
    return cmocka_run_group_tests_name("device.device", tests, NULL, NULL);
}
