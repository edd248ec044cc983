/* Inspection: the memory that it promises is what a trainer takes; it needs no more than it must; memory may
 * fail. */
#include "trireme/trireme.h"

#include "base/fail.h"
#include "base/files/file.h"
#include "refuse.h"
#include "scratch.h"
#include "train/describe/summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>
#include <zlib.h>

static void write_text(const char *path, const char *text)
{
    assert_int_equal(tr_file_write_atomic(NULL, path, text, strlen(text)), TR_OK);
}

static int make_place(void **state)
{
    scratch_place_make(state);
    if (chdir(scratch_place) != 0) return -1;
    write_text("numbers.csv", "0,0,0\n1,0,1\n0,1,2\n1,1,0\n0.5,2,1\n3,1,2\n1,7,2\n");
    write_text("words.tsv", "a b c\t0\nb a\t1\nc c c c c\t1\na\t0\n");
    write_text("adam.yaml", "name: adam\n"
                            "data: {train: {csv: {path: numbers.csv}}}\n"
                            "layers: [{dense: {units: 20, activation: tanh}}, {batch_norm: }, {dense: 3}]\n"
                            "optimizer: {rule: adam, rate: 0.01, ema: 0.9}\n"
                            "train: {batch: 6, microbatches: 5, steps: 10}\n");
    write_text("lstm.yaml", "name: lstm\n"
                            "data: {train: {text: {path: words.tsv, min_count: 1}}}\n"
                            "layers: [{embedding: 7}, {lstm: 5}, last, {dropout: 0.5}, {dense: 2}]\n"
                            "optimizer: {rule: momentum, rate: 0.01}\n"
                            "train: {batch: 3, microbatches: 3, pass: 1, steps: 10}\n");
    write_text("image.yaml", "name: image\n"
                             "input: {shape: [12, 12, 2]}\n"
                             "layers:\n"
                             "  - conv: {filters: 4, kernel: 3, activation: relu}\n"
                             "  - max_pool: 2\n"
                             "  - flatten\n"
                             "  - dense: 3\n"
                             "optimizer: {rule: sgd, rate: 0.1}\n"
                             "train: {batch: 4, microbatches: 2, steps: 10}\n");
    return 0;
}

static int remove_place(void **state)
{
    if (chdir("/") != 0) return -1;
    return scratch_place_remove(state);
}

static void must_summarize(const char *path, const char *const *set, int count, struct tr_summary *summary)
{
    const struct tr_inspect_settings settings = {.path = path, .set = set, .set_count = count};
    if (tr_summary_make(&settings, summary) != TR_OK) fail_msg("%s", tr_error_message());
}

/* All but what does not grow with the network: scalars and norms. */
static void memory_is_that_of_a_trainer(void **state)
{
    (void)state;
    static const char *const models[] = {"adam.yaml", "lstm.yaml"};
    static const char *const sets[] = {"train.pass=0", "train.pass=1", "train.pass=2",
                                       "optimizer={rule: muon, rate: 0.01}"};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
            struct tr_train_info info = TR_TRAIN_INFO_INIT;
            struct tr_summary summary;
            tr_trainer *trainer;
            settings.model = models[i];
            settings.set = &sets[k];
            settings.set_count = 1;
            settings.threads = 1;
            assert_int_equal(tr_trainer_create(&settings, &trainer), TR_OK);
            assert_int_equal(tr_trainer_info(trainer, &info), TR_OK);
            assert_int_equal(
                tr_summary_make(
                    &(struct tr_inspect_settings){.path = models[i], .set = &sets[k], .set_count = 1},
                    &summary),
                TR_OK);
            int64_t promised =
                summary.parameter_bytes + summary.gradient_bytes + summary.state_bytes + summary.pass_bytes;
            assert_true(promised <= info.memory && info.memory - promised < 512);
            assert_int_equal(summary.job->model->parameter_total, info.parameters);
            tr_summary_release(&summary);
            tr_trainer_destroy(&trainer);
        }
}

