/* What all formats have in common: which files a source was read from, what it takes in memory, what reading
 * refuses, and that a lack of memory leaves nothing behind.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/order/batch.h"
#include "data/order/split.h"
#include "data/samples.h"
#include "data/source.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct {
    const char *description, *files; /* below the test directory, blanks between */
    int64_t unpacked;                /* bytes of memory; -1: not looked at */
} sources[] = {
    {"{idx: {images: images}}", "images", -1},
    {"{idx: {images: images, labels: labels}}", "images labels", 24},
    {"{idx: {images: images, labels: masks}}", "images masks", -1},
    {"{npy: {features: bytes.npy, labels: classes.npy}}", "bytes.npy classes.npy", 0},
    {"{npy: {features: bytes.npy}}", "bytes.npy", 0},
    {"{npy: {features: floats.npy, labels: values.npy}}", "floats.npy values.npy", 0},
    {"{csv: {path: table}}", "table", 36},
    {"{csv: {path: table, label: value}}", "table", 36},
    {"{csv: {path: named, categories: [b]}}", "named", -1},
    {"{csv: {path: names, categories: [b], standardize: true}}", "names", -1},
    {"{json: {path: rows}}", "rows", -1},
    {"{series: {path: long, window: 2, horizon: 2, every_step: true}}", "long", 0},
    {"{text: {path: texts}}", "texts", 50},
    {"{text: {path: tags, tags: true}}", "tags", -1},
    {"{text: {path: lines, labels: false, next: true}}", "lines", -1},
    {"{text: {path: reviews, layout: table, header: true, text_columns: [body, title]}}", "reviews", -1},
    {"{text: {path: objects, layout: json, text_columns: [body, title], label_column: stars}}", "objects",
     -1},
    {"{corpus: {path: ids, unit: ids, ids: 5, window: 2}}", "ids", -1},
    {"{corpus: {path: corpus, window: 4, stride: 3}}", "corpus", 176},
    {"{corpus: {path: corpus, window: 2, unit: words}}", "corpus", 36},
    {"{folder: {path: folder}}", "folder folder/cats folder/dogs", 0},
    {"{folder: {path: folder, memory: true}}",
     "folder folder/cats folder/cats/1.png folder/dogs folder/dogs/1.png", 16},
    {"{folder: {path: folder/cats, masks: folder/dogs, classes: 256}}", "folder/cats folder/dogs", 0},
    {"{folder: {path: folder/cats, masks: folder/dogs, classes: 256, memory: true}}",
     "folder/cats folder/dogs folder/cats/1.png folder/dogs/1.png", 8},
    {"{folder: {path: folder, table: pictures, column: name}}", "folder pictures", 0},
    {"{folder: {path: folder, table: pictures, column: name, memory: true}}",
     "folder pictures folder/dogs/1.png folder/cats/1.png folder/dogs/1.png", 24},
    {"{shards: {path: [archive.tar, other.tar]}}", "archive.tar other.tar", 0},
    {"{tfrecord: {path: plain.tfrecord, height: 2, width: 2}}", "plain.tfrecord", 0},
    {"{tfrecord: {path: plain.tfrecord, packing: none, height: 2, width: 2}}", "plain.tfrecord", 0},
    {"{tfrecord: {path: packed.tfrecord, packing: gzip, height: 2, width: 2}}", "packed.tfrecord", 24},
    {"{tfrecord: {path: [packed.tfrecord, plain.tfrecord], height: 2, width: 2}}",
     "packed.tfrecord plain.tfrecord", 48},
    {"{tfrecord: {path: numbers.tfrecord, floats: floats, targets: targets}}", "numbers.tfrecord", 0},
    {"{npy: {features: bytes.npy, labels: pixels.npy}}", "bytes.npy pixels.npy", -1},
    {"{csv: {path: empty, missing: mean, standardize: true}}", "empty", -1},
    {"{series: {path: table, window: 1, missing: mean, standardize: true}}", "table", -1},
    {"{text: {path: moods}}", "moods", -1},
    {"{corpus: {path: corpus, window: 4, unit: bpe, tokenizer: tokenizer.json}}", "corpus tokenizer.json",
     -1},
    {"{shards: {path: archive.tar, label: \"\"}}", "archive.tar", 0},
    {"{shards: {path: archive.tar, depth: 16}}", "archive.tar", 0},
    {"{folder: {path: folder, depth: 16}}", "folder folder/cats folder/dogs", 0},
    {"{join: {labels: right, sources: {left: {csv: {path: table, label: none}}, right: {text: {path: "
     "texts}}, "
     "more: {text: {path: lines, labels: false}}}}}",
     "table texts lines", -1},
    {"{join: {sources: {left: {csv: {path: table, label: none}}, right: {idx: {images: images, labels: "
     "labels}}}}}",
     "table images labels", -1},
    {"{join: {sources: {left: {text: {path: texts}}, right: {text: {path: lines, labels: false}}}}}",
     "texts lines", -1},
};

