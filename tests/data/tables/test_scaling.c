/* How columns were scaled, as a text that goes with a model: what was written is read again to the bit, and
 * what is not whole is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/tables/scaling.h"

enum { COLUMNS = 3, CLASSES = 7 };

static const double mean[COLUMNS] = {0, -1.0 / 3, 1e300}, deviation[COLUMNS] = {1, 0.1, 1e-300},
                    fill[COLUMNS] = {0, 2.0 / 7, -5};

/* The text of it, with what stands for gaps or without; free with tr_free(). */
static char *written(bool fills)
{
    struct tr_scaling scaling;
    char *text;
    assert_int_equal(tr_scaling_create(COLUMNS, &scaling), TR_OK);
    memcpy(scaling.mean, mean, sizeof mean);
    memcpy(scaling.deviation, deviation, sizeof deviation);
    if (fills) {
        assert_int_equal(tr_scaling_add_fill(&scaling), TR_OK);
        memcpy(scaling.fill, fill, sizeof fill);
    }
    assert_int_equal(tr_scaling_write(&scaling, CLASSES, &text), TR_OK);
    tr_scaling_release(&scaling);
    return text;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    for (int fills = 0; fills < 2; fills++) {
        struct tr_scaling scaling;
        int32_t classes;
        char *text = written(fills);
        if (tr_scaling_read(text, &scaling, &classes) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(classes, CLASSES);
        assert_int_equal(scaling.count, COLUMNS);
        assert_memory_equal(scaling.mean, mean, sizeof mean);
        assert_memory_equal(scaling.deviation, deviation, sizeof deviation);
        assert_int_equal(scaling.fill != NULL, fills);
        if (fills) assert_memory_equal(scaling.fill, fill, sizeof fill);
        tr_scaling_release(&scaling);
        tr_free(text);
    }
}

static void expect_refusal(char *text)
{
    struct tr_scaling scaling;
    int32_t classes;
    assert_non_null(text);
    tr_status status = tr_scaling_read(text, &scaling, &classes);
    if (status != TR_EFORMAT) fail_msg("%s: \"%s\"", tr_status_name(status), text);
    tr_free(text);
}

/* A line too few, one too many, and a deviation that nothing can be divided by. */
static void what_is_not_whole_is_refused(void **state)
{
    (void)state;
    for (int fills = 0; fills < 2; fills++) {
        char *text = written(fills), *last = text + strlen(text) - 1;
        while (last[-1] != '\n') last--;
        expect_refusal(tr_format("%.*s", (int)(last - text), text));
        expect_refusal(tr_format("%s%s", text, last));
        expect_refusal(tr_format("%s\n", text));
        expect_refusal(tr_format("%.*s1 0%s\n", (int)(last - text), text, fills ? " 1" : ""));
        tr_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(what_is_not_whole_is_refused),
    };
    return cmocka_run_group_tests_name("data.scaling", tests, NULL, NULL);
}