static void operations_are_counted(void **state)
{
    (void)state;
    struct tr_summary summary;
    assert_int_equal(
        tr_summary_make(&(struct tr_inspect_settings){.path = "image.yaml", .set = NULL, .set_count = 0},
                        &summary),
        TR_OK);
    /* 10 x 10 pixels of 4 filters over 3 x 3 x 2; 5 x 5 x 4 maxima of 4; 100 x 3 products. */
    int64_t conv = 2 * 100 * 4 * 18, pool = summary.layer[1].operations, dense = 2 * 100 * 3;
    assert_int_equal(summary.layer[0].operations, conv);
    assert_int_equal(summary.layer[2].operations, 0);
    assert_int_equal(summary.operations, conv + pool + dense);
    assert_int_equal(summary.step_operations, 4 * (2 * conv + 2 * pool + 3 * dense));
    assert_int_equal(summary.layer[2].bytes, 0); /* flatten is its input under another shape */
    assert_int_equal(summary.layer[0].bytes, 400 * (int64_t)sizeof(float));
    tr_summary_release(&summary);
}

/* Beside its output a layer keeps what its backward pass needs: here the scale of each row. */
static void what_backward_needs_is_counted(void **state)
{
    (void)state;
    static const char *const vector[] = {"layers=[{dense: 4}, rms_norm, {dense: 3}]"},
                             *const tokens[] = {"layers=[{embedding: 7}, rms_norm, last, {dense: 2}]"};
    struct tr_summary summary;
    must_summarize("adam.yaml", vector, 1, &summary);
    assert_int_equal(summary.layer[0].bytes, 4 * sizeof(float));
    assert_int_equal(summary.layer[1].bytes, (4 + 1) * sizeof(float));
    assert_false(summary.layer[1].per_token);
    tr_summary_release(&summary);
    must_summarize("lstm.yaml", tokens, 1, &summary);
    assert_int_equal(summary.layer[1].bytes, (7 + 1) * sizeof(float));
    assert_true(summary.layer[1].per_token);
    tr_summary_release(&summary);
}

/* Of an image that is cut into tokens their number is known without data. */
static void tokens_of_images_are_counted(void **state)
{
    (void)state;
    static const char *const set[] = {
        "layers=[{conv: {filters: 5, kernel: 4, stride: 4}}, tokens, {dense: {units: 3, "
        "name: each}}, last, {dense: {units: 2, name: whole}}]"};
    struct tr_summary summary;
    must_summarize("image.yaml", set, 1, &summary);
    assert_int_equal(summary.tokens, 9); /* of 12 x 12 pixels */
    assert_false(summary.layer[0].per_token);
    assert_true(summary.layer[2].per_token);
    assert_false(summary.layer[4].per_token);
    const int64_t conv = 9 * 2 * 5 * 4 * 4 * 2, each = 2 * 5 * 3, whole = 2 * 3 * 2;
    assert_int_equal(summary.layer[0].operations, conv);
    assert_int_equal(summary.layer[2].operations, each);
    const int64_t last = summary.layer[3].operations * (summary.layer[3].per_token ? 9 : 1);
    assert_int_equal(summary.operations, conv + 9 * each + last + whole);
    /* Backwards the first layer has its weights alone, the others their inputs, too. */
    assert_int_equal(summary.step_operations, 4 * (2 * conv + 3 * 9 * each + 2 * last + 3 * whole));
    tr_summary_release(&summary);
}

/* A shape in the file is enough. */
static void no_data_are_needed(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(tr_inspect("image.yaml", NULL, 0, &text), TR_OK);
    assert_non_null(strstr(text, "10x10x4"));
    tr_text_free(text);
    assert_int_equal(tr_inspect("missing.yaml", NULL, 0, &text), TR_ENOTFOUND);
    assert_int_equal(tr_inspect(".", NULL, 0, &text), TR_ENOTFOUND); /* no checkpoint in there */
}

