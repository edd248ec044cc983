/* Networks and settings that no format takes, and what is said of them. */
#include "base/fail.h"
#include "export/formats.h"
#include "export/trace.h"
#include "support/networks.h"
#include "trireme/export.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Sequences of two lengths, of which one is half the other. */
static void lengths_are_equal(void **state)
{
    static const struct network apart = {
        "two lengths", "12x1x4", 0,
        "layers: [{tokens: {name: t}}, {conv1d: {filters: 4, kernel: 3, stride: 2, name: s}}, "
        "{cross_attention: "
        "{from: [t, s], heads: 1, name: c}}, global_average_pool, {dense: 2}]"};
    struct tr_trace *trace = (struct tr_trace *)&trace;
    struct trial trial;
    (void)state;
    trial_make(&trial, &apart, "ref", 2, 1);
    assert_int_equal(tr_trace_create(trial.model, trial.parameters, NULL, &trace), TR_EUNSUPPORTED);
    assert_null(trace);
    assert_string_equal(
        tr_error_message(),
        "layer \"c\" attends to sequences of another length, which no format but ours can say "
        "yet; use the checkpoint, or export parameters as numbers");
    trial_release(&trial);
}

/* Sequences that no format but ours has. */
static void sequences_are_of_tokens(void **state)
{
    static const struct {
        struct network network;
        const char *message;
    } cases[] = {
        {{"vectors", "tokens x 4", 0, "layers: [last, {dense: 2}]"},
         "the network takes sequences of vectors; exports take tokens, images or numbers"},
        {{"both", "tokens", 7,
          "layers: [{embedding: 8}, last, {reshape: [2, 2, 2]}, tokens, global_average_pool, {dense: 2}]"},
         "the network takes texts and also makes sequences of images; exports know one or the other"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_trace *trace = (struct tr_trace *)&trace;
        struct tr_model *model;
        must(network_build(cases[i].network.text, cases[i].network.input, cases[i].network.vocabulary,
                           &model));
        assert_int_equal(tr_trace_create(model, NULL, NULL, &trace), TR_EUNSUPPORTED);
        assert_null(trace);
        assert_string_equal(tr_error_message(), cases[i].message);
        const struct tr_job job = {.model = model};
        const struct tr_checkpoint_facts facts = {.program = "a program"};
        const struct tr_intake intake = {.count = 0};
        const struct tr_export what = {.job = &job, .facts = &facts, .intake = &intake, .name = "net"};
        if (i == 1) {
            assert_int_equal(tr_export_torch(&what, "nowhere.py"), TR_EUNSUPPORTED);
            assert_string_equal(tr_error_message(), cases[i].message);
        }
        tr_model_destroy(&model);
    }
}

static void expect_refusal(const struct tr_export_settings *settings, const char *message)
{
    tr_exporter *exporter = (tr_exporter *)&exporter;
    assert_int_equal(tr_exporter_create(settings, &exporter), TR_EINVAL);
    assert_null(exporter);
    assert_string_equal(tr_error_message(), message);
}

static void settings_are_complete(void **state)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    (void)state;
    expect_refusal(&settings, "no checkpoint is given to export");
    settings.layout = (enum tr_layout)7;
    expect_refusal(&settings, "there is no layout 7");
    settings.layout = TR_LAYOUT_TORCH;
    settings.checkpoint = "somewhere";
    settings.state.bytes = "x";
    settings.state.size = 1;
    expect_refusal(&settings, "both `checkpoint` and `state` are given; give one of them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_equal),
        cmocka_unit_test(sequences_are_of_tokens),
        cmocka_unit_test(settings_are_complete),
    };
    return cmocka_run_group_tests_name("export.refused", tests, NULL, NULL);
}
