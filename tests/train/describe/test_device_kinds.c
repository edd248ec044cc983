/* Devices that need a driver, by kinds of the test's own: how they are listed, and which of them each rank of
 * a job opens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"

#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "refuse.h"
#include "train/setup/device.h"
#include "trireme/inspect.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- kinds ---- */

/* Three devices: the second cannot be described, the third is slow, or, with `spoilt`, computes wrongly. */
#define MANY 3
static bool spoilt;
static _Thread_local struct tr_device_choice opened; /* the last one, without its borrowed name */
static _Thread_local char cache[64];

static tr_status describe(int number, char *text, size_t size)
{
    if (number >= MANY) return tr_fail(TR_ENOTFOUND, "there is no fourth");
    snprintf(text, size, "number %d of many", number);
    return number == 1 ? tr_fail(TR_EUNSUPPORTED, "its driver is too old") : TR_OK;
}

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    opened = *choice;
    opened.name = NULL;
    snprintf(cache, sizeof cache, "%s", choice->cache ? choice->cache : "none");
    if (spoilt && choice->number == 2) return tr_fail(TR_EUNSUPPORTED, "it computes wrongly");
    tr_status status = tr_device_create("cpu", 1, NULL, out);
    if (status == TR_OK) (*out)->slow = choice->number == 2;
    return status;
}

static int count(void)
{
    return MANY;
}

static tr_status describe_none(int number, char *text, size_t size)
{
    (void)number, (void)text, (void)size;
    return tr_fail(TR_ENOTFOUND, "there is no driver");
}

static int count_none(void)
{
    return 0;
}

static const struct tr_device_kind many = {
    .name = "many", .help = "several", .create = create, .describe = describe, .count = count};
static const struct tr_device_kind missing = {
    .name = "missing", .help = "not here", .create = create, .describe = describe_none, .count = count_none};

/* Any: the third of many, then the first. */
static tr_status resolve(int *number, const struct tr_device_kind **kind)
{
    if (*number > 1) return tr_fail(TR_ENOTFOUND, "there are two");
    *number = *number == 0 ? 2 : 0;
    *kind = &many;
    return TR_OK;
}

static const struct tr_device_kind any = {.name = "any", .help = "the best ones", .resolve = resolve};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &any.entry, &many.entry,
                                                 &missing.entry, NULL};
const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- lists ---- */

/* The cells of the line that begins so, after the end of another, with one blank between them. */
static void line_of(const char *text, const char *first, char out[256])
{
    const char *at = strstr(text, first);
    if (!at) fail_msg("\"%s\" has no %s", text, first);
    size_t length = 0;
    for (at++; *at && *at != '\n' && length < 255; at++)
        if (*at != ' ' || at[-1] != ' ') out[length++] = *at;
    out[length] = '\0';
}

static void expect_line(const char *text, const char *first, const char *line)
{
    char found[256];
    line_of(text, first, found);
    assert_string_equal(found, line);
}

static void a_line_for_each_device(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(tr_devices(&text), TR_OK);
    expect_line(text, "\nany:0", "any:0 many:2 the best ones");
    expect_line(text, "\nany:1", "any:1 many:0 the best ones");
    assert_null(strstr(text, "\nany:2"));
    expect_line(text, "\nmany:0", "many:0 number 0 of many tested when it is opened");
    expect_line(text, "\nmany:1", "many:1 number 1 of many refused: its driver is too old");
    expect_line(text, "\nmany:2", "many:2 number 2 of many tested when it is opened");
    assert_null(strstr(text, "\nmany:3"));
    assert_null(strstr(text, "\nmany "));
    expect_line(text, "\nmissing", "missing none there is no driver");
    tr_text_free(text);
}

static void tested_ones_have_been_opened(void **state)
{
    (void)state;
    char *text;
    spoilt = false;
    assert_int_equal(tr_devices_tested("here", 0, &text), TR_OK);
    assert_string_equal(cache, "here");
    expect_line(text, "\nmany:0", "many:0 number 0 of many exact");
    expect_line(text, "\nmany:1", "many:1 number 1 of many refused: its driver is too old");
    expect_line(text, "\nmany:2", "many:2 number 2 of many exact, slow");
    tr_text_free(text);
    spoilt = true;
    assert_int_equal(tr_devices_tested(NULL, 0, &text), TR_OK);
    assert_string_equal(cache, "none");
    expect_line(text, "\nmany:2", "many:2 number 2 of many refused: it computes wrongly");
    tr_text_free(text);
    spoilt = false;
}

/* As text and as JSON, tested or not. */
static tr_status list_by(int way, char **text)
{
    if (way >= 2) return tr_devices_tested("here", way == 3, text);
    return way ? tr_devices_json(text) : tr_devices(text);
}

static void every_allocation_of_a_list_fails(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++)
        for (int64_t at = 0, done = 0; !done; at++) {
            char *text = NULL;
            int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = list_by(way, &text);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("way %d, allocation %lld: %s", way, (long long)at, tr_status_name(status));
            if (done)
                tr_text_free(text);
            else
                assert_null(text);
            assert_int_equal(tr_alloc_live(), live);
        }
}

static void expect_device(const json_t *devices, size_t at, const char *facts, bool usable, const char *state)
{
    const json_t *device = json_array_get(devices, at);
    assert_int_equal(json_integer_value(json_object_get(device, "number")), at);
    assert_string_equal(json_string_value(json_object_get(device, "facts")), facts);
    assert_int_equal(json_is_true(json_object_get(device, "usable")), usable);
    assert_true(json_is_boolean(json_object_get(device, "usable")));
    assert_string_equal(json_string_value(json_object_get(device, "state")), state);
}