/* What the text of a file says, its path says, too; but for the line that names it. */
static void models_need_no_file(void **state)
{
    (void)state;
    struct tr_file_content file;
    assert_int_equal(tr_file_read("adam.yaml", 1 << 20, &file), TR_OK);
    for (int json = 0; json < 2; json++) {
        struct tr_inspect_settings settings = TR_INSPECT_SETTINGS_INIT;
        char *by_path = NULL, *by_text = NULL, *rest;
        settings.json = json;
        settings.path = "adam.yaml";
        assert_int_equal(tr_inspect_model(&settings, &by_path), TR_OK);
        settings.model_text = file.data;
        assert_int_equal(tr_inspect_model(&settings, &rest), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "2 of `path`, `model_text` and `state`"));
        settings.path = NULL;
        settings.model_name = "adam.yaml";
        assert_int_equal(tr_inspect_model(&settings, &by_text), TR_OK);
        assert_string_equal(by_path, by_text);
        tr_text_free(by_path);
        tr_text_free(by_text);
        settings.model_text = "layers: [{no_such: 3}]\n";
        assert_int_equal(tr_inspect_model(&settings, &rest), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "adam.yaml:1:"));
        settings.model_text = NULL;
        assert_int_equal(tr_inspect_model(&settings, &rest), TR_EINVAL);
    }
    tr_file_content_free(&file);
}

/* The input follows from data in memory; and the checkpoint of such a run is looked at where it lies, in
 * memory. */
static void memory_is_looked_at(void **state)
{
    (void)state;
    static float numbers[8][3];
    static int32_t classes[8] = {0, 1, 2, 1, 0, 2, 1, 0};
    static const char model[] = "layers: [{dense: 3}]\noptimizer: {rule: sgd, rate: 0.1}\n"
                                "train: {batch: 4, microbatches: 2, steps: 3}\n";
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    struct tr_inspect_settings settings = TR_INSPECT_SETTINGS_INIT;
    struct tr_train_settings training = TR_TRAIN_SETTINGS_INIT;
    tr_source *source = NULL;
    tr_trainer *trainer = NULL;
    char *text = NULL, hash[65];
    void *bytes;
    size_t size;
    arrays.features = (struct tr_array){numbers, TR_ARRAY_FLOAT32, 2, {8, 3}, {0}};
    arrays.labels = (struct tr_array){classes, TR_ARRAY_INT32, 1, {8}, {0}};
    assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_OK);
    const struct tr_named_source data = {"train", source};
    settings.model_text = training.model_text = model;
    settings.data = training.data = &data;
    settings.data_count = training.data_count = 1;
    settings.json = 1;
    training.threads = 1;
    assert_int_equal(tr_inspect_model(&settings, &text), TR_OK);
    assert_non_null(strstr(text, "\"parameters\": 12"));
    tr_text_free(text);
    assert_int_equal(tr_trainer_create(&training, &trainer), TR_OK);
    assert_int_equal(tr_trainer_run(trainer, NULL, NULL), TR_OK);
    assert_int_equal(tr_trainer_hash(trainer, hash), TR_OK);
    assert_int_equal(tr_trainer_save_state(trainer, &bytes, &size), TR_OK);
    tr_trainer_destroy(&trainer);
    settings.model_text = NULL;
    settings.state.bytes = bytes;
    settings.state.size = size;
    assert_int_equal(tr_inspect_model(&settings, &text), TR_OK);
    assert_non_null(strstr(text, hash));
    assert_non_null(strstr(text, "(memory)"));
    tr_text_free(text);
    settings.state.size = size / 2;
    assert_int_equal(tr_inspect_model(&settings, &text), TR_EFORMAT);
    tr_state_free(bytes);
    tr_source_close(&source);
}

