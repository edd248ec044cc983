/* Export and import through the public interface: what goes out comes in with the same hash and trains on;
 * files that do not fit, are damaged or cannot be written are told, and leave nothing behind. */
#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "checkpoint/checkpoint.h"
#include "io/safetensors.h"
#include "mutate.h"
#include "refuse.h"
#include "scratch.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static char tiny_model[SCRATCH_PATH], tiny_run[SCRATCH_PATH], tiny_file[SCRATCH_PATH];

/* A network that is made in no time, for what is done a thousand times. */
static const char tiny[] = "name: tiny\n"
                           "data: {train: {csv: {path: table.csv}}}\n"
                           "layers: [{dense: 3}, layer_norm, {dense: 2}]\n"
                           "optimizer: {rule: adam, rate: 0.1, ema: 0.5}\n"
                           "train: {batch: 4, steps: 3, log_every: 0}\n";

static void write_text(const char *path, const char *text)
{
    must_train(tr_file_write_atomic(NULL, path, text, strlen(text)));
}

static tr_status export_to(const char *run, bool average, enum tr_layout layout, const char *format,
                           const char *path)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = run;
    settings.use_average = average;
    settings.layout = layout;
    tr_status status = tr_exporter_create(&settings, &exporter);
    if (status == TR_OK) status = tr_exporter_write(exporter, format, path);
    tr_exporter_destroy(&exporter);
    return status;
}

static tr_status import_from(const char *file, const char *model, enum tr_layout layout, const char *out)
{
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    settings.file = file;
    settings.model = model;
    settings.out = out;
    settings.layout = layout;
    return tr_import(&settings, NULL);
}

/* The hash of the parameters of the newest checkpoint. */
static void hash_of(const char *run, char hash[TR_SHA256_TEXT])
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_predictor *predictor;
    settings.checkpoint = run;
    settings.threads = 1;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    memcpy(hash, info.hash, TR_SHA256_TEXT);
    tr_predictor_destroy(&predictor);
}

static int set_up(void **state)
{
    struct job job;
    struct outcome outcome;
    scratch_place_make(state);
    family_files(scratch_place);
    scratch_join(tiny_model, scratch_place, "tiny.yaml");
    scratch_join(tiny_run, scratch_place, "tiny-run");
    scratch_join(tiny_file, scratch_place, "tiny.safetensors");
    write_text(tiny_model, tiny);
    write_text(scratch_in("table.csv"), "1,2,0\n3,4,1\n5,7,1\n2,1,0\n");
    job_begin(&job, tiny_model);
    job.settings.out = tiny_run;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    must_train(export_to(tiny_run, false, TR_LAYOUT_TORCH, "safetensors", tiny_file));
    return 0;
}

/* ---- out and in ---- */

/* SHA-256 of what stands behind the header of a safetensors file. */
static void hash_data(const char *path, char hash[TR_SHA256_TEXT])
{
    struct tr_file_content content;
    uint64_t header;
    must_train(tr_file_read(path, 1 << 24, &content));
    memcpy(&header, content.data, sizeof header);
    must_train(tr_sha256_of(content.data + 8 + header, content.size - 8 - header, hash));
    tr_file_content_free(&content);
}

