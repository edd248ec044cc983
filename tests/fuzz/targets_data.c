/* Targets that read data sets. */
#include "fuzz/fuzz.h"

#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "base/options/config.h"
#include "data/example.h"
#include "data/images/image.h"
#include "data/files/inflate.h"
#include "data/files/spill.h"
#include "data/files/tar.h"
#include "data/cache/unpacked_format.h"
#include "data/text/vocabulary.h"
#include "export/adapters/peft.h"
#include "export/hub/files.h"
#include "export/hub/hub.h"
#include "io/record.h"
#include "io/safetensors.h"
#include "train/setup/vectors.h"

#include <math.h>
#include <string.h>

#define LENGTH(array) ((unsigned)(sizeof(array) / sizeof *(array)))

/* Opens one file in the way that the first byte chooses. */
static void read_one(const char *const *formats, unsigned count, const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char description[256];
    const char *format = formats[fuzz_choice(&input, count)];
    snprintf(description, sizeof description, format, fuzz_file(0, input.data, input.size));
    fuzz_source(description, NULL, NULL);
}

/* Opens two: a part, and the rest. */
static void read_two(const char *format, const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size}, first = fuzz_part(&input);
    char description[256];
    snprintf(description, sizeof description, format, fuzz_file(0, first.data, first.size),
             fuzz_file(1, input.data, input.size));
    fuzz_source(description, NULL, NULL);
}

void fuzz_idx(const uint8_t *data, size_t size)
{
    read_two("{idx: {images: %s, labels: %s}}", data, size);
}

void fuzz_arrays(const uint8_t *data, size_t size)
{
    read_two("{npy: {features: %s, labels: %s}}", data, size);
}

void fuzz_csv(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{csv: {path: %s, standardize: true}}",
        "{csv: {path: %s, label: value, on_bad_record: skip, max_bad: 1}}",
        "{csv: {path: %s, label: none, header: true}}",
        "{csv: {path: %s, separator: \";\", label_columns: [a], on_bad_record: skip, max_bad: 1}}",
        "{csv: {path: %s, label: name, missing: mean, standardize: true, on_bad_record: skip, max_bad: 1}}",
        "{csv: {path: %s, missing: skip, skip_columns: [1], on_bad_record: skip, max_bad: 1}}",
        "{csv: {path: %s, missing: constant, missing_value: -1, on_bad_record: skip, max_bad: 1}}",
        ("{csv: {path: %s, categories: [0], missing: mean, standardize: true, on_bad_record: skip, max_bad: "
         "1}}"),
    };
    read_one(formats, LENGTH(formats), data, size);
}

/* Lines that are not held in memory: those that are, or the same failure. */
void fuzz_spilled_text(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    struct tr_load loaded = {0};
    struct tr_spilled_text spilled;
    const tr_status status = tr_load_lines(path, &loaded);
    char message[512];
    snprintf(message, sizeof message, "%s", status == TR_OK ? "" : tr_error_message());
    if (tr_spill_lines(path, fuzz_directory(), &spilled) != status ||
        (status != TR_OK && strncmp(tr_error_message(), message, sizeof message - 1) != 0) ||
        (status == TR_OK && (spilled.size != loaded.size ||
                             (loaded.size > 0 && memcmp(spilled.data, loaded.data, loaded.size) != 0))))
        abort();
    tr_spilled_text_leave(&spilled);
    if (status == TR_OK && spilled.size > 0 && spilled.data[spilled.size - 1] != loaded.data[loaded.size - 1])
        abort();
    tr_spilled_text_release(&spilled);
    tr_free(loaded.data);
}

/* Rows as JSON objects. */
void fuzz_json_lines(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{json: {path: %s, missing: mean, standardize: true}}",
        "{json: {path: %s, label: value, label_columns: y, on_bad_record: skip, max_bad: 1}}",
        ("{json: {path: %s, label: none, categories: [0], missing: constant, on_bad_record: skip, max_bad: "
         "1}}"),
    };
    read_one(formats, LENGTH(formats), data, size);
}

