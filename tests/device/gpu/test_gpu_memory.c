/* A gpu device's memory, on an interface without a driver (host.h): blocks that are found by their addresses,
 * limits, memory for intermediate numbers, and tables; and what stays when a call fails.
 */
#include "device/gpu/on_host.h"
#include "support/gpu/tables.h"

#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* ---- memory ---- */

static void blocks_are_found_by_their_addresses(void **state)
{
    enum { BLOCKS = 40, FLOATS = 50 };
    float *there[BLOCKS], here[FLOATS];
    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(tr_device_alloc(device, FLOATS * sizeof(float), (void **)&there[i]), TR_OK);
        for (int k = 0; k < FLOATS; k++) here[k] = (float)(100 * i + k);
        assert_int_equal(tr_device_to_device(device, there[i], here, sizeof here), TR_OK);
    }
    for (int i = 0; i < BLOCKS; i += 3) {
        tr_device_free(device, there[i]);
        there[i] = NULL;
    }
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < BLOCKS; i++) {
            const int at = turn ? BLOCKS - 1 - i : i * 7 % BLOCKS;
            if (!there[at]) continue;
            assert_int_equal(tr_device_to_host(device, here, there[at] + 10, 4 * sizeof(float)), TR_OK);
            for (int k = 0; k < 4; k++) assert_true(here[k] == (float)(100 * at + 10 + k));
        }
    assert_int_equal(host.blocks, BLOCKS - 14);
    assert_int_equal(gpu_of(device)->held, (BLOCKS - 14) * sizeof here);
    /* In all of them, and behind the last float of one. */
    size_t at;
    assert_non_null(gpu_find(gpu_of(device), there[1] + FLOATS, &at));
    assert_int_equal(at, sizeof here);
    assert_true(gpu_aligned(device, NULL, 16));
    assert_true(gpu_aligned(device, there[1] + 4, 16));
    assert_false(gpu_aligned(device, there[1] + 5, 16));
    const int copies = host.copies;
    assert_int_equal(tr_device_to_host(device, here, there[1], 0), TR_OK);
    assert_int_equal(tr_device_to_device(device, there[1], here, 0), TR_OK);
    assert_int_equal(tr_device_to_host_beside(device, here, there[1], 0), TR_OK);
    assert_int_equal(host.copies, copies);
    assert_int_equal(tr_device_to_host_beside(device, here, there[1] + 1, 4), TR_OK);
    assert_true(here[0] == 101);
    void *empty, *pinned;
    assert_int_equal(tr_device_alloc(device, 0, &empty), TR_OK);
    tr_device_free(device, empty);
    assert_int_equal(tr_device_alloc_pinned(device, 0, &pinned), TR_OK);
    assert_int_equal(host.pinned, 1);
    tr_device_free_pinned(device, pinned);
}

static void memory_is_limited(void **state)
{
    (void)state;
    void *first, *second;
    gpu_of(device)->info.memory = 10 << 20;
    gpu_of(device)->info.allocation = 6 << 20;
    assert_int_equal(tr_device_room(device), 6 << 20);
    assert_int_equal(tr_device_memory(device), 10 << 20);
    assert_int_equal(tr_device_alloc(device, (6 << 20) + 1, &first), TR_ENOMEM);
    assert_null(first);
    assert_int_equal(tr_device_alloc(device, 6 << 20, &first), TR_OK);
    assert_int_equal(tr_device_room(device), 4 << 20);
    assert_int_equal(tr_device_alloc(device, (4 << 20) + 1, &second), TR_ENOMEM);
    assert_string_equal(tr_error_message(),
                        "host:0 (a host) has no room for 4.0 MiB: it has 10.0 MiB, at most 6.0 MiB in one "
                        "piece, and this run holds 6.0 MiB of it; fewer examples at a time (train.pass) need "
                        "less");
    assert_int_equal(tr_device_alloc(device, 4 << 20, &second), TR_OK);
    assert_int_equal(tr_device_room(device), 0);
    tr_device_free(device, first);
    tr_device_free(device, second);
    /* Where the device itself has none, or is lost. */
    for (int lost = 0; lost < 2; lost++) {
        host.how = lost ? TR_EPEER : TR_ENOMEM;
        fail_at("alloc", 0);
        assert_int_equal(tr_device_alloc(device, 1 << 20, &first), host.how);
        assert_message_has(lost ? "alloc failed" : "has no room for 1.0 MiB");
        assert_null(first);
        assert_int_equal(gpu_of(device)->held, 0);
        assert_int_equal(gpu_of(device)->block_count, 0);
    }
    gpu_of(device)->info.unified = true;
    assert_int_equal(tr_device_memory(device), 0);
    gpu_of(device)->info = (struct gpu_info){.memory = UINT64_MAX};
    assert_true(tr_device_memory(device) == INT64_MAX);
}