static void jobs_keep_their_hash(void **state)
{
    (void)state;
    /* What stands in the files that PyTorch reads; the same on every machine, as all bits of a run are. */
    static const char *const on_record[] = {
        "3c90f7f24d167675de2f2e31b5cfdcd720aa9995ee1fede03a0bc22a136685c8",
        "75bbe9c02bacf129718ddeb7f58dde8d94ef653ab42dfb1ed0c317ec56520eb3",
        "a204998ab62b209f74d6cbd781e569fe24ebba0d79b6afb1bfc1c72998f282ff",
        "a0893af78aefa69d9c604f7ab06cc095e250b3b1c5f20ec4d60f6b09e5ce6dae",
        "d3d9b3881145952d56bc4833a14ed6d8c1eb6649c876f1a0fdfabf4c6c570184",
        "5fc3ff0b11244b62df0482d842bf84407071cdc0a5636685c174182458b60751"};
    assert_int_equal(sizeof on_record / sizeof on_record[0], family_count);
    for (int i = 0; i < family_count; i++) {
        struct job job;
        struct outcome outcome, resumed;
        char run[SCRATCH_PATH], data[TR_SHA256_TEXT];
        family_job(&job, &families[i], scratch_place);
        job.settings.out = scratch_join(run, scratch_place, families[i].name);
        job_outcome(&job, &outcome);
        must_train(outcome.status);
        for (int layout = TR_LAYOUT_TRIREME; layout <= TR_LAYOUT_TORCH; layout++) {
            char hash[TR_SHA256_TEXT];
            const char *file = scratch_in("job.safetensors"), *back = scratch_in("back");
            struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
            must_train(export_to(run, false, (enum tr_layout)layout, "safetensors", file));
            if (layout == TR_LAYOUT_TORCH) {
                hash_data(file, data);
                if (strcmp(data, on_record[i]) != 0)
                    fail_msg("%s: the data have hash %s, not %s", families[i].name, data, on_record[i]);
            }
            settings.file = file;
            settings.model = job.settings.model;
            settings.set = job.set;
            settings.set_count = job.settings.set_count;
            settings.out = back;
            must_train(tr_import(&settings, NULL));
            hash_of(back, hash);
            assert_string_equal(hash, outcome.hash);
            /* It trains to the end like a checkpoint of training. */
            struct job resume;
            job_begin(&resume, NULL);
            resume.settings.resume = back;
            resume.settings.out = back;
            job_outcome(&resume, &resumed);
            must_train(resumed.status);
            assert_int_equal(resumed.step, outcome.step);
            assert_string_not_equal(resumed.hash, outcome.hash);
            scratch_remove(back);
        }
    }
}

/* Averages are what an export has unless told otherwise, and where an import begins. */
static void averages_are_taken_and_begun(void **state)
{
    (void)state;
    char trained[TR_SHA256_TEXT], hash[TR_SHA256_TEXT], again[TR_SHA256_TEXT];
    const char *file = scratch_in("average.safetensors"), *back = scratch_in("back");
    hash_of(tiny_run, trained);
    must_train(export_to(tiny_run, true, TR_LAYOUT_TORCH, "safetensors", file));
    must_train(import_from(file, tiny_model, TR_LAYOUT_AUTO, back));
    hash_of(back, hash);
    assert_string_not_equal(hash, trained);
    must_train(export_to(back, true, TR_LAYOUT_TORCH, "safetensors", scratch_in("again.safetensors")));
    hash_data(scratch_in("average.safetensors"), hash);
    hash_data(scratch_in("again.safetensors"), again);
    assert_string_equal(hash, again);
    scratch_remove(back);
}

/* A file of this shape is written next to the exported one: `change` edits the tensors. */
struct content {
    struct tr_stored_tensor tensor[16];
    int64_t count;
    float *memory;
};

static void read_tiny(struct content *content)
{
    tr_safetensors *file;
    must_train(tr_safetensors_open(tiny_file, &file));
    *content =
        (struct content){.count = tr_safetensors_count(file), .memory = tr_alloc_zero(4096, sizeof(float))};
    float *next = content->memory;
    for (int64_t i = 0; i < content->count; i++) {
        static char names[16][64];
        const struct tr_safetensors_entry *entry = tr_safetensors_at(file, i);
        must_train(tr_safetensors_read(file, entry, next, NULL));
        content->tensor[i] = entry->tensor;
        content->tensor[i].data = next;
        snprintf(names[i], sizeof names[i], "%s", entry->tensor.name);
        content->tensor[i].name = names[i];
        next += entry->bytes / sizeof(float);
    }
    tr_safetensors_close(&file);
}