/* Images and classes in an archive. */
void fuzz_shards(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{shards: {path: %s}}",
        "{shards: {path: %s, fit: scale, height: 3, width: 2, channels: 3, classes: 5}}",
        "{shards: {path: %s, label: \"\"}}",
    };
    read_one(formats, LENGTH(formats), data, size);
}

/* Rows of series, and windows over them. */
void fuzz_series(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{series: {path: %s, window: 2}}",
        ("{series: {path: %s, window: 2, horizon: 2, stride: 3, every_step: true, missing: mean, "
         "standardize: true}}"),
        "{series: {path: %s, series: 0, window: 1, part: [0, 0.5], missing: skip}}",
        "{series: {path: %s, series: who, time: day, window: 2, targets: [x], missing: constant}}",
    };
    read_one(formats, LENGTH(formats), data, size);
}

/* Two tables side by side, or images that a table names. */
void fuzz_join(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{join: {sources: {left: {csv: {path: %s, label: none}}, right: {csv: {path: %s, label: name}}}}}",
        "{join: {sources: {left: {csv: {path: %s, label: value}}, right: {csv: {path: %s, label: value}}}, "
        "labels: right}}",
        "{join: {sources: {left: {csv: {path: %s, missing: mean, standardize: true}}, right: {csv: {path: "
        "%s, "
        "label_columns: [0], skip_columns: [1]}}}, labels: left}}",
        "{join: {sources: {words: {text: {path: %s, layout: table, labels: false}}, facts: {csv: {path: "
        "%s}}}}}",
        "{join: {sources: {from: {text: {path: %s, labels: false, unit: characters}}, to: {text: {path: %s, "
        "layout: json, next: true, max_tokens: 3}}}}}",
    };
    struct fuzz_input input = {data, size};
    unsigned way = fuzz_choice(&input, LENGTH(formats) + 1);
    struct fuzz_input left = fuzz_part(&input);
    char description[512];
    const char *first = fuzz_file(0, left.data, left.size), *second = fuzz_file(1, input.data, input.size);
    if (way < LENGTH(formats))
        snprintf(description, sizeof description, formats[way], first, second);
    else
        snprintf(description, sizeof description, "{folder: {path: %s, table: %s, column: file}}",
                 fuzz_directory(), first);
    fuzz_source(description, NULL, NULL);
}

void fuzz_text(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{text: {path: %s, lower_case: true}}",
        "{text: {path: %s, on_bad_record: skip, max_bad: 1, max_tokens: 3, max_words: 4}}",
        "{text: {path: %s, tags: true, on_bad_record: skip, max_bad: 1, max_tokens: 3}}",
        "{text: {path: %s, layout: table, header: true, unit: characters}}",
        "{text: {path: %s, layout: table, separator: tab, on_bad_record: skip, max_bad: 1, labels: false}}",
        "{text: {path: %s, layout: json, text_columns: text, label_column: label}}",
        "{text: {path: %s, next: true, on_bad_record: skip, max_bad: 1, max_tokens: 3, max_words: 4}}",
        "{text: {path: %s, next: true, layout: table, unit: bytes, header: true}}",
    };
    read_one(formats, LENGTH(formats), data, size);
}

void fuzz_corpus(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{corpus: {path: %s, window: 3}}",
        "{corpus: {path: %s, window: 2, stride: 1, unit: bytes, begin: 0.2, end: 0.7}}",
        "{corpus: {path: %s, window: 1, unit: words, lower_case: true, max_words: 4}}",
        "{corpus: {path: %s, window: 1, unit: ids, ids: 700}}",
    };
    read_one(formats, LENGTH(formats), data, size);
}

/* ---- TFRecord ---- */

/* Puts the rest of the input into records whose checksums are right, which a fuzzer could not guess: parts,
 * one for each. Returns the file's size. */
static size_t frame_records(struct fuzz_input input, uint8_t *to, size_t room)
{
    size_t size = 0;
    while (input.size > 0) {
        struct fuzz_input part = fuzz_part(&input);
        if (size + part.size + TR_RECORD_OVERHEAD > room) break;
        tr_record_frame(part.data, part.size, to + size, to + size + TR_RECORD_HEAD + part.size);
        memcpy(to + size + TR_RECORD_HEAD, part.data, part.size);
        size += part.size + TR_RECORD_OVERHEAD;
        if (part.size == 0 && input.size < 2) break;
    }
    return size;
}