static void files_are_those_that_were_read(void **unused)
{
    bool right = true;
    (void)unused;
    for (int i = 0; i < LENGTH(sources); i++) {
        char found[512] = "";
        const size_t below = strlen(test_directory()) + 1;
        tr_source *source = must_open(sources[i].description);
        for (int64_t k = 0; k < source->files.count; k++) {
            const char *path = source->files.file[k].path;
            assert_memory_equal(path, test_directory(), below - 1);
            sprintf(found + strlen(found), "%s%s", k ? " " : "", path + below);
        }
        assert_null(tr_source_files_changed(&source->files));
        const bool fits = sources[i].unpacked < 0 || source->unpacked == sources[i].unpacked;
        if (strcmp(found, sources[i].files) != 0 || !fits) {
            print_message("%s: \"%s\", %d\n", sources[i].description, found, (int)source->unpacked);
            right = false;
        }
        tr_source_close(&source);
    }
    assert_true(right);
}

/* Batches that no other thread reads. */
static const struct tr_loader_options whole_batches = {.microbatches = 1, .end_microbatch = 1};

static void a_lack_of_memory_leaves_nothing(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(sources); i++) {
        tr_source *whole = must_open(sources[i].description);
        const int64_t files = whole->files.count;
        tr_source_close(&whole);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            char *shown = NULL, *state = NULL;
            const struct tr_batch *batch;
            tr_loader *loader = NULL;
            struct tr_order order;
            const char *name;
            tr_source *source = NULL;
            float features[1024], label[64];
            refuse_begin(at);
            tr_status status = tr_source_open(sources[i].description, test_directory(), NULL, &source);
            if (status == TR_OK) status = tr_source_read(source, 0, features, 1024, NULL, label);
            if (status == TR_OK) status = tr_source_show(source, 0, 2, 80, &shown);
            if (status == TR_OK) status = tr_source_state(source, &name, &state);
            if (status == TR_OK)
                status = tr_order_make(&order, source->info.count, 1, TR_LAST_BATCH_KEEP, false, 1);
            if (status == TR_OK) status = tr_loader_create(source, &order, &whole_batches, &loader);
            if (status == TR_OK) status = tr_loader_get(loader, 0, &batch);
            done = refuse_end();
            tr_loader_destroy(&loader);
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s: allocation %d: %s", sources[i].description, (int)at, tr_error_message());
            if (status == TR_OK && (!shown || !*shown))
                fail_msg("%s: allocation %d: nothing is shown", sources[i].description, (int)at);
            /* Whoever has the source knows all of its files. */
            if (source && source->files.count != files)
                fail_msg("%s: allocation %d: %d files", sources[i].description, (int)at,
                         (int)source->files.count);
            tr_text_free(shown);
            tr_text_free(state);
            tr_source_close(&source);
            if (tr_alloc_live() != live) fail_msg("%s: allocation %d leaks", sources[i].description, (int)at);
        }
    }
}

/* A second source that agrees with the first, also without memory. */
static void states_survive_a_lack_of_memory(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(sources); i++) {
        const char *name;
        char *state;
        tr_source *first = must_open(sources[i].description);
        assert_int_equal(tr_source_state(first, &name, &state), TR_OK);
        for (int64_t at = 0, done = 0; state && !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_source *source = NULL;
            char *again = NULL;
            refuse_begin(at);
            tr_status status = tr_source_open(sources[i].description, test_directory(), state, &source);
            if (status == TR_OK) status = tr_source_state(source, &name, &again);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s: allocation %d: %s", sources[i].description, (int)at, tr_error_message());
            if (again) assert_string_equal(again, state);
            tr_text_free(again);
            tr_source_close(&source);
            if (tr_alloc_live() != live) fail_msg("%s: allocation %d leaks", sources[i].description, (int)at);
        }
        tr_text_free(state);
        tr_source_close(&first);
    }
}

/* Opens with a state that does not fit; fails unless that gives one of these, and leaves nothing behind. */
static void expect_refused_state(int i, const char *state, tr_status status, tr_status other)
{
    const int64_t live = tr_alloc_live();
    tr_source *source = NULL;
    const tr_status got = tr_source_open(sources[i].description, test_directory(), state, &source);
    if (got != status && got != other)
        fail_msg("%s: %s with the state\n%s", sources[i].description, tr_status_name(got), state);
    if (tr_alloc_live() != live) fail_msg("%s leaks with the state\n%s", sources[i].description, state);
}