static struct tr_stored_tensor *tensor_of(struct content *content, const char *name)
{
    for (int64_t i = 0; i < content->count; i++)
        if (strcmp(content->tensor[i].name, name) == 0) return &content->tensor[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Imports the content under a header note `layout` (NULL: none) and expects it to be refused with these
 * words. */
static void expect_refusal(struct content *content, const char *layout, enum tr_layout asked,
                           tr_status status, const char *words)
{
    const struct tr_stored_metadata note = {"layout", layout};
    const char *file = scratch_in("changed.safetensors"), *out = scratch_in("refused");
    must_train(tr_safetensors_replace(NULL, file, content->tensor, content->count, &note, layout ? 1 : 0));
    assert_int_equal(import_from(file, tiny_model, asked, out), status);
    if (!strstr(tr_error_message(), words)) fail_msg("\"%s\" is not in: %s", words, tr_error_message());
    assert_false(tr_file_exists(out));
    tr_free(content->memory);
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    struct content content;
    read_tiny(&content);
    content.tensor[content.count++] =
        (struct tr_stored_tensor){"extra.weight", TR_DTYPE_U8, 1, {4}, content.memory};
    expect_refusal(&content, NULL, TR_LAYOUT_AUTO, TR_EMISMATCH,
                   "has a tensor \"extra.weight\", U8[4], for which");

    read_tiny(&content);
    *tensor_of(&content, "dense2.bias") = content.tensor[content.count - 1];
    content.count--;
    expect_refusal(&content, NULL, TR_LAYOUT_AUTO, TR_EMISMATCH, "of which the network wants F32[");

    read_tiny(&content);
    tensor_of(&content, "layer_norm1.weight")->name = "layer_norm1.weigth";
    expect_refusal(&content, NULL, TR_LAYOUT_AUTO, TR_EMISMATCH,
                   "has no tensor \"layer_norm1.weight\", of which the network wants F32[3]; it has "
                   "\"layer_norm1.weigth\", F32[3]");

    read_tiny(&content);
    struct tr_stored_tensor *matrix = tensor_of(&content, "dense1.weight");
    matrix->shape[0] = 2;
    matrix->shape[1] = 3;
    expect_refusal(&content, NULL, TR_LAYOUT_AUTO, TR_EMISMATCH,
                   "tensor \"dense1.weight\" is F32[2,3], the network wants F32[3,2]");

    read_tiny(&content);
    tensor_of(&content, "dense1.bias")->dtype = TR_DTYPE_I32;
    expect_refusal(&content, NULL, TR_LAYOUT_AUTO, TR_EMISMATCH, "is I32[3], the network wants F32[3]");

    read_tiny(&content);
    ((float *)tensor_of(&content, "dense2.weight")->data)[1] = 0x1p127f * 2;
    expect_refusal(&content, NULL, TR_LAYOUT_AUTO, TR_ENONFINITE,
                   "tensor \"dense2.weight\" holds inf at element 1");

    read_tiny(&content);
    expect_refusal(&content, "keras", TR_LAYOUT_AUTO, TR_EUNSUPPORTED,
                   "layout \"keras\"; known are torch and trireme");
    read_tiny(&content);
    expect_refusal(&content, "trireme", TR_LAYOUT_AUTO, TR_EMISMATCH, "no tensor \"dense1.weights\"");
    read_tiny(&content);
    expect_refusal(&content, "torch", TR_LAYOUT_TRIREME, TR_EMISMATCH, "no tensor \"dense1.weights\"");
}

static void names_can_be_told(void **state)
{
    (void)state;
    static const struct {
        const char *rename[3];
        tr_status status;
        const char *words;
    } cases[] = {
        {{"net.0=dense1", "net.1=layer_norm1", "out=dense2"}, TR_OK, ""},
        {{"net.0=dense1", "net.1=layer_norm1", "out=dense"}, TR_EINVAL, "there is no layer \"dense\""},
        {{"net.0=dense1", "net.1", "out=dense2"}, TR_EINVAL, "\"net.1\" renames nothing"},
        {{"net.0=dense1", "=layer_norm1", "out=dense2"}, TR_EINVAL, "renames nothing"},
        {{"net.1=dense1", "net.1=layer_norm1", "out=dense2"}, TR_EMISMATCH, "\"net.1.weight\" is F32[3]"},
    };
    static char names[16][64];
    char expected[TR_SHA256_TEXT], hash[TR_SHA256_TEXT];
    struct content content;
    const char *file = scratch_in("renamed.safetensors"), *out = scratch_in("renamed");
    read_tiny(&content);
    for (int64_t i = 0; i < content.count; i++) {
        const char *point = strchr(content.tensor[i].name, '.');
        const char *module = strncmp(content.tensor[i].name, "dense1", 6) == 0   ? "net.0"
                             : strncmp(content.tensor[i].name, "dense2", 6) == 0 ? "out"
                                                                                 : "net.1";
        snprintf(names[i], sizeof names[i], "%s%s", module, point);
        content.tensor[i].name = names[i];
    }
    must_train(tr_safetensors_replace(NULL, file, content.tensor, content.count, NULL, 0));
    tr_free(content.memory);
    hash_of(tiny_run, expected);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
        char *path;
        settings.file = file;
        settings.model = tiny_model;
        settings.out = out;
        settings.rename = cases[i].rename;
        settings.rename_count = 3;
        assert_int_equal(tr_import(&settings, &path), cases[i].status);
        if (cases[i].status == TR_OK) {
            hash_of(path, hash);
            assert_string_equal(hash, expected);
            assert_non_null(strstr(path, "checkpoint-00000000"));
            /* The directory is used now. */
            assert_int_equal(tr_import(&settings, NULL), TR_EINVAL);
            assert_non_null(strstr(tr_error_message(), "has checkpoints already"));
            scratch_remove(out);
        } else {
            if (!strstr(tr_error_message(), cases[i].words)) fail_msg("%s", tr_error_message());
            assert_null(path);
        }
        tr_text_free(path);
    }
}

/* A matrix with rows and columns exchanged, in its place. */
static void exchange(struct tr_stored_tensor *tensor)
{
    const int64_t rows = tensor->shape[0], columns = tensor->shape[1];
    float *copy = tr_alloc((size_t)(rows * columns), sizeof *copy), *values = tensor->data;
    memcpy(copy, values, (size_t)(rows * columns) * sizeof *copy);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) values[c * rows + r] = copy[r * columns + c];
    tensor->shape[0] = columns;
    tensor->shape[1] = rows;
    tr_free(copy);
}