/* Of a packed file of images it takes the head: what is wrong at the end it does not see. */
static void images_are_not_unpacked(void **state)
{
    (void)state;
    enum { COUNT = 30, SIDE = 12 };
    uint8_t images[16 + COUNT * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    uint8_t labels[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT, 2, 1};
    struct tr_file_content packed;
    struct tr_summary summary;
    gzFile file = gzopen("images.gz", "wb");
    assert_int_equal(gzwrite(file, images, sizeof images), sizeof images);
    assert_int_equal(gzclose(file), Z_OK);
    assert_int_equal(tr_file_read("images.gz", 1 << 20, &packed), TR_OK);
    packed.data[packed.size - 8] ^= 1; /* the checksum */
    assert_int_equal(tr_file_write_atomic(NULL, "images.gz", packed.data, packed.size), TR_OK);
    tr_file_content_free(&packed);
    assert_int_equal(tr_file_write_atomic(NULL, "labels", labels, sizeof labels), TR_OK);
    write_text("packed.yaml", "name: packed\n"
                              "data: {train: {idx: {images: images.gz, labels: labels}}}\n"
                              "layers: [flatten, {dense: 3}]\n"
                              "optimizer: {rule: sgd, rate: 0.1}\n"
                              "train: {batch: 4, microbatches: 2, epochs: 2}\n");
    if (tr_summary_make(&(struct tr_inspect_settings){.path = "packed.yaml", .set = NULL, .set_count = 0},
                        &summary) != TR_OK)
        fail_msg("%s", tr_error_message());
    assert_int_equal(summary.job->model->input.size[0], SIDE);
    assert_int_equal(summary.job->train.steps, 2 * 8);
    tr_summary_release(&summary);
    /* Training does. */
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer;
    settings.model = "packed.yaml";
    assert_int_not_equal(tr_trainer_create(&settings, &trainer), TR_OK);
}

static void sizes_that_cannot_be_counted_are_refused(void **state)
{
    (void)state;
    static const char *const set[] = {"layers.3.units=1000000", "train.batch=16777216",
                                      "input.shape=[60000, 60000, 4]"};
    char *text;
    assert_int_equal(tr_inspect("image.yaml", set, 3, &text), TR_EINVAL);
    assert_true(strlen(tr_error_message()) > 0);
    /* 2^29 bytes of an example's outputs; 2^20 examples are one too many. */
    const char *many[] = {"layers=[{dense: {units: 134217728, name: large}}, {dense: 2}]", "input.shape=[1]",
                          "train.batch=1048575", "train.microbatches=1"};
    assert_int_equal(tr_inspect("image.yaml", many, 4, &text), TR_OK);
    tr_text_free(text);
    many[2] = "train.batch=1048576";
    assert_int_equal(tr_inspect("image.yaml", many, 4, &text), TR_EINVAL);
    assert_string_equal(tr_error_message(), "layer \"large\" is too large to count its operations in a step");
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    tr_status (*const functions[])(const char *, const char *const *, int, char **) = {tr_inspect,
                                                                                       tr_inspect_json};
    static const char *const models[] = {"adam.yaml", "image.yaml"};
    for (int i = 0; i < 4; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            char *text = NULL;
            refuse_begin(at);
            tr_status status = functions[i / 2](models[i % 2], NULL, 0, &text);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("function %d, allocation %d: status %d, %s", i, (int)at, status, tr_error_message());
            tr_text_free(text);
            if (tr_alloc_live() != live) fail_msg("function %d, allocation %d leaks", i, (int)at);
        }
}

static void listing_may_fail_anywhere(void **state)
{
    (void)state;
    tr_status (*const functions[])(char **) = {tr_layers, tr_devices, tr_devices_json};
    for (int i = 0; i < 3; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            char *text = NULL;
            refuse_begin(at);
            tr_status status = functions[i](&text);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("function %d, allocation %d: status %d, %s", i, (int)at, status, tr_error_message());
            tr_text_free(text);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_that_of_a_trainer),
        cmocka_unit_test(operations_are_counted),
        cmocka_unit_test(what_backward_needs_is_counted),
        cmocka_unit_test(tokens_of_images_are_counted),
        cmocka_unit_test(no_data_are_needed),
        cmocka_unit_test(models_need_no_file),
        cmocka_unit_test(memory_is_looked_at),
        cmocka_unit_test(images_are_not_unpacked),
        cmocka_unit_test(sizes_that_cannot_be_counted_are_refused),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(listing_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