/* A state lies in a file beside a model: it may be that of other data, cut short, or have more lines. */
static void states_are_checked(void **unused)
{
    static const char *const kinds[] = {"classes", "scaling", "sources", "vocabulary"};
    (void)unused;
    for (int i = 0; i < LENGTH(sources); i++) {
        const char *name;
        char *state, *cut;
        tr_source *source = must_open(sources[i].description);
        assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
        name = source->state_name ? source->state_name : source->class->state_name;
        tr_source_close(&source);
        if (!state && strstr(sources[i].description, "{folder: ")) continue; /* files alone need none */
        expect_refused_state(i, "none\n", TR_EFORMAT, TR_EFORMAT);
        for (int k = 0; k < LENGTH(kinds); k++) {
            char other[64];
            snprintf(other, sizeof other, "trireme %s 1, 2 classes, 0 lines\n", kinds[k]);
            const size_t length = strlen(kinds[k]);
            if (name && strncmp(name, kinds[k], length) == 0 && strcmp(name + length, ".txt") == 0) continue;
            expect_refused_state(i, other, TR_EMISMATCH, TR_EMISMATCH);
        }
        for (size_t size = state ? strlen(state) : 0; size-- > 0;) {
            if (strncmp(state + size, "trireme ", 8) == 0 && size > 0) continue; /* a part of it */
            cut = strndup(state, size);
            assert_non_null(cut);
            expect_refused_state(i, cut, TR_EFORMAT, TR_EMISMATCH);
            free(cut);
        }
        tr_text_free(state);
    }
}

static void reading_is_checked(void **unused)
{
    uint8_t image[4];
    int32_t label;
    int64_t length;
    (void)unused;
    tr_source *source = must_open("{idx: {images: images, labels: labels}}");
    assert_int_equal(tr_source_read(source, -1, image, 4, &length, &label), TR_EINVAL);
    assert_string_equal(tr_error_message(), "example -1 was asked for; the data set has 0 to 2");
    assert_int_equal(tr_source_read(source, 3, image, 4, &length, &label), TR_EINVAL);
    assert_string_equal(tr_error_message(), "example 3 was asked for; the data set has 0 to 2");
    assert_int_equal(tr_source_read(source, 2, image, 3, &length, &label), TR_EINVAL);
    assert_string_equal(tr_error_message(), "room for 3 elements was given; an example has up to 4");
    assert_int_equal(tr_source_read(source, 2, image, 4, NULL, &label), TR_OK);
    assert_int_equal(label, 1);
    assert_int_equal(tr_source_read(source, 2, NULL, 0, &length, NULL), TR_OK);
    assert_int_equal(length, 4);
    tr_source_close(&source);
    assert_null(source);
    tr_source_close(&source);
}

/* ---- files that change ---- */

enum { FEATURES = 1, LABELS = 2, SHOWN = 4, DIGESTS = 8 };

static void overwrite(const char *name)
{
    struct bytes file = read_file(test_path(name));
    FILE *same = fopen(test_path(name), "r+b");
    assert_non_null(same);
    memset(file.data, 0, file.size);
    assert_int_equal(fwrite(file.data, 1, file.size, same), file.size);
    fclose(same);
    free(file.data);
}

static void expect_failure(int i, const char *what, tr_status status, bool fails)
{
    const bool bad = status == TR_EFORMAT || status == TR_ECORRUPT;
    if (fails ? !bad : status != TR_OK) fail_msg("case %d, %s: %s", i, what, tr_status_name(status));
}