/* The tiny network as another program would have it. */
static void write_others(const char *file)
{
    static char names[16][64];
    static float mask;
    struct content content;
    read_tiny(&content);
    for (int64_t i = 0; i < content.count; i++) {
        struct tr_stored_tensor *tensor = &content.tensor[i];
        const char *point = strchr(tensor->name, '.');
        bool dense = strncmp(tensor->name, "dense", 5) == 0, gain = strcmp(point, ".weight") == 0;
        if (dense)
            snprintf(names[i], sizeof names[i], "h.%.1s%s", tensor->name + 5, point);
        else
            snprintf(names[i], sizeof names[i], "norm%s", gain ? ".scale" : point);
        tensor->name = names[i];
        if (tensor->rank == 2) exchange(tensor);
    }
    content.tensor[content.count++] = (struct tr_stored_tensor){"mask.12", TR_DTYPE_F32, 1, {1}, &mask};
    must_train(tr_safetensors_replace(NULL, file, content.tensor, content.count, NULL, 0));
    tr_free(content.memory);
}

#define NORM "norm.scale=layer_norm1.weight", "norm.bias=layer_norm1.bias"

/* Stars stand for numbers, matrices may lie the other way round, and what is of no use is passed over. */
static void files_of_others_can_be_told(void **state)
{
    (void)state;
    static const struct {
        const char *rename[4];
        tr_status status;
        const char *words;
    } cases[] = {
        {{"h.*^T=dense*", NORM, "mask.*="}, TR_OK, ""},
        {{"h.*^T=dense*", NORM, "mask=*"}, TR_EINVAL, "\"mask=*\" renames nothing"},
        {{"h.*^T=dense*", NORM, "mask="}, TR_EMISMATCH, "has a tensor \"mask.12\""},
        {{"h.*^T=dense*", NORM, "x=layer_norm1.gain"}, TR_EINVAL, "no tensor \"layer_norm1.gain\""},
        {{"h.*=dense*", NORM, "mask.*="}, TR_EMISMATCH, "tensor \"h.1.weight\" is"},
        {{"h.**=dense*", NORM, "mask.*="}, TR_EINVAL, "renames nothing"},
    };
    char expected[TR_SHA256_TEXT], hash[TR_SHA256_TEXT];
    const char *file = scratch_in("others.safetensors"), *out = scratch_in("others");
    write_others(file);
    hash_of(tiny_run, expected);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
        char *path;
        settings.file = file;
        settings.model = tiny_model;
        settings.out = out;
        settings.rename = cases[i].rename;
        settings.rename_count = 4;
        tr_status status = tr_import(&settings, &path);
        if (status != cases[i].status || (status != TR_OK && !strstr(tr_error_message(), cases[i].words)))
            fail_msg("case %d: %s: %s", (int)i, tr_status_name(status), status ? tr_error_message() : "");
        if (status != TR_OK) continue;
        hash_of(path, hash);
        assert_string_equal(hash, expected);
        scratch_remove(out);
        tr_text_free(path);
    }
}