void fuzz_tfrecord(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{tfrecord: {path: %s, height: 2, width: 3}}",
        "{tfrecord: {path: %s, height: 2, width: 3, on_bad_record: skip, max_bad: 1}}",
        "{tfrecord: {path: %s, height: 2, width: 3, check: read, classes: 4}}",
        "{tfrecord: {path: %s, floats: floats}}",
        "{tfrecord: {path: %s, floats: floats, targets: targets}}",
    };
    enum { ROOM = 1 << 16 };
    static uint8_t file[ROOM];
    struct fuzz_input input = {data, size};
    char description[256];
    unsigned way = fuzz_choice(&input, 2 * LENGTH(formats));
    const char *path;
    if (way % 2)
        path = fuzz_file(0, file, frame_records(input, file, ROOM));
    else
        path = fuzz_file(0, input.data, input.size);
    snprintf(description, sizeof description, formats[way / 2], path);
    fuzz_source(description, NULL, NULL);
}

/* What is found lies in the example. */
void fuzz_example(const uint8_t *data, size_t size)
{
    struct tr_example_feature feature[] = {{.name = "floats", .name_length = 6},
                                           {.name = "image_raw", .name_length = 9},
                                           {.name = "label", .name_length = 5}};
    if (tr_example_find(data, size, feature, 3) != TR_OK) return;
    for (int i = 0; i < 3; i++) {
        const uint8_t *bytes;
        float values[2];
        size_t count;
        int64_t number;
        if (feature[i].kind != TR_LIST_NONE && feature[i].size > 0)
            FUZZ_DEMAND(feature[i].list >= data && feature[i].list + feature[i].size <= data + size);
        tr_example_floats(&feature[i], values, 2, &count);
        if (tr_example_bytes(&feature[i], &bytes, &count) == TR_OK && count > 0)
            FUZZ_DEMAND(bytes >= data && bytes + count <= data + size);
        tr_example_int64(&feature[i], &number);
    }
}

/* ---- images ---- */

/* The same picture as values of 16 bits, which are there where bytes are. */
static void read_wide(const struct fuzz_input *input, int32_t channels, tr_status expected)
{
    struct tr_image_size stored;
    uint16_t *values = NULL, fitted[5 * 4 * 3];
    FUZZ_DEMAND(tr_image_read_wide(fuzz_file(0, input->data, input->size), channels, &stored, &values) ==
                expected);
    if (expected != TR_OK) return;
    tr_image_fit_wide("fuzz", TR_IMAGE_SCALE, values, stored, fitted,
                      (struct tr_image_size){5, 4, stored.channels, 1});
    tr_image_fit_wide("fuzz", TR_IMAGE_CROP, values, stored, fitted,
                      (struct tr_image_size){5, 4, stored.channels, 1});
    tr_free(values);
}

