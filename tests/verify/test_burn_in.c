/* Burn-ins: processors and devices that compute rightly are told so, with the hash that is known; one that
 * flips a single bit in a single operation is named, and nobody else is. */
#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "device/ref/ref.h"
#include "support/training.h"
#include "verify/burn_in.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* ---- a device that errs ---- */

/* Updates of all such devices until the one that goes wrong; 0: it is over. */
static atomic_int until;
static tr_status (*update)(tr_device *device, const struct tr_op_update *arguments);

static tr_status err_once(tr_device *device, const struct tr_op_update *arguments)
{
    uint32_t bits;
    tr_status status = update(device, arguments);
    if (status != TR_OK || arguments->count == 0 || atomic_fetch_sub(&until, 1) != 1) return status;
    memcpy(&bits, &arguments->w[arguments->count / 2], sizeof bits);
    bits ^= 1; /* the least one of a number */
    memcpy(&arguments->w[arguments->count / 2], &bits, sizeof bits);
    return TR_OK;
}

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    static struct tr_device_class class;
    struct tr_device_choice own = *choice;
    own.name = "cpu";
    TR_TRY(tr_device_kind_cpu.create(&own, out));
    class = *(*out)->class;
    class.dense_backward_update = NULL;
    update = class.update;
    class.update = err_once;
    (*out)->class = &class;
    return TR_OK;
}

static const struct tr_device_kind erring = {
    .name = "erring", .help = "the cpu device, with one bit wrong, once", .create = create};

/* ---- devices that wear out ---- */

/* The cpu device, of which so many more are made, once they count. */
static atomic_bool counted;
static atomic_int left;

static tr_status create_worn(const struct tr_device_choice *choice, tr_device **out)
{
    if (counted && atomic_fetch_sub(&left, 1) <= 0) return tr_fail(TR_EIO, "it is worn out");
    return tr_device_kind_cpu.create(choice, out);
}

static const struct tr_device_kind worn = {.name = "cpu", .help = "the cpu device", .create = create_worn};

/* ---- a kind of several devices ---- */

static tr_status third;                 /* of looking at number 3 */
static struct tr_device_choice *wanted; /* how one is made, where a test asks */

static tr_status create_one(const struct tr_device_choice *choice, tr_device **out)
{
    struct tr_device_choice own = *choice;
    if (wanted) *wanted = *choice;
    own.name = "cpu";
    own.number = 0;
    return tr_device_kind_cpu.create(&own, out);
}

static tr_status describe(int number, char *text, size_t size)
{
    snprintf(text, size, "one of three");
    if (number == 1) return tr_fail(TR_EUNSUPPORTED, "it is of no use");
    if (number == 3) return tr_fail(third, "that is all");
    return TR_OK;
}

static tr_status resolve(int *number, const struct tr_device_kind **kind)
{
    (void)number, (void)kind;
    return tr_fail(TR_ENOTFOUND, "another name");
}

static const struct tr_device_kind several = {
    .name = "several", .help = "devices of a driver", .create = create_one, .describe = describe};
static const struct tr_device_kind alias = {
    .name = "alias", .help = "another name for them", .resolve = resolve, .describe = describe};