/* Of the tiny network, under names that begin with "transformer.". */
static void write_with_prefix(const char *file)
{
    static char names[16][96];
    struct content content;
    read_tiny(&content);
    for (int64_t i = 0; i < content.count; i++) {
        snprintf(names[i], sizeof names[i], "transformer.%s", content.tensor[i].name);
        content.tensor[i].name = names[i];
    }
    must_train(tr_safetensors_replace(NULL, file, content.tensor, content.count, NULL, 0));
    tr_free(content.memory);
}

/* What is in a directory stays until the file has been found to fit, and then is gone, journal included. */
static void a_prefix_and_a_directory_in_use(void **state)
{
    (void)state;
    char expected[TR_SHA256_TEXT], hash[TR_SHA256_TEXT], later[TR_SHA256_TEXT], journal[SCRATCH_PATH];
    const char *file = scratch_in("prefix.safetensors"), *out = scratch_in("used");
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    struct job job;
    struct outcome outcome;
    int64_t step;
    write_with_prefix(file);
    hash_of(tiny_run, expected);
    job_begin(&job, tiny_model);
    job_set(&job, "train.steps=3");
    job.settings.out = out;
    job.settings.journal = out;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    assert_true(tr_file_exists(scratch_join(journal, out, "journal.jsonl")));
    settings.file = file;
    settings.model = tiny_model;
    settings.out = out;
    settings.prefix = "transformer.";
    assert_int_equal(tr_import(&settings, NULL), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "let `overwrite` remove them"));
    settings.overwrite = true;
    settings.prefix = NULL;
    assert_int_equal(tr_import(&settings, NULL), TR_EMISMATCH);
    if (!strstr(tr_error_message(), "give `prefix` transformer.")) fail_msg("%s", tr_error_message());
    hash_of(out, later);
    assert_string_equal(later, outcome.hash);
    settings.prefix = "transformer.";
    must_train(tr_import(&settings, NULL));
    hash_of(out, hash);
    assert_string_equal(hash, expected);
    must_train(tr_checkpoint_latest(out, &step));
    assert_int_equal(step, 0);
    assert_false(tr_file_exists(journal));
    scratch_remove(out);
}

static void expect_invalid(const struct tr_import_settings *settings, const char *part)
{
    void *bytes = &bytes;
    size_t size = 1;
    assert_int_equal(tr_import_state(settings, &bytes, &size), TR_EINVAL);
    if (!strstr(tr_error_message(), part)) fail_msg("expected \"%s\", got \"%s\"", part, tr_error_message());
    assert_null(bytes);
    assert_int_equal(size, 0);
}