/* Kilobytes of addresses. */
static long addresses(void)
{
    long kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmSize: %ld", &kilobytes) == 1) break;
    fclose(file);
    assert_true(kilobytes > 0);
    return kilobytes;
}

static void addresses_are_given_back(void **state)
{
    (void)state;
    void *memory;
    const long before = addresses();
    for (int i = 0; i < 200; i++) {
        fail_at("alloc", i % 2);
        assert_int_equal(tr_device_alloc(device, 64 << 20, &memory), i % 2 ? TR_OK : TR_EPEER);
        tr_device_free(device, memory);
    }
    assert_true(addresses() < before + 1000000); /* of the 13 million that were taken */
}

static void scratch_grows(void **state)
{
    (void)state;
    void *first, *second;
    assert_int_equal(gpu_scratch(device, 1000, &first), TR_OK);
    assert_int_equal(gpu_scratch(device, 1000, &second), TR_OK);
    assert_ptr_equal(first, second);
    assert_int_equal(gpu_scratch(device, 10, &second), TR_OK);
    assert_ptr_equal(first, second);
    assert_int_equal(gpu_of(device)->held, 1000);
    assert_int_equal(gpu_scratch(device, 1001, &second), TR_OK);
    assert_int_equal(gpu_of(device)->held, 1001);
    assert_int_equal(host.blocks, 1);
    fail_at("alloc", 0);
    assert_int_equal(gpu_scratch(device, 2000, &second), TR_EPEER);
    assert_int_equal(gpu_of(device)->held, 0);
    host.fails = NULL;
    assert_int_equal(gpu_scratch(device, 10, &second), TR_OK);
    assert_int_equal(gpu_of(device)->held, 10);
}

/* ---- tables ---- */

static void tables_are_found_by_their_contents(void **state)
{
    (void)state;
    expect_tables(device, 1, expect_table);
    assert_int_equal(host.blocks, gpu_of(device)->table_count);
    assert_true(host.waits > 0); /* before those were freed that the device might read */
}

/* Where one cannot be made, nothing of it stays, and it is made the next time. */
static void tables_that_fail_are_none(void **state)
{
    (void)state;
    static const char *const functions[] = {"alloc", "to_device"};
    const int32_t numbers[] = {7, 8, 9};
    const void *table;
    for (int i = 0; i < 2; i++) {
        fail_at(functions[i], 0);
        assert_int_equal(gpu_table(device, numbers, sizeof numbers, &table), TR_EPEER);
        assert_int_equal(gpu_of(device)->held, 0);
        assert_int_equal(gpu_of(device)->table_count, 0);
        assert_int_equal(host.blocks, 0);
    }
    host.fails = NULL;
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = gpu_table(device, numbers, sizeof numbers, &table);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(gpu_of(device)->table_count, done);
        assert_int_equal(host.blocks, done);
    }
    expect_table(table, numbers, sizeof numbers);
    fail_at("wait", 0); /* to make room */
    for (int32_t i = 1; i < 4096; i++) assert_int_equal(gpu_table(device, &i, sizeof i, &table), TR_OK);
    assert_int_equal(gpu_table(device, numbers, 4, &table), TR_OK); /* it is 7 */
    const int32_t more = 5000;
    assert_int_equal(gpu_table(device, &more, sizeof more, &table), TR_EPEER);
    host.fails = NULL;
    assert_int_equal(gpu_table(device, &more, sizeof more, &table), TR_OK);
    expect_table(table, &more, sizeof more);
    assert_in_range(gpu_of(device)->table_count, 2040, 2060); /* the half that was used last */
    assert_int_equal(gpu_table(device, numbers, sizeof numbers, &table), TR_OK);
    expect_table(table, numbers, sizeof numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(blocks_are_found_by_their_addresses),
        ON_HOST(memory_is_limited),
        ON_HOST(addresses_are_given_back),
        ON_HOST(scratch_grows),
        ON_HOST(tables_are_found_by_their_contents),
        ON_HOST(tables_that_fail_are_none),
    };
    return cmocka_run_group_tests_name("memory of a gpu", tests, NULL, NULL);
}
