/* Names of tensors in files of others: which of them a rename is about, and which it is not. */
#include "export/rename.h"

#include "base/alloc.h"
#include "trireme/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

/* The name in the file of a tensor of ours, under one rename. */
static void a_name_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *rename, *ours, *theirs;
        bool transposed;
    } cases[] = {
        {"net.0=conv1", "conv1.weight", "net.0.weight", false},
        {"net.0=conv1", "conv12.weight", "conv12.weight", false},
        {"net.0=conv1", "conv.weight", "conv.weight", false},
        {"net.0^T=conv1", "conv1.weight", "net.0.weight", true},
        {"scale=norm1.gain", "norm1.gain", "scale", false},
        {"scale=norm1.gain", "norm1.shift", "norm1.shift", false},
        {"h.*=dense*", "dense7.bias", "h.7.bias", false},
        {"h.*.fc=dense*", "dense190.bias", "h.190.fc.bias", false},
        {"h.*=dense*_a", "dense2_a.bias", "h.2.bias", false},
        {"h.*=dense*_a", "dense2_b.bias", "dense2_b.bias", false},
        /* A star stands for at least one digit, and for digits alone. */
        {"h.*=dense*", "dense.bias", "dense.bias", false},
        {"h.*=dense*_a", "dense_a.bias", "dense_a.bias", false},
        {"h.*=dense*", "dense1x.bias", "dense1x.bias", false},
        {"h.*=dense*", "dense/.bias", "dense/.bias", false}, /* before 0 */
        {"h.*=dense*", "dense:.bias", "dense:.bias", false}, /* behind 9 */
        /* What is before and behind it may not be the same letters of the name. */
        {"h.*=aa*aa", "aaa.bias", "aaa.bias", false},
        {"h.*=aa*aa", "aa0aa.bias", "h.0.bias", false},
        {"h.*=*", "12.bias", "h.12.bias", false},
        {"h.*.g=norm*.gain", "norm3.gain", "h.3.g", false},
        {"h.*.g=norm*.gain", "norm.gain", "norm.gain", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool transposed;
        char *found = tr_rename_find(&cases[i].rename, 1, cases[i].ours, &transposed);
        assert_non_null(found);
        if (strcmp(found, cases[i].theirs) != 0)
            fail_msg("%s: %s is found as %s", cases[i].rename, cases[i].ours, found);
        assert_int_equal(transposed, cases[i].transposed);
        tr_free(found);
    }
}

/* The first rename that is about a tensor counts. */
static void the_first_one_counts(void **state)
{
    (void)state;
    static const char *const renames[] = {"mask=", "first=dense1", "h.*=dense*"};
    static const char *const names[][2] = {{"dense1.bias", "first.bias"}, {"dense2.bias", "h.2.bias"}};
    for (int i = 0; i < 2; i++) {
        bool transposed;
        char *found = tr_rename_find(renames, 3, names[i][0], &transposed);
        assert_string_equal(found, names[i][1]);
        tr_free(found);
    }
}

static void what_is_left_out_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *rename, *name;
        bool passes;
    } cases[] = {
        {"mask=", "mask", true},         {"mask=", "mask.1", false},      {"mask=", "mas", false},
        {"mask.*=", "mask.1", true},     {"mask.*=", "mask.", false},     {"mask.*=", "mask.x", false},
        {"h.*.mask=", "h.1.mask", true}, {"h.*.mask=", "h..mask", false}, {"h.*.mask=", "h.mask", false},
        {"mask=dense1", "mask", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (tr_rename_passes(&cases[i].rename, 1, cases[i].name) != cases[i].passes)
            fail_msg("%s: %s", cases[i].rename, cases[i].name);
}

static void a_rename_of_nothing_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"dense.weight", "dense.bias", "norm1.gain"};
    static const struct {
        const char *rename, *word; /* NULL: none */
    } cases[] = {
        {"a=dense", NULL},
        {"a=norm1.gain", NULL},
        {"a=dense.weight", NULL},
        {"a.*=norm*", NULL},
        {"mask=", NULL},
        {"a.*=dense*", "no layer \"dense*\""},
        {"a=norm", "no layer \"norm\""},
        {"a=norm1.shift", "no tensor \"norm1.shift\""},
        {"a.*=dense", "renames nothing"},
        {"a=dense*", "renames nothing"},
        {"a.*.*=dense*", "renames nothing"},
        {"=dense", "renames nothing"},
        {"dense", "renames nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_status status = tr_rename_check(&cases[i].rename, 1, names, 3);
        if ((status == TR_OK) != !cases[i].word) fail_msg("%s: %s", cases[i].rename, tr_error_message());
        if (cases[i].word && !strstr(tr_error_message(), cases[i].word))
            fail_msg("%s: %s", cases[i].rename, tr_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_found),
        cmocka_unit_test(the_first_one_counts),
        cmocka_unit_test(what_is_left_out_is_named),
        cmocka_unit_test(a_rename_of_nothing_is_refused),
    };
    return cmocka_run_group_tests_name("export.rename", tests, NULL, NULL);
}
