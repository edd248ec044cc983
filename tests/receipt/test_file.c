/* The file of a receipt: what is written is read, to the byte; whatever else is there is refused with what is
 * wrong. */
#include "base/alloc.h"
#include "mutate.h"
#include "receipt/receipt.h"
#include "refuse.h"

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

/* Refused with a message that begins so. */
static void expect_refused(const char *what, const char *by, const char *message)
{
    char begin[128];
    assert_int_equal(changed(what, by), TR_EFORMAT);
    snprintf(begin, sizeof begin, "\"r\" is no receipt: %s", message);
    if (strncmp(tr_error_message(), begin, strlen(begin)) != 0) fail_msg("%s: %s", begin, tr_error_message());
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    expect_refused("trireme receipt", "trireme recipe", "format is \"trireme recipe\"");
    expect_refused("\"steps\": 20", "\"notes\": \"\", \"steps\": 20", "it has a member \"notes\"");
    expect_refused("\"18446744073709551615\"", "\"\"", "seed is \"\"");
    expect_refused("\"18446744073709551615\"", "\"1x\"", "seed is \"1x\"");
    expect_refused("abab", "ABAB", "settings is \"ABAB");
    expect_refused("\"log\": \"\"", "\"log\": \"abc\"", "log is \"abc\"");
    expect_refused("eeee", "eee", "parameters is \"eee");
    expect_refused("\"7\": [", "\"21\": [", "a boundary after \"21\" of 20 steps");
    expect_refused("\"7\": [", "\"0x7\": [", "a boundary after \"0x7\" of 20 steps");
    expect_refused("\"0\": [", "\"8\": [", "the boundary of step 7 stands after that of 8");
    expect_refused("\"7\": [", "\"7\": [\"\", ", "the boundary of step 7 is no two digests");
    expect_refused("0808", "080", "the boundary of step 7 is no two digests");
    expect_refused("0909", "090", "the boundary of step 7 is no two digests");
    expect_refused("\"7\": [", "\"7\": {}, \"8\": [", "the boundary of step 7 is no two digests");
    assert_int_equal(changed("abab", "abac"), TR_ECORRUPT);
    assert_non_null(
        strstr(tr_error_message(), "\"r\" contradicts itself: its chain does not begin with its settings"));
    assert_int_equal(changed("\"format_version\": 1", "\"format_version\": 7"), TR_EUNSUPPORTED);
    assert_string_equal(tr_error_message(),
                        "\"r\" has version 7 of the format, this program reads 1; take a newer one");
    assert_int_equal(changed("\"format_version\": 1", "\"format_version\": 0"), TR_EFORMAT);
    assert_int_equal(changed("\"numerics\": 2", "\"numerics\": 0"), TR_EFORMAT);
    assert_int_equal(changed("\"numerics\": 2", "\"numerics\": 2147483648"), TR_EFORMAT);
    assert_int_equal(changed("\"numerics\": 2", "\"numerics\": 2147483647"), TR_OK);
}

/* Each member is needed. */
static void a_missing_member_is_named(void **state)
{
    static const char *const members[] = {"format",   "format_version", "program", "numerics",
                                          "settings", "data",           "seed",    "steps",
                                          "log",      "parameters",     "model",   "boundaries"};
    (void)state;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        /* From its line on to the next one: the last member, with all of its lines, to the end. */
        char key[32], *other;
        snprintf(key, sizeof key, "  \"%s\": ", members[i]);
        const char *at = strstr(text, key), *next = at ? strstr(at, "\n  \"") : NULL;
        assert_non_null(at);
        if (next)
            other = tr_format("%.*s%s", (int)(at - text), text, next + 1);
        else /* without the comma before it */
            other = tr_format("%.*s\n}\n", (int)(at - text) - 2, text);
        assert_non_null(other);
        assert_int_equal(read_text(other, strlen(other)), TR_EFORMAT);
        snprintf(key, sizeof key, "\"%s\"", members[i]);
        if (!strstr(tr_error_message(), key)) fail_msg("%s is not in: %s", key, tr_error_message());
        tr_free(other);
    }
}

static void one_without_boundaries_is_refused(void **state)
{
    (void)state;
    const char *at = strstr(text, "\"boundaries\": {");
    char *other = tr_format("%.*s\"boundaries\": {}\n}\n", (int)(at - text), text);
    assert_non_null(other);
    assert_int_equal(read_text(other, strlen(other)), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "\"r\" is no receipt: it has no boundary");
    tr_free(other);
}

static void it_has_room_for_so_many_boundaries(void **state)
{
    (void)state;
    struct tr_receipt receipt = {.steps = 2 * TR_RECEIPT_BOUNDARIES};
    struct tr_receipt_boundary boundary = {0};
    for (int64_t i = 0; i < TR_RECEIPT_BOUNDARIES; i++) {
        boundary.step = i;
        assert_int_equal(tr_receipt_add(&receipt, &boundary), TR_OK);
    }
    boundary.step = TR_RECEIPT_BOUNDARIES;
    memset(receipt.parameters, 'e', 4);
    assert_int_equal(tr_receipt_add(&receipt, &boundary), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "at most 100000 boundaries; set train.receipt_every higher"));
    assert_int_equal(receipt.count, TR_RECEIPT_BOUNDARIES);
    assert_string_equal(receipt.parameters, "eeee");
    boundary.step = TR_RECEIPT_BOUNDARIES - 1; /* in the place of the last one */
    assert_int_equal(tr_receipt_add(&receipt, &boundary), TR_OK);
    assert_int_equal(receipt.count, TR_RECEIPT_BOUNDARIES);
    for (int64_t i = 0; i < TR_RECEIPT_BOUNDARIES; i += 9999)
        assert_ptr_equal(tr_receipt_find(&receipt, i), &receipt.boundary[i]);
    tr_receipt_release(&receipt);
    assert_null(receipt.boundary);
    assert_int_equal(receipt.count, 0);
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_receipt receipt;
        char *again = NULL;
        refuse_begin(at);
        tr_status status = tr_receipt_read("r", text, strlen(text), &receipt);
        if (status == TR_OK) status = tr_receipt_write(&receipt, &again);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_string_equal(again, text);
        tr_free(again);
        tr_receipt_release(&receipt);
        assert_int_equal(tr_alloc_live(), live);
    }
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
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_missing_member_is_named),
        cmocka_unit_test(one_without_boundaries_is_refused),
        cmocka_unit_test(it_has_room_for_so_many_boundaries),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(every_beginning_is_refused),
        cmocka_unit_test(damage_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
