/* Exports where memory is short: each format tells it, leaves no block behind and the old file as it was. */
#include "base/alloc.h"
#include "export/formats.h"
#include "export/hub/hub_given.h"
#include "refuse.h"
#include "scratch.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Lets every allocation of an export fail in turn. */
static void expect_told(tr_exporter *exporter, const char *format)
{
    char path[SCRATCH_PATH];
    snprintf(path, sizeof path, "%s", scratch_in(format));
    must_train(tr_file_remove(NULL, path)); /* what another case wrote */
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_exporter_write(exporter, format, path);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("%s, allocation %d: %d, %s", format, (int)at, (int)status, tr_error_message());
        if (tr_alloc_live() != live)
            fail_msg("%s, allocation %d: %d blocks stay", format, (int)at, (int)(tr_alloc_live() - live));
        if (!done && !tr_file_is_directory(path)) assert_false(tr_file_exists(path));
    }
    assert_true(tr_file_exists(path));
}

static void every_format_tells_it(void **state)
{
    static const char *const formats[] = {"safetensors", "npz", "torch", "onnx", "c", "hub", "gguf"};
    (void)state;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char run[SCRATCH_PATH], directory[SCRATCH_PATH];
    snprintf(run, sizeof run, "%s", scratch_in("run"));
    snprintf(directory, sizeof directory, "%s", scratch_in("given"));
    given_import(&given_gpt2, directory, run);
    settings.checkpoint = run;
    settings.name = "net";
    settings.layout = TR_LAYOUT_TORCH;
    must_train(tr_exporter_create(&settings, &exporter));
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) expect_told(exporter, formats[i]);
    tr_exporter_destroy(&exporter);
}

static void train(const char *set, const char *from, const char *out)
{
    struct job job;
    struct outcome outcome;
    job_begin(&job, scratch_in("small.yaml"));
    if (set) job_set(&job, set);
    job.settings.from = from;
    job.settings.out = out;
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

/* Columns of numbers and of names, some of which are missing. */
static void exports_of_scaled_data_tell_it(void **state)
{
    static const char model[] =
        "name: scaled\nseed: 3\n"
        "data: {train: {csv: {path: names.csv, label: value, categories: b, missing: mean}}}\n"
        "layers: [{dense: 1}]\nloss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: "
        "3, steps: 1}\n";
    static const char *const formats[] = {"onnx", "c", "torch"};
    (void)state;
    scratch_write_text("names.csv", "a,b,c\n1,x,3\n2,y,4\n,z,5\n4,,6\n5,x,7\n6,y,8\n");
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char run[SCRATCH_PATH];
    scratch_write_text("small.yaml", model);
    snprintf(run, sizeof run, "%s", scratch_in("scaled"));
    train(NULL, NULL, run);
    settings.checkpoint = run;
    must_train(tr_exporter_create(&settings, &exporter));
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) expect_told(exporter, formats[f]);
    tr_exporter_destroy(&exporter);
}

/* ---- adapters ---- */

static const char llama[] = "name: small\nseed: 3\n"
                            "data: {train: {corpus: {path: text, unit: characters, window: 6}}}\n"
                            "layers:\n"
                            "- embedding: {width: 8, name: tokens}\n"
                            "- attention: {heads: 2, causal: true, rotary: 100, name: attention0}\n"
                            "- dense: {units: 12, name: gate0}\n"
                            "- dense: {units: 9, name: scores}\n"
                            "optimizer: {rule: adam, rate: 0.05}\n"
                            "train: {batch: 4, microbatches: 1, steps: 1}\n";

static void exports_of_adapters_tell_it(void **state)
{
    (void)state;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char base[SCRATCH_PATH], run[SCRATCH_PATH];
    scratch_write_text("text", "abacabadabacabaefgabacabadabacabahhgfedcbaabacabadabacaba");
    scratch_write_text("small.yaml", llama);
    snprintf(base, sizeof base, "%s", scratch_in("base"));
    snprintf(run, sizeof run, "%s", scratch_in("adapted"));
    train(NULL, NULL, base);
    train("adapters={rank: 2, on: [attention, gate0]}", base, run);
    settings.checkpoint = run;
    must_train(tr_exporter_create(&settings, &exporter));
    expect_told(exporter, "peft");
    tr_exporter_destroy(&exporter);
    /* Merged, all at once: every allocation of reading the run and adding the products. */
    settings.merge = true;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_exporter_create(&settings, &exporter);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %d: %d, %s", (int)at, (int)status, tr_error_message());
        if (!done) assert_null(exporter);
        tr_exporter_destroy(&exporter);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* ---- imports ---- */

#define LOOKS 5

/* Lets allocations of an import fail in turn, over a run that is there. Those by which it looks whether it is
   given a directory of some kind are not told as such. */
static void expect_import(const char *file, const char *base, const char *text)
{
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    int64_t step;
    int others = 0;
    char out[SCRATCH_PATH], *path;
    snprintf(out, sizeof out, "%s", scratch_in("over"));
    settings.file = file;
    settings.base = base;
    settings.text = text;
    settings.out = out;
    settings.overwrite = true;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_import(&settings, &path);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM) && (done || ++others > LOOKS))
            fail_msg("%s, allocation %d: %d, %s", file, (int)at, (int)status, tr_error_message());
        tr_free(path);
        if (tr_alloc_live() != live)
            fail_msg("%s, allocation %d: %d blocks stay", file, (int)at, (int)(tr_alloc_live() - live));
    }
    must_train(tr_checkpoint_latest(out, &step));
    assert_int_equal(step, 0);
}

static void imports_tell_it(void **state)
{
    char given[SCRATCH_PATH], base[SCRATCH_PATH], adapters[SCRATCH_PATH], text[SCRATCH_PATH];
    (void)state;
    expect_import(scratch_join(given, scratch_place, "given"), NULL, NULL);
    expect_import(given, NULL, scratch_join(text, scratch_place, "text"));
    expect_import(scratch_join(adapters, scratch_place, "peft"), scratch_join(base, scratch_place, "base"),
                  NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_tells_it),
        cmocka_unit_test(exports_of_scaled_data_tell_it),
        cmocka_unit_test(exports_of_adapters_tell_it),
        cmocka_unit_test(imports_tell_it),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
