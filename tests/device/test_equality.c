/* Every operation, every case, every kind of numbers: each instruction set of the cpu device, with 1 to 4
 * threads, gives the bytes of ref and writes nothing else.
 */
#include "device/equal.h"
#include "device/cpu/cpu.h"
#include "device/isas.h"
#include "sanitized.h"

#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define MOST_THREADS 4

static const char *const isas[] = {TR_ISAS(TR_ISA_NAME)};

static tr_device *reference;
static tr_device *devices[LENGTH(isas) * MOST_THREADS];
static int device_count;

/* The same on all machines, and so many times smaller, so that small cases have several blocks. */
static void set_room(struct cpu_room *room, int64_t times)
{
    *room = cpu_room_of(&(struct tr_caches){0}, 1, 1);
    room->first /= times;
    room->second /= times;
    room->last /= times;
    room->shared /= times;
}

/* Members of three and four take parts of different sizes. */
static void set_shares(tr_device *device)
{
    static const double shares[][MOST_THREADS] = {{0.5, 0.1, 0.4}, {0.1, 0.4, 0.15, 0.35}};
    if (device->threads >= 3) cpu_balance_fix(cpu_device_of(device)->balance, shares[device->threads - 3]);
}

static int make_devices(void **state)
{
    (void)state;
    assert_int_equal(tr_device_create("ref", 1, NULL, &reference), TR_OK);
    for (int i = 0; i < LENGTH(isas); i++) {
        /* Under a sanitizer alone and with a number that divides nothing evenly. */
        for (int threads = 1; threads <= MOST_THREADS; threads += SANITIZED ? 2 : 1) {
            tr_device *device;
            tr_status status = tr_device_create("cpu", threads, isas[i], &device);
            if (status == TR_EUNSUPPORTED) {
                printf("[  NOTE    ] skipped: %s\n", tr_error_message());
                break;
            }
            if (status != TR_OK) fail_msg("%s", tr_error_message());
            cpu_device_of(device)->alone = 0; /* every member takes part, however small the case */
            set_shares(device);
            set_room(&cpu_device_of(device)->room, threads == 1 ? 1 : threads % 2 ? 64 : 1024);
            devices[device_count++] = device;
        }
    }
    assert_true(device_count >= MOST_THREADS / (SANITIZED ? 2 : 1)); /* plain runs everywhere */
    return 0;
}

static int destroy_devices(void **state)
{
    (void)state;
    while (device_count > 0) tr_device_destroy(&devices[--device_count]);
    tr_device_destroy(&reference);
    return 0;
}

static void test_operation(void **state)
{
    equal_to_reference(*state, reference, devices, device_count);
}

int main(int count, char **arguments)
{
    struct CMUnitTest tests[CASE_LISTS];
    for (int i = 0; i < CASE_LISTS; i++)
        tests[i] =
            (struct CMUnitTest){case_lists[i].operation, test_operation, NULL, NULL, (void *)&case_lists[i]};
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("cpu gives the bytes of ref", tests, make_devices, destroy_devices);
}