void fuzz_image(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    int32_t channels = (int32_t[]){0, 1, 3}[fuzz_choice(&input, 3)];
    struct tr_image_size stored;
    uint8_t *pixels = NULL;
    int64_t live = tr_alloc_live();
    /* Larger pictures are as good and take longer. */
    bool small = tr_image_measure("fuzz", input.data, input.size, &stored) == TR_OK &&
                 (int64_t)stored.height * stored.width < 1 << 16;
    tr_status status = TR_EFORMAT;
    if (small) status = tr_image_read(fuzz_file(0, input.data, input.size), channels, &stored, &pixels);
    if (small) read_wide(&input, channels, status);
    if (status == TR_OK) {
        struct tr_image_size wanted = {5, 4, stored.channels};
        uint8_t fitted[5 * 4 * 3];
        char *text = NULL;
        FUZZ_DEMAND(channels == 0 || stored.channels == channels);
        tr_image_fit("fuzz", TR_IMAGE_SCALE, pixels, stored, fitted, wanted);
        tr_image_fit("fuzz", TR_IMAGE_CROP, pixels, stored, fitted, wanted);
        if (tr_image_show(pixels, stored, 40, &text) == TR_OK) tr_free(text);
    }
    tr_free(pixels);
    if (tr_image_measure("fuzz", input.data, input.size, &stored) == TR_OK &&
        (int64_t)stored.height * stored.width < 1 << 16 &&
        tr_image_read_numbers(fuzz_file(0, input.data, input.size), &stored, &pixels) == TR_OK) {
        uint8_t fitted[5 * 4];
        tr_image_fit_numbers("fuzz", TR_IMAGE_SCALE, pixels, stored, fitted, (struct tr_image_size){5, 4, 1});
        tr_free(pixels);
    }
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* Two classes, of which one has the picture; or a picture and the classes of its pixels. */
void fuzz_folder(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "{folder: {path: pictures}}",
        "{folder: {path: pictures, fit: scale, height: 3, width: 2, channels: 3}}",
        "{folder: {path: scenes, masks: masks, classes: 4, ignore: 255}}",
        "{folder: {path: scenes, masks: masks, classes: 4, fit: scale, height: 3, width: 2, memory: true}}",
        "{folder: {path: pictures, depth: 16, fit: crop, height: 2, width: 2}}",
        "{folder: {path: scenes, masks: masks, classes: 4, depth: 16, fit: scale, height: 3, width: 2}}",
    };
    struct fuzz_input input = {data, size};
    const char *format = formats[fuzz_choice(&input, 6)];
    struct fuzz_input first = fuzz_part(&input);
    struct tr_image_size stored;
    struct fuzz_input both[] = {first, input};
    for (int i = 0; i < 2; i++)
        if (tr_image_measure("fuzz", both[i].data, both[i].size, &stored) == TR_OK &&
            (int64_t)stored.height * stored.width >= 1 << 16)
            return;
    fuzz_write("pictures/a/first.png", first.data, first.size);
    fuzz_write("pictures/b/second.jpg", input.data, input.size);
    fuzz_write("scenes/one.png", first.data, first.size);
    fuzz_write("masks/one.png", input.data, input.size);
    fuzz_source(format, fuzz_directory(), NULL);
}

/* ---- archives ---- */

