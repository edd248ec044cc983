/* Burn-ins: processors and devices that compute rightly are told so, with the hash that is known; one that
 * flips a single bit in a single operation is named, and nobody else is. */
#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "device/ref/ref.h"
#include "support/training.h"
#include "verify/burn_in.h"

#include <setjmp.h>
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

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                                 &erring.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- burn-ins ---- */

struct heard {
    int places, wrong_places, failed;
    int64_t wrong;
    char name[80];
};

static void hear(void *user, const struct tr_burn_in_event *event)
{
    struct heard *heard = user;
    assert_true(event->rounds >= 1 || *event->failure);
    heard->places++;
    heard->wrong += event->wrong;
    heard->failed += *event->failure != '\0';
    if (event->wrong == 0 && !*event->failure) return;
    heard->wrong_places++;
    snprintf(heard->name, sizeof heard->name, "%s", event->place);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_has_the_known_hash),
        cmocka_unit_test(a_single_bit_names_the_device),
        cmocka_unit_test(one_that_cannot_be_had_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