static void objects_say_the_same(void **state)
{
    (void)state;
    for (int tested = 0; tested < 2; tested++) {
        char *text;
        assert_int_equal(tested ? tr_devices_tested(NULL, 1, &text) : tr_devices_json(&text), TR_OK);
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        const json_t *kinds = json_object_get(root, "devices"), *names = json_array_get(kinds, 1),
                     *several = json_array_get(kinds, 2), *none = json_array_get(kinds, 3);
        assert_int_equal(json_array_size(kinds), 4);
        assert_true(json_is_true(json_object_get(json_array_get(kinds, 0), "default")));
        assert_string_equal(json_string_value(json_object_get(names, "name")), "any");
        assert_true(json_is_false(json_object_get(names, "default")));
        names = json_object_get(names, "devices");
        assert_int_equal(json_array_size(names), 2);
        for (size_t i = 0; i < 2; i++) {
            const json_t *name = json_array_get(names, i);
            assert_int_equal(json_integer_value(json_object_get(name, "number")), i);
            assert_string_equal(json_string_value(json_object_get(name, "is")), i ? "many:0" : "many:2");
        }
        assert_true(json_is_false(json_object_get(several, "default")));
        assert_null(json_object_get(several, "reason"));
        several = json_object_get(several, "devices");
        assert_int_equal(json_array_size(several), MANY);
        expect_device(several, 0, "number 0 of many", true, tested ? "exact" : "tested when it is opened");
        expect_device(several, 1, "number 1 of many", false, "refused: its driver is too old");
        expect_device(several, 2, "number 2 of many", true,
                      tested ? "exact, slow" : "tested when it is opened");
        assert_string_equal(json_string_value(json_object_get(none, "name")), "missing");
        assert_string_equal(json_string_value(json_object_get(none, "reason")), "there is no driver");
        assert_int_equal(json_array_size(json_object_get(none, "devices")), 0);
        json_decref(root);
        tr_text_free(text);
    }
}

/* ---- ranks ---- */

/* Each takes the name that its number says, and of several devices that which its number on the host says. */
static const char *open_own(tr_comm *comm)
{
    static const char *const expected[] = {"many:0", "cpu", "many:2", "cpu", "many:1", "cpu"};
    static const int host[] = {0, 0, 0, 1, 1, 1};
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_device *device, *other;
    const int rank = tr_comm_rank(comm);
    if (tr_comm_host_of(comm, rank) != host[rank]) return "another host";
    settings.program_cache = "kept";
    settings.profile = rank == 2;
    settings.trace = rank == 4 ? "trace.json" : NULL;
    opened = (struct tr_device_choice){.number = -1};
    if (tr_train_open_device("many,cpu", &settings, comm, 3, &device) != TR_OK) return tr_error_message();
    const char *wrong = strcmp(device->name, expected[rank]) != 0 ? "another device" : NULL;
    if (rank % 2 == 0 && (opened.number != (rank == 2 ? 2 : rank == 4 ? 1 : 0) || opened.threads != 3))
        wrong = "other options";
    if (rank % 2 == 0 && strcmp(cache, "kept") != 0) wrong = "another cache";
    if (rank % 2 == 0 && opened.timed != (rank > 0)) wrong = "timed, or not";
    if (rank % 2 && device->threads != 3) wrong = "other threads";
    /* It is itself, and no other. */
    if (!tr_train_is_device("many,cpu", comm, device)) wrong = "not itself";
    if (tr_train_is_device("cpu,many", comm, device)) wrong = "the other one";
    if (tr_train_is_device("many,abacus", comm, device) != (rank % 2 == 0)) wrong = "one that is none";
    if (tr_train_open_device("abacus", &settings, comm, 1, &other) != TR_ENOTFOUND || other)
        wrong = "an abacus";
    tr_device_destroy(&device);
    return wrong;
}

static void ranks_share_the_devices_of_their_host(void **state)
{
    (void)state;
    static const int host[] = {0, 0, 0, 1, 1, 1};
    ranks_run(6, host, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, open_own);
}

static void names_have_a_limit(void **state)
{
    (void)state;
    const struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    static const char name[] = "a23456789012345678901234567890123456789012345678901234567890";
    for (int length = 55; length <= 56; length++) {
        char own[64], text[160];
        tr_device *device = (tr_device *)(uintptr_t)name;
        snprintf(own, sizeof own, "%.*s", length, name);
        snprintf(text, sizeof text, "device \"%s\": there is none with such a long name", own);
        assert_int_equal(tr_train_open_device(own, &settings, NULL, 1, &device), TR_ENOTFOUND);
        assert_null(device);
        assert_int_equal(strcmp(tr_error_message(), text) == 0, length == 56);
    }
    tr_device *device;
    assert_int_equal(tr_train_open_device("many:2,cpu", &settings, NULL, 1, &device), TR_OK);
    assert_string_equal(device->name, "many:2"); /* with a number, it is that one */
    tr_device_destroy(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_for_each_device), cmocka_unit_test(tested_ones_have_been_opened),
        cmocka_unit_test(objects_say_the_same),   cmocka_unit_test(ranks_share_the_devices_of_their_host),
        cmocka_unit_test(names_have_a_limit),     cmocka_unit_test(every_allocation_of_a_list_fails),
    };
    return cmocka_run_group_tests_name("train.device_kinds", tests, NULL, NULL);
}
