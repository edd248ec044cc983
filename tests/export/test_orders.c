/* Vectors that were images have their numbers in another order in PyTorch: which layers can take them, and
 * what is said of those that cannot. */
#include "export/layout.h"

#include "base/fail.h"
#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define APART                                                                                                \
    " takes a vector that was an image apart, whose numbers stand in another order channels first; use the " \
    "layout trireme"
#define UNLIKE                                                                                               \
    " vectors of which one was an image, and channels first they do not match; use the layout trireme"

static void layers_take_images_in_their_order(void **state)
{
    static const struct {
        const char *input, *layers, *message; /* NULL: it fits */
    } cases[] = {
        {"2x2x3", "layers: [flatten, {slice: {begin: 0, size: 4, name: part}}, {dense: 2}]",
         "layer \"part\"" APART},
        {"2x2x1", "layers: [flatten, {slice: {begin: 0, size: 4, name: part}}, {dense: 2}]", NULL},
        {"1x1x5", "layers: [flatten, {slice: {begin: 0, size: 4, name: part}}, {dense: 2}]", NULL},
        {"12", "layers: [{slice: {begin: 0, size: 4, name: part}}, {dense: 2}]", NULL},
        {"2x2x3", "layers: [flatten, {reshape: [3, 2, 2]}, {dense: 2}]", "layer \"reshape1\"" APART},
        {"12", "layers: [{reshape: [3, 2, 2]}, {dense: 2}]", NULL},
        {"2x2x4", "layers: [flatten, {group_norm: {groups: 2, name: part}}, {dense: 2}]",
         "layer \"part\"" APART},
        {"2x2x4", "layers: [{group_norm: {groups: 2, name: part}}, {dense: 2}]", NULL},
        {"2x2x4",
         "layers: [{flatten: {name: f}}, {dense: {units: 3, name: g}}, {concat: {from: [g, f], name: "
         "all}}, {dense: 2}]",
         "layer \"all\" joins" UNLIKE},
        {"2x2x4",
         "layers: [{flatten: {name: f}}, {dense: {units: 3, name: g}}, {concat: {from: [f, g], name: "
         "all}}, {dense: 2}]",
         "layer \"all\" joins" UNLIKE},
        {"2x2x4",
         "layers: [{relu: {name: f}}, {tanh: {name: g}}, {concat: {from: [f, g], name: all}}, {dense: "
         "2}]",
         NULL},
        {"8",
         "layers: [{relu: {name: f}}, {dense: {units: 3, name: g}}, {concat: {from: [f, g], name: all}}, "
         "{dense: 2}]",
         NULL},
        {"2x2x4",
         "layers: [{flatten: {name: f}}, {dense: {units: 16, name: g}}, {add: {from: [g, f], name: "
         "all}}, {dense: 2}]",
         "layer \"all\" adds" UNLIKE},
        {"2x2x4",
         "layers: [{flatten: {name: f}}, {dense: {units: 16, name: g}}, {multiply: {from: [g, f], "
         "name: all}}, {dense: 2}]",
         "layer \"all\" multiplies" UNLIKE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_model *model;
        struct tr_layout_list list;
        must(network_build(cases[i].layers, cases[i].input, 0, &model));
        const tr_status status = tr_layout_list_make(model, TR_LAYOUT_TORCH, &list);
        if (status != (cases[i].message ? TR_EUNSUPPORTED : TR_OK))
            fail_msg("case %d: %s", (int)i, tr_status_name(status));
        if (cases[i].message && !strstr(tr_error_message(), cases[i].message))
            fail_msg("case %d: \"%s\"", (int)i, tr_error_message());
        tr_layout_list_free(&list);
        tr_model_destroy(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_take_images_in_their_order),
    };
    return cmocka_run_group_tests_name("export.orders", tests, NULL, NULL);
}