/* Files that are read as examples are needed may be written over meanwhile: whatever needs them says so. */
static void files_that_were_overwritten_are_told(void **unused)
{
#define RECORDS "{tfrecord: {path: plain.tfrecord, height: 2, width: 2}}"
#define NUMBERS "{tfrecord: {path: numbers.tfrecord, floats: floats, targets: targets}}"
#define TABLE   "{csv: {path: table, label: none}}"
    static const struct {
        const char *description, *file;
        int fails;
    } cases[] = {
        {RECORDS, "plain.tfrecord", FEATURES | LABELS | SHOWN | DIGESTS},
        {NUMBERS, "numbers.tfrecord", FEATURES | LABELS | SHOWN | DIGESTS},
        {"{folder: {path: folder}}", "folder/cats/1.png", FEATURES | SHOWN},
        {"{folder: {path: folder/cats, masks: folder/dogs, classes: 256}}", "folder/cats/1.png",
         FEATURES | SHOWN},
        {"{folder: {path: folder/cats, masks: folder/dogs, classes: 256}}", "folder/dogs/1.png",
         LABELS | SHOWN},
        {"{shards: {path: archive.tar}}", "archive.tar", FEATURES | SHOWN},
        {"{shards: {path: archive.tar, depth: 16}}", "archive.tar", FEATURES | SHOWN},
        {"{folder: {path: folder, depth: 16}}", "folder/cats/1.png", FEATURES | SHOWN},
        /* joined: an image, the labels, numbers */
        {"{join: {sources: {a: {folder: {path: folder}}, b: {csv: {path: pair, label: none}}}}}",
         "folder/cats/1.png", FEATURES},
        {"{join: {labels: a, sources: {a: " RECORDS ", b: " TABLE "}}}", "plain.tfrecord",
         FEATURES | LABELS | SHOWN | DIGESTS},
        {"{join: {labels: b, sources: {a: " NUMBERS ", b: {csv: {path: table}}}}}", "numbers.tfrecord",
         FEATURES | SHOWN | DIGESTS},
        {"{join: {labels: b, sources: {a: {text: {path: lines, labels: false}}, b: " NUMBERS "}}}",
         "numbers.tfrecord", LABELS | SHOWN | DIGESTS},
    };
    for (int i = 0; i < LENGTH(cases); i++) {
        const struct tr_batch *batch;
        struct tr_order order;
        tr_loader *loader;
        float features[64], label[64];
        char digest[65], *shown = NULL;
        write_samples(unused);
        write_text("pair", "1,2\n3,4\n");
        tr_source *source = must_open(cases[i].description);
        const int fails = cases[i].fails;
        overwrite(cases[i].file);
        expect_failure(i, "features", tr_source_read(source, 0, features, 64, NULL, NULL), fails & FEATURES);
        expect_failure(i, "label", tr_source_read(source, 0, NULL, 0, NULL, label), fails & LABELS);
        expect_failure(i, "shown", tr_source_show(source, 0, 1, 80, &shown), fails & SHOWN);
        expect_failure(i, "digest", tr_source_digest(source, digest), fails & DIGESTS);
        tr_text_free(shown);
        assert_int_equal(tr_order_make(&order, source->info.count, 1, TR_LAST_BATCH_KEEP, false, 1), TR_OK);
        assert_int_equal(tr_loader_create(source, &order, &whole_batches, &loader), TR_OK);
        expect_failure(i, "batch", tr_loader_get(loader, 0, &batch), true);
        tr_loader_destroy(&loader);
        tr_source_close(&source);
    }
    /* A part of such a source is as bad. */
    char digest[65];
    uint8_t image[4];
    const struct tr_split split = {.seed = 1, .share = 0.5};
    tr_source *part;
    write_samples(unused);
    assert_int_equal(tr_split_first(must_open(RECORDS), &split, &part), TR_OK);
    overwrite("plain.tfrecord");
    expect_failure(-1, "features", tr_source_read(part, 0, image, 4, NULL, NULL), true);
    expect_failure(-1, "digest", tr_source_digest(part, digest), true);
    tr_source_close(&part);
}

/* A source of sizes and labels alone gives these, and nothing else. */
static void outlines_have_no_images(void **unused)
{
    static const char digits[] = "{idx: {images: images, labels: labels}}";
    char digest[65];
    uint8_t image[4];
    int32_t label = -1;
    tr_config *node;
    tr_source *source;
    write_samples(unused);
    assert_int_equal(tr_config_parse(digits, strlen(digits), "digits", &node), TR_OK);
    assert_int_equal(tr_source_outline_config(node, test_directory(), NULL, NULL, &source), TR_OK);
    tr_config_destroy(&node);
    assert_int_equal(tr_source_read(source, 0, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 2);
    assert_int_equal(tr_source_read(source, 0, image, 4, NULL, NULL), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "images of a set that was opened for its sizes alone were asked for");
    assert_int_equal(tr_source_digest(source, digest), TR_EINVAL);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_those_that_were_read),
        cmocka_unit_test(a_lack_of_memory_leaves_nothing),
        cmocka_unit_test(states_survive_a_lack_of_memory),
        cmocka_unit_test(states_are_checked),
        cmocka_unit_test(reading_is_checked),
        cmocka_unit_test(files_that_were_overwritten_are_told),
        cmocka_unit_test(outlines_have_no_images),
    };
    return cmocka_run_group_tests(tests, write_samples, NULL);
}