/* File, model and checkpoint, none of which has a path. */
static void an_import_in_memory(void **state)
{
    (void)state;
    char expected[TR_SHA256_TEXT];
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    struct tr_file_content content, model;
    tr_predictor *predictor;
    void *bytes = NULL;
    size_t size = 0;
    must_train(tr_file_read(tiny_file, 1 << 20, &content));
    must_train(tr_file_read(tiny_model, 1 << 20, &model));
    hash_of(tiny_run, expected);
    expect_invalid(&settings, "neither `file` nor `bytes` is given");
    settings.bytes = content.data;
    settings.bytes_size = content.size;
    expect_invalid(&settings, "neither `model` nor `model_text` is given");
    settings.model_text = (const char *)model.data;
    settings.model_length = model.size;
    settings.directory = scratch_place;
    must_train(tr_import_state(&settings, &bytes, &size));
    predict.state = (struct tr_run_state){.bytes = bytes, .size = size};
    must_train(tr_predictor_create(&predict, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    assert_string_equal(info.hash, expected);
    assert_int_equal(info.step, 0);
    tr_predictor_destroy(&predictor);
    tr_state_free(bytes);

    settings.file = tiny_file;
    expect_invalid(&settings, "`file` and `bytes` are given");
    settings.file = NULL;
    settings.model = tiny_model;
    expect_invalid(&settings, "`model` and `model_text` are given");
    settings.model = NULL;
    assert_int_equal(tr_import(&settings, NULL), TR_EINVAL); /* without a directory */
    settings.bytes_size = content.size - 1;
    assert_int_equal(tr_import_state(&settings, &bytes, &size), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "(memory)"));
    tr_file_content_free(&content);
    tr_file_content_free(&model);
}

/* Fills `values` [count] with a parameter of the checkpoints of a directory. */
static void stored(const char *run, const char *name, float *values, int count)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer;
    settings.resume = run;
    must_train(tr_trainer_create(&settings, &trainer));
    must_train(tr_trainer_parameter(trainer, name, values, count));
    tr_trainer_destroy(&trainer);
}

/* A new head on what the file has: the body is the file's, the head that of a run that begins anew. */
static void a_part_comes_in(void **state)
{
    (void)state;
    static const char *const head[] = {"layers.dense2.units=4", "train.steps=1"};
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    struct job job;
    char out[SCRATCH_PATH];
    float body[6], expected_body[6], top[12], expected_top[12];
    scratch_join(out, scratch_place, "part");
    settings.file = tiny_file;
    settings.model = tiny_model;
    settings.out = out;
    settings.set = head;
    settings.set_count = 2;
    assert_int_equal(tr_import(&settings, NULL), TR_EMISMATCH);
    settings.partial = true;
    must_train(tr_import(&settings, NULL));
    stored(out, "dense1.weights", body, 6);
    stored(tiny_run, "dense1.weights", expected_body, 6);
    assert_memory_equal(body, expected_body, sizeof body);
    stored(out, "dense2.weights", top, 12);
    job_begin(&job, tiny_model);
    job_set(&job, head[0]);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_parameter(trainer, "dense2.weights", expected_top, 12));
    tr_trainer_destroy(&trainer);
    assert_memory_equal(top, expected_top, sizeof top);
    scratch_remove(out);

    static const char *const names[] = {"layers.0.name=a", "layers.1.name=b", "layers.2.name=c"};
    settings.set = names;
    settings.set_count = 3;
    assert_int_equal(tr_import(&settings, NULL), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "has nothing that the network could take"));
}

static void calls_are_checked(void **state)
{
    (void)state;
    struct tr_export_settings settings = {0};
    struct tr_import_settings import = {0};
    tr_exporter *exporter;
    assert_int_equal(tr_exporter_create(&settings, &exporter), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "TR_EXPORT_SETTINGS_INIT"));
    assert_int_equal(tr_import(&import, NULL), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "TR_IMPORT_SETTINGS_INIT"));
    settings = (struct tr_export_settings)TR_EXPORT_SETTINGS_INIT;
    assert_int_equal(tr_exporter_create(&settings, &exporter), TR_EINVAL);
    import = (struct tr_import_settings)TR_IMPORT_SETTINGS_INIT;
    assert_int_equal(tr_import(&import, NULL), TR_EINVAL);
    settings.checkpoint = scratch_in("nowhere");
    assert_int_equal(tr_exporter_create(&settings, &exporter), TR_ENOTFOUND);
    settings.checkpoint = tiny_run;
    settings.layout = TR_LAYOUT_AUTO;
    assert_int_equal(tr_exporter_create(&settings, &exporter), TR_EINVAL);
    settings.layout = TR_LAYOUT_TORCH;
    must_train(tr_exporter_create(&settings, &exporter));
    assert_string_equal(tr_exporter_skipped(exporter), "");
    assert_int_equal(tr_exporter_write(exporter, "safetensor", scratch_in("x")), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "did you mean \"safetensors\"?"));
    assert_int_equal(tr_exporter_write(exporter, "npz", scratch_in("none/x")), TR_ENOTFOUND);
    /* Every format that is listed can be written, or says which networks it holds; equal networks make equal
     * files. */
    const struct tr_export_format *format;
    int formats = 0;
    for (; (format = tr_export_format_at(formats)); formats++) {
        struct tr_file_content content[2];
        if (strcmp(format->name, "peft") == 0) { /* of other networks */
            assert_int_equal(tr_exporter_write(exporter, format->name, scratch_in("any")), TR_EUNSUPPORTED);
            assert_non_null(strstr(tr_error_message(), "has no adapters"));
            continue;
        }
        if (strcmp(format->name, "hub") == 0 || strcmp(format->name, "gguf") == 0) { /* of other networks */
            assert_int_equal(tr_exporter_write(exporter, format->name, scratch_in("any")), TR_EUNSUPPORTED);
            assert_non_null(strstr(tr_error_message(), "takes no tokens with an `embedding`"));
            continue;
        }
        for (int i = 0; i < 2; i++) {
            must_train(tr_exporter_write(exporter, format->name, scratch_in("any")));
            must_train(tr_file_read(scratch_in("any"), 1 << 20, &content[i]));
        }
        assert_int_equal(content[0].size, content[1].size);
        assert_memory_equal(content[0].data, content[1].data, content[0].size);
        assert_true(strlen(format->help) > 10);
        for (int i = 0; i < 2; i++) tr_file_content_free(&content[i]);
    }
    assert_true(formats >= 3);
    assert_null(tr_export_format_at(-1));
    tr_exporter_destroy(&exporter);
    tr_exporter_destroy(&exporter);
}