static const struct tr_entry *const entries[] = {
    &worn.entry, &tr_device_kind_ref.entry, &erring.entry, &several.entry, &alias.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- burn-ins ---- */

struct heard {
    int places, wrong_places, failed;
    int64_t rounds, wrong;
    char name[80], failure[200], all[1024]; /* the last bad one; all, each with a line feed */
};

static void hear(void *user, const struct tr_burn_in_event *event)
{
    struct heard *heard = user;
    assert_true(event->rounds >= 1 || *event->failure);
    heard->places++;
    heard->rounds += event->rounds;
    heard->wrong += event->wrong;
    strncat(strncat(heard->all, event->place, 80), "\n", 2);
    /* The hash is that of a wrong training. */
    assert_int_equal(strlen(event->hash), event->wrong > 0 ? TR_SHA256_TEXT - 1 : 0);
    assert_string_not_equal(event->hash, burn_in_hash);
    heard->failed += *event->failure != '\0';
    if (event->wrong == 0 && !*event->failure) return;
    heard->wrong_places++;
    snprintf(heard->name, sizeof heard->name, "%s", event->place);
    snprintf(heard->failure, sizeof heard->failure, "%s", event->failure);
}

static bool burn(const char *const *devices, int count, struct heard *heard)
{
    struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
    bool good;
    *heard = (struct heard){0};
    settings.devices = devices;
    settings.device_count = count;
    must_train(tr_burn_in(&settings, hear, heard, &good));
    return good;
}

static void every_device_has_the_known_hash(void **state)
{
    (void)state;
    struct heard heard;
    const char *const devices[] = {"ref", "cpu"};
    tr_source *data;
    char hash[TR_SHA256_TEXT];
    must_train(burn_in_data(&data));
    must_train(burn_in_run(data, "ref", NULL, hash));
    tr_source_close(&data);
    assert_string_equal(hash, burn_in_hash);
    assert_true(burn(devices, 2, &heard));
    assert_true(heard.places >= 3);
    assert_int_equal(heard.wrong_places, 0);
}

static void a_single_bit_names_the_device(void **state)
{
    (void)state;
    const char *const devices[] = {"erring", "ref"};
    static const int when[] = {1, 50};
    for (int i = 0; i < 2; i++) {
        struct heard heard;
        until = when[i];
        assert_false(burn(devices, 2, &heard));
        assert_int_equal(heard.wrong_places, 1);
        assert_int_equal(heard.wrong, 1);
        assert_int_equal(heard.failed, 0);
        assert_string_equal(heard.name, "erring");
    }
}

static void one_that_cannot_be_had_is_named(void **state)
{
    (void)state;
    struct heard heard;
    const char *const devices[] = {"nothing"};
    assert_false(burn(devices, 1, &heard));
    assert_int_equal(heard.failed, 1);
    assert_string_equal(heard.name, "nothing");
    assert_non_null(strstr(heard.failure, "nothing"));
}

/* Without names: each that can be used, and none of the kinds that need no driver. */
static void devices_with_drivers_are_found(void **state)
{
    (void)state;
    struct heard heard;
    third = TR_ENOTFOUND;
    assert_true(burn(NULL, 0, &heard));
    const char *devices = strstr(heard.all, "several");
    assert_non_null(devices);
    assert_string_equal(devices, "several:0\nseveral:2\n");
    assert_int_equal(strncmp(heard.all, "processor ", 10), 0);
    assert_null(strstr(heard.all, "ref"));
    assert_true(burn((const char *const[]){"ref"}, 1, &heard));
    assert_null(strstr(heard.all, "several"));
}

/* Each place computes by itself, on one thread; programs of devices are kept where they are to be. */
static void a_place_has_one_thread_and_the_given_cache(void **state)
{
    (void)state;
    struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
    struct tr_device_choice choice = {.threads = -1};
    bool good = false;
    settings.devices = (const char *const[]){"several:2"};
    settings.device_count = 1;
    settings.program_cache = "kept";
    wanted = &choice;
    must_train(tr_burn_in(&settings, NULL, NULL, &good));
    wanted = NULL;
    assert_true(good);
    assert_int_equal(choice.threads, 1);
    assert_string_equal(choice.cache, "kept");
}

static void lack_of_memory_ends_the_search(void **state)
{
    (void)state;
    struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
    struct heard heard = {0};
    bool good = true;
    third = TR_ENOMEM;
    assert_int_equal(tr_burn_in(&settings, hear, &heard, &good), TR_ENOMEM);
    assert_false(good);
    assert_int_equal(heard.places, 0);
}

/* Its end is far away: each place goes on until its device fails, and no longer. */
static void places_go_on_until_the_end(void **state)
{
    (void)state;
    struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
    struct heard once, heard = {0};
    bool good = true;
    third = TR_ENOTFOUND;
    assert_true(burn((const char *const[]){"ref"}, 1, &once));
    assert_int_equal(once.rounds, once.places); /* of no seconds: one for each */
    settings.seconds = 1e9;
    settings.devices = (const char *const[]){"cpu"};
    settings.device_count = 1;
    left = 12 * once.places;
    counted = true;
    must_train(tr_burn_in(&settings, hear, &heard, &good));
    counted = false;
    assert_false(good);
    assert_int_equal(heard.failed, heard.places);
    assert_string_equal(heard.failure, "it is worn out");
    assert_int_equal(heard.wrong, 0);
    assert_true(heard.rounds > heard.places);
}

static void seconds_that_are_none_are_refused(void **state)
{
    static const double wrong[] = {-0.5, -1e300, NAN};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
        bool good = true;
        settings.seconds = wrong[i];
        assert_int_equal(tr_burn_in(&settings, NULL, NULL, &good), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "give 0 or more"));
        assert_false(good);
    }
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    struct tr_burn_in_settings settings = TR_BURN_IN_SETTINGS_INIT;
    bool good = false;
    third = TR_ENOTFOUND;
    must_train(tr_burn_in(&settings, NULL, NULL, &good));
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_has_the_known_hash),
        cmocka_unit_test(a_single_bit_names_the_device),
        cmocka_unit_test(one_that_cannot_be_had_is_named),
        cmocka_unit_test(devices_with_drivers_are_found),
        cmocka_unit_test(a_place_has_one_thread_and_the_given_cache),
        cmocka_unit_test(lack_of_memory_ends_the_search),
        cmocka_unit_test(places_go_on_until_the_end),
        cmocka_unit_test(seconds_that_are_none_are_refused),
        cmocka_unit_test(nobody_needs_to_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