void fuzz_inflate(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    enum tr_packing packing =
        (enum tr_packing[]){TR_PACKING_GZIP, TR_PACKING_ZLIB, TR_PACKING_NONE}[fuzz_choice(&input, 3)];
    tr_inflate *inflate = NULL;
    uint8_t *all = NULL;
    size_t length;
    int64_t live = tr_alloc_live();
    tr_packing_of(input.data, input.size);
    FUZZ_DEMAND(tr_inflate_create("fuzz", input.data, input.size, packing, &inflate) == TR_OK);
    if (tr_inflate_all(inflate, 1 << 20, NULL, NULL, &all, &length) == TR_OK) FUZZ_DEMAND(length <= 1 << 20);
    tr_free(all);
    tr_inflate_destroy(&inflate);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

void fuzz_tar(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    enum tr_packing packing = fuzz_choice(&input, 2) ? TR_PACKING_GZIP : TR_PACKING_NONE;
    tr_inflate *inflate = NULL;
    struct tr_tar_member member = {.name = "x"};
    FUZZ_DEMAND(tr_inflate_create("fuzz", input.data, input.size, packing, &inflate) == TR_OK);
    while (member.name[0] && tr_tar_next(inflate, "fuzz", &member) == TR_OK && member.name[0]) {
        FUZZ_DEMAND(memchr(member.name, '\0', sizeof member.name));
        if (tr_tar_skip(inflate, &member, 0) != TR_OK) break;
    }
    tr_inflate_destroy(&inflate);
}

/* The archive, or the test file in a folder. */
void fuzz_cifar(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char description[256];
    if (fuzz_choice(&input, 2)) {
        fuzz_write("cifar/test_batch.bin", input.data, input.size);
        fuzz_source("{cifar: {path: cifar, part: test}}", fuzz_directory(), NULL);
    } else {
        snprintf(description, sizeof description, "{cifar: {path: %s, part: test}}",
                 fuzz_file(0, input.data, input.size));
        fuzz_source(description, NULL, NULL);
    }
}

/* ---- what is kept beside a model ---- */

void fuzz_state(const uint8_t *data, size_t size)
{
    static const char csv[] = "a,b,c\n1,-2.5,0\n3,4,1\n5,6,2\n";
    static const char text[] = "a funny film\t1\nreassembled\t0\n";
    static const char named_csv[] = "a,b,c\n1,-2.5,x\n3,,y\n5,6,x\n";
    static const char named_text[] = "a funny film\tgood\nreassembled\tbad\n";
    struct fuzz_input input = {data, size};
    unsigned way = fuzz_choice(&input, 7);
    char *state = fuzz_string(input), description[384];
    if (way == 6)
        snprintf(description, sizeof description, "{csv: {path: %s, categories: [0, 1], missing: mean}}",
                 fuzz_file(0, named_csv, sizeof named_csv - 1));
    else if (way == 5)
        snprintf(description, sizeof description,
                 "{join: {sources: {left: {csv: {path: %s, label: none}}, right: {csv: {path: %s}}}}}",
                 fuzz_file(0, csv, sizeof csv - 1), fuzz_file(1, named_csv, sizeof named_csv - 1));
    else if (way == 4)
        snprintf(description, sizeof description, "{text: {path: %s}}",
                 fuzz_file(0, named_text, sizeof named_text - 1));
    else if (way == 3)
        snprintf(description, sizeof description, "{csv: {path: %s, missing: mean}}",
                 fuzz_file(0, named_csv, sizeof named_csv - 1));
    else if (way == 2)
        snprintf(description, sizeof description, "{text: {path: %s}}", fuzz_file(0, text, sizeof text - 1));
    else
        snprintf(description, sizeof description, "{csv: {path: %s, standardize: %s}}",
                 fuzz_file(0, csv, sizeof csv - 1), way ? "true" : "false");
    fuzz_source(description, NULL, state);
    free(state);
}

/* Vectors of words, of a vocabulary of five. */
void fuzz_vectors(const uint8_t *data, size_t size)
{
    static const char state[] =
        "trireme vocabulary 1, 2 classes, 6 lines\nlower_case 1 max_tokens 0\n<unknown>\na\n"
        "film\ngood\nbad\n";
    float values[5 * 3] = {0};
    const struct tr_vectors_wanted wanted = {.words = 5, .width = 3, .state = state, .values = values};
    char digest[TR_SHA256_TEXT];
    int64_t taken = 0;
    if (tr_vectors_read(fuzz_file(0, data, size), &wanted, &taken, digest) != TR_OK) return;
    FUZZ_DEMAND(taken >= 1 && taken <= 5);
    for (int i = 0; i < 15; i++) FUZZ_DEMAND(isfinite(values[i]));
}

/* An entry of the data cache whose checksums are right, which a fuzzer could not guess. */
void fuzz_unpacked(const uint8_t *data, size_t size)
{
    enum { ROOM = 1 << 17 };
    static uint8_t file[ROOM];
    static const char key[TR_SHA256_TEXT] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct tr_unpacked_tail tail;
    struct tr_file_map map;
    tr_source *source = NULL;
    int64_t live = tr_alloc_live();
    if (size < sizeof tail || size > ROOM - TR_UNPACKED_PAGE) return;
    size_t end = TR_UNPACKED_PAGE + size - sizeof tail;
    memset(file, 0, TR_UNPACKED_PAGE);
    memcpy(file + TR_UNPACKED_PAGE, data, size);
    memcpy(&tail, file + end, sizeof tail);
    memcpy(tail.key, key, sizeof tail.key);
    for (int i = 0; i < TR_UNPACKED_SECTIONS; i++) {
        struct tr_unpacked_extent *place = &tail.section[i];
        if (place->offset >= 0 && place->bytes >= 0 && place->offset <= (int64_t)end &&
            place->bytes <= (int64_t)end - place->offset)
            place->crc = tr_crc32c(0, file + place->offset, (size_t)place->bytes);
    }
    tail.crc = tr_crc32c(0, &tail, offsetof(struct tr_unpacked_tail, crc));
    memcpy(file + end, &tail, sizeof tail);
    FUZZ_DEMAND(tr_file_map(fuzz_file(0, file, end + sizeof tail), &map) == TR_OK);
    if (tr_unpacked_open(&map, "fuzz", key, true, &source) == TR_OK) fuzz_read_source(source);
    tr_source_close(&source);
    FUZZ_DEMAND(map.data == NULL);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* config.json, then model.safetensors. */
void fuzz_hub(const uint8_t *data, size_t size)
{
    int64_t live = tr_alloc_live();
    struct fuzz_input input = {data, size}, part = fuzz_part(&input);
    struct tr_hub_config config;
    tr_config *tree = NULL;
    char *model = NULL;
    void *bytes = NULL;
    size_t length;
    fuzz_write("hub/config.json", part.data, part.size);
    fuzz_write("hub/model.safetensors", input.data, input.size);
    const char *directory = fuzz_path("hub");
    FUZZ_DEMAND(tr_hub_is_directory(directory));
    if (tr_hub_read_config(directory, &config) == TR_OK) {
        if (config.layers < 1000) {
            FUZZ_DEMAND(tr_hub_model(&config, "fuzz", "a", "b", 128, &model) == TR_OK);
            FUZZ_DEMAND(tr_config_parse(model, strlen(model), "model", &tree) == TR_OK);
        }
        if (tr_hub_weights(&config, directory, true, &bytes, &length) == TR_OK) {
            tr_safetensors *file = NULL;
            FUZZ_DEMAND(tr_safetensors_open_memory("ours", bytes, length, &file) == TR_OK);
            tr_safetensors_close(&file);
        }
    }
    tr_config_destroy(&tree);
    tr_free(bytes);
    tr_free(model);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* There is no network beside which the adapters could stand: what they are is read before. */
void fuzz_peft(const uint8_t *data, size_t size)
{
    int64_t live = tr_alloc_live();
    struct fuzz_input input = {data, size}, part = fuzz_part(&input);
    char *model;
    void *bytes;
    size_t length;
    fuzz_write("peft/adapter_config.json", part.data, part.size);
    fuzz_write("peft/adapter_model.safetensors", input.data, input.size);
    const char *directory = fuzz_path("peft");
    FUZZ_DEMAND(tr_peft_is_directory(directory));
    FUZZ_DEMAND(tr_peft_read(directory, fuzz_path("nowhere"), &model, &bytes, &length) != TR_OK);
    FUZZ_DEMAND(!model && !bytes);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* model.safetensors.index.json, then the file "a.safetensors" that it may name. */
void fuzz_hub_index(const uint8_t *data, size_t size)
{
    int64_t live = tr_alloc_live();
    struct fuzz_input input = {data, size}, part = fuzz_part(&input);
    struct tr_hub_files *files = NULL;
    fuzz_write("shards/model.safetensors.index.json", part.data, part.size);
    fuzz_write("shards/a.safetensors", input.data, input.size);
    if (tr_hub_files_open(fuzz_path("shards"), &files) == TR_OK) {
        static const char *const names[] = {"a", "b", "", "c"};
        for (int i = 0; i < 4; i++) {
            tr_safetensors *file = NULL;
            const struct tr_safetensors_entry *entry = tr_hub_files_find(files, names[i], &file);
            FUZZ_DEMAND(!entry || (file && strcmp(entry->tensor.name, names[i]) == 0));
        }
    }
    tr_hub_files_close(&files);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* Any text is made of tokens, and these have its bytes; what is written reads as the same. */
static void check_tokenizer(const tr_bpe *bpe, struct fuzz_input text)
{
    char *written = NULL, *again = NULL;
    tr_bpe *copy = NULL;
    int32_t *tokens;
    int64_t count;
    size_t at = 0;
    FUZZ_DEMAND(tr_bpe_encode(bpe, (const char *)text.data, text.size, &tokens, &count) == TR_OK);
    for (int64_t i = 0; i < count; i++) {
        size_t length;
        FUZZ_DEMAND(tokens[i] >= 0 && tokens[i] < tr_bpe_size(bpe));
        const char *bytes = tr_bpe_token(bpe, tokens[i], &length);
        FUZZ_DEMAND(length > 0);
        if (tr_bpe_composes(bpe)) continue;
        FUZZ_DEMAND(length <= text.size - at && memcmp(text.data + at, bytes, length) == 0);
        at += length;
    }
    FUZZ_DEMAND(tr_bpe_composes(bpe) || at == text.size);
    FUZZ_DEMAND(tr_bpe_write(bpe, &written) == TR_OK);
    FUZZ_DEMAND(tr_bpe_parse(written, strlen(written), "written", &copy) == TR_OK);
    FUZZ_DEMAND(tr_bpe_write(copy, &again) == TR_OK);
    FUZZ_DEMAND(strcmp(written, again) == 0);
    tr_bpe_destroy(&copy);
    tr_free(written);
    tr_free(again);
    tr_free(tokens);
}

/* A file, then a text. All bytes as letters of tokenizer.json are 256 tokens that few inputs would have: in
   one way the file begins with them, and the input has its rest. */
void fuzz_tokenizer(const uint8_t *data, size_t size)
{
    int64_t live = tr_alloc_live();
    struct fuzz_input input = {data, size};
    const bool whole = fuzz_choice(&input, 2);
    struct fuzz_input rest = fuzz_part(&input);
    struct tr_text text = TR_TEXT_INIT;
    tr_bpe *bpe = NULL;
    if (whole) {
        if (tr_bpe_parse((const char *)rest.data, rest.size, "fuzz", &bpe) == TR_OK)
            check_tokenizer(bpe, input);
    } else {
        tr_text_add(&text, "{\"model\": {\"vocab\": {");
        for (int byte = 0, next = 0x100; byte < 256; byte++) {
            const bool plain = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
            char letter[4] = "";
            tr_text_addf(&text, "%s", byte ? ", " : "");
            const int code = plain ? byte : next++;
            if (code < 0x80)
                letter[0] = (char)code;
            else
                snprintf(letter, sizeof letter, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 0x3f));
            tr_text_add_quoted(&text, letter);
            tr_text_addf(&text, ": %d", byte);
        }
        tr_text_add_bytes(&text, (const char *)rest.data, rest.size);
        FUZZ_DEMAND(!text.failed);
        if (tr_bpe_parse(text.bytes, text.length, "fuzz", &bpe) == TR_OK) check_tokenizer(bpe, input);
        tr_text_release(&text);
    }
    tr_bpe_destroy(&bpe);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

void fuzz_vocabulary(const uint8_t *data, size_t size)
{
    static const char line[] = "the film is a film";
    tr_vocabulary *vocabulary = NULL;
    int32_t classes, tokens[sizeof line];
    int64_t live = tr_alloc_live();
    char *state = fuzz_string((struct fuzz_input){data, size});
    if (tr_vocabulary_read(state, &vocabulary, &classes) == TR_OK) {
        char *written = NULL, *again = NULL;
        tr_vocabulary *copy = NULL;
        bool words = tr_vocabulary_unit(vocabulary) == TR_UNIT_WORDS;
        bool subwords = tr_vocabulary_unit(vocabulary) == TR_UNIT_BPE;
        int64_t length = subwords ? 0 : tr_vocabulary_length(vocabulary, line, sizeof line - 1);
        FUZZ_DEMAND(subwords || (length >= 1 && length <= (words ? 5 : (int64_t)sizeof line - 1)));
        if (!subwords) tr_vocabulary_encode(vocabulary, line, sizeof line - 1, length, tokens);
        for (int64_t i = 0; i < length; i++)
            FUZZ_DEMAND(tokens[i] >= 0 && tokens[i] < tr_vocabulary_size(vocabulary));
        FUZZ_DEMAND(tr_vocabulary_write(vocabulary, classes, &written) == TR_OK);
        FUZZ_DEMAND(tr_vocabulary_read(written, &copy, &classes) == TR_OK);
        FUZZ_DEMAND(tr_vocabulary_write(copy, classes, &again) == TR_OK);
        FUZZ_DEMAND(strcmp(written, again) == 0);
        tr_vocabulary_destroy(&copy);
        tr_free(written);
        tr_free(again);
    }
    tr_vocabulary_destroy(&vocabulary);
    free(state);
    FUZZ_DEMAND(tr_alloc_live() == live);
}
