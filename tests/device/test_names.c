/* Devices by their names: those of this program's own table of kinds. */
#include "device/noting.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_status create_one(const struct tr_device_choice *choice, tr_device **out)
{
    noted_choice = *choice;
    *out = &bare_device;
    return TR_OK;
}

static tr_status create_many(const struct tr_device_choice *choice, tr_device **out)
{
    noted_choice = *choice;
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
    assert_int_equal(noted_choice.number, 12);
    assert_int_equal(noted_choice.threads, 256);
    assert_string_equal(noted_choice.isa, "x");
    assert_string_equal(noted_choice.cache, "c");
    assert_true(noted_choice.timed);
    assert_int_equal(choice.number, 0);
    assert_int_equal(tr_device_create("one", 0, NULL, &device), TR_OK);
    assert_string_equal(device->name, "one");
    assert_true(noted_choice.threads == 0 && !noted_choice.isa && !noted_choice.cache && !noted_choice.timed);
    assert_int_equal(tr_device_create("one", -1, NULL, &device), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "threads: -1 is out of range; choose 1 to 256, or 0 for one per core");
    assert_null(device);
    assert_int_equal(tr_device_create("one", 257, NULL, &device), TR_EINVAL);
    /* One like another: by its own function, or by its name. */
    assert_int_equal(tr_device_create_like(&full_device, 7, &device), TR_OK);
    expect_called("create_like");
    assert_int_equal(noted_choice.threads, 7);
    assert_int_equal(tr_device_create_like(&bare_device, 8, &device), TR_OK);
    assert_ptr_equal(device, &bare_device);
    assert_int_equal(noted_choice.threads, 8);
    assert_string_equal(noted_choice.name, "one");
    tr_device_destroy(&device);
    expect_called("destroy");
    assert_null(device);
    tr_device_destroy(&device);
    expect_called("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_understood),
        cmocka_unit_test(choices_are_handed_on),
    };
    return cmocka_run_group_tests_name("device.names", tests, NULL, NULL);
}
