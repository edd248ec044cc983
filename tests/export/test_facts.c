/* What exported files say of the run that they are from. */
#include "export/onnx/file.h"
#include "io/safetensors.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct outcome outcome;

static void train(const char *input)
{
    static char run[SCRATCH_PATH];
    struct job job;
    char text[512];
    snprintf(text, sizeof text,
             "name: small\ndata: {train: {csv: {path: table.csv}}}\n%s"
             "layers: [{dense: {units: 2, name: scores}}]\noptimizer: {rule: adam, rate: 0.1, ema: 0.5}\n"
             "train: {batch: 4, steps: 3, log_every: 0}\n",
             input);
    scratch_write_text("table.csv", "1,2,0\n3,4,1\n5,7,1\n2,1,0\n");
    scratch_write_text("small.yaml", text);
    job_begin(&job, scratch_in("small.yaml"));
    job.settings.out = scratch_join(run, scratch_place, "run");
    must_train(tr_file_remove(NULL, run));
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static const char *export_as(const char *format, bool average, enum tr_layout layout, const char *name)
{
    static char path[SCRATCH_PATH];
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char run[SCRATCH_PATH];
    settings.checkpoint = scratch_join(run, scratch_place, "run");
    settings.use_average = average;
    settings.layout = layout;
    settings.name = name;
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, format, scratch_join(path, scratch_place, "file")));
    tr_exporter_destroy(&exporter);
    return path;
}

static void expect_member(const Onnx__ModelProto *model, const char *key, const char *value)
{
    for (size_t i = 0; i < model->n_metadata_props; i++)
        if (strcmp(model->metadata_props[i]->key, key) == 0) {
            if (!value) fail_msg("%s is \"%s\"", key, model->metadata_props[i]->value);
            assert_string_equal(model->metadata_props[i]->value, value);
            return;
        }
    if (value) fail_msg("there is no %s", key);
}

static void graphs_name_their_run(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        train(named ? "input: {classes: [\"a \\\"b\\\"\", c]}\n" : "");
        Onnx__ModelProto *model = onnx_read(export_as("onnx", named == 0, TR_LAYOUT_TRIREME, "net"));
        char origin[256];
        snprintf(origin, sizeof origin,
                 "small, trained for 3 steps, parameters %s%s; written by trireme " TRIREME_VERSION,
                 outcome.hash, named ? "" : " (their moving averages)");
        assert_string_equal(model->graph->name, "net");
        assert_string_equal(model->doc_string, origin);
        expect_member(model, "name", "small");
        expect_member(model, "step", "3");
        expect_member(model, "hash", outcome.hash);
        expect_member(model, "parameters", named ? "as trained" : "moving averages");
        expect_member(model, "classes", named ? "[\"a \\\"b\\\"\",\"c\"]" : NULL);
        onnx__model_proto__free_unpacked(model, NULL);
    }
}

static void tensors_name_their_run(void **state)
{
    (void)state;
    train("");
    for (int torch = 0; torch < 2; torch++) {
        tr_safetensors *file;
        const char *path = export_as("safetensors", torch == 0, torch ? TR_LAYOUT_TORCH : TR_LAYOUT_TRIREME,
                                     torch ? "net" : NULL);
        must_train(tr_safetensors_open(path, &file));
        assert_string_equal(tr_safetensors_metadata(file, "format"), torch ? "pt" : "trireme");
        assert_string_equal(tr_safetensors_metadata(file, "layout"), torch ? "torch" : "trireme");
        assert_string_equal(tr_safetensors_metadata(file, "name"), torch ? "net" : "small");
        assert_string_equal(tr_safetensors_metadata(file, "program"), "trireme " TRIREME_VERSION);
        assert_string_equal(tr_safetensors_metadata(file, "step"), "3");
        assert_string_equal(tr_safetensors_metadata(file, "numbers"),
                            torch ? "parameters" : "moving averages");
        assert_string_equal(tr_safetensors_metadata(file, "input"), "2");
        assert_non_null(strstr(tr_safetensors_metadata(file, "layers"), "\"scores\""));
        tr_safetensors_close(&file);
    }
}

static void programs_of_c_name_their_run(void **state)
{
    (void)state;
    struct tr_file_content content;
    char origin[256];
    train("");
    must_train(tr_file_read(export_as("c", true, TR_LAYOUT_TRIREME, "net"), 1 << 20, &content));
    snprintf(origin, sizeof origin,
             "/* small, trained for 3 steps, parameters %s (their moving averages); written by trireme "
             "" TRIREME_VERSION "\n",
             outcome.hash);
    assert_int_equal(strncmp(content.data, origin, strlen(origin)), 0);
    tr_file_content_free(&content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_name_their_run),
        cmocka_unit_test(tensors_name_their_run),
        cmocka_unit_test(programs_of_c_name_their_run),
    };
    return cmocka_run_group_tests_name("export.facts", tests, scratch_place_make, scratch_place_remove);
}