/* ---- damage and failures ---- */

/* Whatever stands in the file: a checkpoint that can be read, or a message. */
static void damaged_files_are_survived(void **state)
{
    (void)state;
    struct tr_file_content content;
    const char *file = scratch_in("damaged.safetensors"), *out = scratch_in("damaged");
    must_train(tr_file_read(tiny_file, 1 << 20, &content));
    int imported = 0;
    uint64_t header;
    memcpy(&header, content.data, sizeof header);
    const size_t end[] = {0, 8 + (size_t)header, content.size};
    for (uint32_t round = 0; round < 600; round++) {
        int64_t live = tr_alloc_live();
        /* By turns all of it, its header and its data. */
        size_t begin = end[round % 3 == 2], behind = end[round % 3 == 1 ? 1 : 2];
        char *whole = tr_alloc(content.size + 64, 1);
        memcpy(whole, content.data, begin);
        size_t size = begin + mutate_bytes(round, content.data + begin, behind - begin, whole + begin);
        memcpy(whole + size, content.data + behind, content.size - behind);
        must_train(tr_file_write_atomic(NULL, file, whole, size + content.size - behind));
        tr_free(whole);
        if (import_from(file, tiny_model, TR_LAYOUT_AUTO, out) == TR_OK) {
            char hash[TR_SHA256_TEXT];
            hash_of(out, hash);
            scratch_remove(out);
            imported++;
        } else {
            assert_true(tr_error_message()[0] != 0);
            assert_false(tr_file_exists(out));
        }
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(imported > 50);
    printf("%d of 600 damaged files could be imported\n", imported);
    tr_file_content_free(&content);
}

static void failing_allocations_are_survived(void **state)
{
    (void)state;
    static const char *const formats[] = {"safetensors", "npz", "torch"};
    for (int f = 0; f < 3; f++)
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = export_to(tiny_run, true, TR_LAYOUT_TORCH, formats[f], scratch_in("refused"));
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_int_equal(tr_alloc_live(), live);
        }
    for (int64_t at = 0, done = 0; !done; at++) {
        const char *out = scratch_in("refused-run");
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = import_from(tiny_file, tiny_model, TR_LAYOUT_AUTO, out);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        if (tr_file_exists(out)) scratch_remove(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_keep_their_hash),
        cmocka_unit_test(averages_are_taken_and_begun),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(names_can_be_told),
        cmocka_unit_test(files_of_others_can_be_told),
        cmocka_unit_test(an_import_in_memory),
        cmocka_unit_test(a_prefix_and_a_directory_in_use),
        cmocka_unit_test(a_part_comes_in),
        cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(damaged_files_are_survived),
        cmocka_unit_test(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
