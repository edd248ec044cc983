/* The file of a receipt: what is written is read, to the byte; whatever else is there is refused with what is
 * wrong. */
#include "base/alloc.h"
#include "mutate.h"
#include "receipt/receipt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *text; /* of a receipt with boundaries after 0, 7 and 20 steps of 20 */

static void add_boundary(struct tr_receipt *receipt, int64_t step)
{
    struct tr_receipt_boundary boundary = {.step = step};
    memset(&boundary.root, (int)(step + 1), sizeof boundary.root);
    memset(&boundary.chain, (int)(step + 2), sizeof boundary.chain);
    if (receipt->count == 0) {
        struct tr_chain_begin begin = {receipt->settings, receipt->data, boundary.root};
        assert_int_equal(tr_chain_begin(&begin, &boundary.chain), TR_OK);
    }
    assert_int_equal(tr_receipt_add(receipt, &boundary), TR_OK);
}

static void make(struct tr_receipt *receipt)
{
    *receipt = (struct tr_receipt){.numerics = 2, .seed = UINT64_MAX, .steps = 20};
    receipt->program = tr_strdup("trireme 0.1.0");
    receipt->model = tr_strdup("name: \"a\"\n\xc3\xa4: 1\n");
    memset(&receipt->settings, 0xab, sizeof receipt->settings);
    memset(&receipt->data, 0xcd, sizeof receipt->data);
    add_boundary(receipt, 0);
    add_boundary(receipt, 7);
    add_boundary(receipt, 20);
    memset(receipt->parameters, 'e', TR_SHA256_TEXT - 1);
}

static int set_up(void **state)
{
    struct tr_receipt receipt;
    (void)state;
    make(&receipt);
    tr_status status = tr_receipt_write(&receipt, &text);
    tr_receipt_release(&receipt);
    return status != TR_OK;
}

static int tear_down(void **state)
{
    (void)state;
    tr_free(text);
    return 0;
}

static tr_status read_text(const char *bytes, size_t size)
{
    struct tr_receipt receipt;
    char *again;
    tr_status status = tr_receipt_read("r", bytes, size, &receipt);
    if (status != TR_OK) {
        assert_int_equal(receipt.count, 0);
        assert_non_null(strstr(tr_error_message(), "r"));
        return status;
    }
    assert_int_equal(tr_receipt_write(&receipt, &again), TR_OK);
    tr_receipt_release(&receipt);
    status = tr_receipt_read("r", again, strlen(again), &receipt);
    tr_receipt_release(&receipt);
    tr_free(again);
    return status;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct tr_receipt receipt;
    char *again;
    assert_int_equal(tr_receipt_read("r", text, strlen(text), &receipt), TR_OK);
    assert_int_equal(receipt.count, 3);
    assert_true(receipt.seed == UINT64_MAX);
    assert_string_equal(receipt.model, "name: \"a\"\n\xc3\xa4: 1\n");
    assert_int_equal(tr_receipt_find(&receipt, 7)->root.byte[31], 8);
    assert_null(tr_receipt_find(&receipt, 8));
    assert_null(tr_receipt_find(&receipt, 21));
    assert_int_equal(tr_receipt_write(&receipt, &again), TR_OK);
    assert_string_equal(again, text);
    tr_free(again);
    tr_receipt_release(&receipt);
}

static void a_boundary_takes_the_place_of_later_ones(void **state)
{
    (void)state;
    struct tr_receipt receipt;
    make(&receipt);
    add_boundary(&receipt, 7);
    assert_int_equal(receipt.count, 2);
    assert_string_equal(receipt.parameters, "");
    add_boundary(&receipt, 9);
    assert_int_equal(receipt.count, 3);
    tr_receipt_release(&receipt);
}

/* The text with `what` replaced, once. */
static tr_status changed(const char *what, const char *by)
{
    const char *at = strstr(text, what);
    assert_non_null(at);
    char *other = tr_format("%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
    assert_non_null(other);
    tr_status status = read_text(other, strlen(other));
    tr_free(other);
    return status;
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    assert_int_equal(changed("trireme receipt", "trireme recipe"), TR_EFORMAT);
    assert_int_equal(changed("\"format_version\": 1", "\"format_version\": 2"), TR_EUNSUPPORTED);
    assert_int_equal(changed("\"seed\": \"", "\"sead\": \""), TR_EFORMAT);
    assert_int_equal(changed("\"18446744073709551615\"", "\"18446744073709551616\""), TR_EFORMAT);
    assert_int_equal(changed("\"18446744073709551615\"", "\"-1\""), TR_EFORMAT);
    assert_int_equal(changed("\"18446744073709551615\"", "\"01\""), TR_EFORMAT);
    assert_int_equal(changed("\"steps\": 20", "\"steps\": 0"), TR_EFORMAT);
    assert_int_equal(changed("\"numerics\": 2", "\"numerics\": \"2\""), TR_EFORMAT);
    /* Beyond the steps, out of order, twice, none, half of one. */
    assert_int_equal(changed("\"steps\": 20", "\"steps\": 19"), TR_EFORMAT);
    assert_int_equal(changed("\"7\": [", "\"21\": ["), TR_EFORMAT);
    assert_int_equal(changed("\"0\": [", "\"8\": ["), TR_EFORMAT);
    assert_int_equal(changed("\"7\": [", "\"20\": ["), TR_EFORMAT);
    assert_int_equal(changed("\"7\": [", "\"07\": ["), TR_EFORMAT);
    assert_int_equal(changed("\"7\": [", "\"7\": [\"\", "), TR_EFORMAT);
    assert_int_equal(changed("\"boundaries\": {", "\"boundaries\": [], \"log\": {"), TR_EFORMAT);
    assert_int_equal(changed("\"log\": \"\"", "\"log\": \"abc\""), TR_EFORMAT);
    /* Digests that are none, and that do not fit each other. */
    assert_int_equal(changed("abab", "ABAB"), TR_EFORMAT);
    assert_int_equal(changed("abab", "aba"), TR_EFORMAT);
    assert_int_equal(changed("abab", "abac"), TR_ECORRUPT);
    assert_int_equal(changed("cdcd", "cdce"), TR_ECORRUPT);
    assert_int_equal(changed("0101", "0102"), TR_ECORRUPT);
    assert_int_equal(changed("\"steps\": 20", "\"steps\": 21"), TR_OK); /* a run that has not ended */
}

static void every_beginning_is_refused(void **state)
{
    (void)state;
    size_t size = strlen(text);
    for (size_t i = 0; i < size - 1; i++) assert_int_equal(read_text(text, i), TR_EFORMAT);
    assert_int_equal(read_text(text, size - 1), TR_OK); /* without the last line feed */
}

static void damage_is_refused_or_harmless(void **state)
{
    (void)state;
    size_t size = strlen(text);
    char *damaged = malloc(size + 64);
    int refused = 0;
    assert_non_null(damaged);
    for (uint32_t round = 0; round < 20000; round++) {
        size_t now = mutate_bytes(round, text, size, damaged);
        refused += read_text(damaged, now) != TR_OK;
    }
    assert_true(refused > 10000);
    free(damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_boundary_takes_the_place_of_later_ones),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(every_beginning_is_refused),
        cmocka_unit_test(damage_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
