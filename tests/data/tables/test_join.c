/* Several sources as one, and images that a table names. */
#include "data/order/batch.h"
#include "data/order/split.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT 7
#define IMAGE (2 * 3) /* height, width */

static uint8_t pixel(int example, int place)
{
    return (uint8_t)(example * 37 + place * 11);
}

/* An IDX file of `count` images. */
static void write_images(const char *name, int count)
{
    uint8_t file[16 + 16 * IMAGE] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)count, 0, 0, 0, 2, 0, 0, 0, 3};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < IMAGE; k++) file[16 + i * IMAGE + k] = pixel(i, k);
    write_file(name, file, 16 + (size_t)count * IMAGE);
}

/* Rows of an image's name, two numbers, a class by name, and a value. */
static void write_table(const char *name, int count)
{
    char text[1024];
    int used = snprintf(text, sizeof text, "file,a,b,kind,price\n");
    for (int i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "p%d.png,%d.5,%d,%s,%d\n", i, i, -i,
                         i % 3 ? "flat" : "attic", 100 + i);
    write_file(name, text, (size_t)used);
}

static int make_files(void **state)
{
    (void)state;
    write_images("images.idx", COUNT);
    write_images("fewer.idx", COUNT - 1);
    write_table("table.csv", COUNT);
    write_file("labels.idx", (const uint8_t[]){0, 0, 8, 1, 0, 0, 0, COUNT, 3, 1, 4, 1, 5, 9, 2}, 8 + COUNT);
    mkdir(test_path("photos"), 0700);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        uint8_t pixels[IMAGE];
        png_image image = {.version = PNG_IMAGE_VERSION, .width = 3, .height = 2, .format = PNG_FORMAT_GRAY};
        for (int k = 0; k < IMAGE; k++) pixels[k] = pixel(i, k);
        snprintf(name, sizeof name, "photos/p%d.png", i);
        if (!png_image_write_to_file(&image, test_path(name), 0, pixels, 0, NULL))
            fail_msg("%s", image.message);
    }
    return 0;
}

#define FACTS     "facts: {csv: {path: table.csv, skip_columns: [file, kind], label: value}}"
#define KINDS     "facts: {csv: {path: table.csv, skip_columns: [file, price], label_columns: kind}}"
#define JOIN(...) "{join: {sources: {" __VA_ARGS__ "}}}"

/* Example `i` as the files have it: images first, whatever the order of the sources. */
static void expect_example(const tr_source *source, int i, const void *expected, size_t label_size)
{
    float row[IMAGE + 2];
    int64_t length;
    uint8_t got[8];
    if (tr_source_read(source, i, row, IMAGE + 2, &length, got) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(length, IMAGE + 2);
    for (int k = 0; k < IMAGE; k++) assert_true(row[k] == (float)pixel(i, k));
    assert_true(row[IMAGE] == (float)i + 0.5f && row[IMAGE + 1] == (float)-i);
    assert_memory_equal(got, expected, label_size);
}

static void test_examples(void **state)
{
    (void)state;
    static const char *const images[] = {
        "photo: {idx: {images: images.idx}}",
        "photo: {folder: {path: photos, table: table.csv, column: file}}",
        "photo: {folder: {path: photos, table: table.csv, column: file, memory: true}}",
    };
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "{join: {sources: {" FACTS ", %s}}}", images[i]);
        tr_source *source = must_open(text);
        const struct tr_source_info *info = tr_source_info(source);
        assert_int_equal(info->count, COUNT);
        assert_int_equal(info->features, TR_FEATURE_FLOATS);
        assert_int_equal(info->floats, IMAGE + 2);
        assert_int_equal(info->labels, TR_LABEL_VALUES);
        assert_int_equal(source->parts->count, 2);
        assert_int_equal(source->parts->images, 1);
        assert_string_equal(source->parts->part[0].name, "photo");
        assert_string_equal(source->parts->part[1].name, "facts");
        for (int k = 0; k < COUNT; k++) {
            float price = (float)(100 + k);
            expect_example(source, k, &price, sizeof price);
        }
        char *shown;
        assert_int_equal(tr_source_show(source, 2, 1, 80, &shown), TR_OK);
        assert_string_equal(shown, "[2] 102: photo 2x3x1, facts 2.5 -2\n");
        tr_text_free(shown);
        tr_source_close(&source);
    }
}

/* The labels of one source of two, and classes with their names; a source of labels alone is no input. */
static void test_labels(void **state)
{
    (void)state;
    tr_source *source =
        must_open("{join: {sources: {photo: {idx: {images: images.idx, labels: labels.idx}}, " KINDS
                  "}, labels: facts}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "attic");
    for (int i = 0; i < COUNT; i++) expect_example(source, i, &(int32_t){i % 3 != 0}, sizeof(int32_t));
    tr_source_close(&source);
    source = must_open("{join: {sources: {photo: {idx: {images: images.idx, labels: labels.idx}}, " KINDS
                       "}, labels: photo}}");
    assert_int_equal(tr_source_info(source)->classes, 10);
    expect_example(source, 5, &(int32_t){9}, sizeof(int32_t));
    tr_source_close(&source);
    source = must_open(JOIN("photo: {idx: {images: images.idx}}, only: {csv: {path: table.csv, skip_columns: "
                            "[file, a, b, price], label_columns: kind}}"));
    assert_int_equal(tr_source_info(source)->floats, IMAGE);
    assert_int_equal(source->parts->count, 1);
    int32_t label = -1;
    assert_int_equal(tr_source_read(source, 3, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 0);
    tr_source_close(&source);
    expect_refusal("{csv: {path: table.csv, skip_columns: [file, a, b, price], label_columns: kind}}",
                   TR_EINVAL, "nothing to predict from");
}

/* Another data set takes scaling and classes of each source by its name; what it lacks is said. */
static void test_state(void **state)
{
    (void)state;
    const char *name;
    char *text;
    tr_source *source =
        must_open(JOIN("photo: {idx: {images: images.idx}}, facts: {csv: {path: table.csv, "
                       "skip_columns: [file, price], label_columns: kind, standardize: true}}"));
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_string_equal(name, "sources.txt");
    tr_source_close(&source);
    write_file("one.csv", "file,a,b,kind,price\nx,3.5,-3,flat,0\n", 35);
    write_images("one.idx", 1);
    static const char one[] =
        JOIN("facts: {csv: {path: one.csv, skip_columns: [file, price], label_columns: kind}}, "
             "photo: {idx: {images: one.idx}}");
    assert_int_equal(tr_source_open(one, test_directory(), text, &source), TR_OK);
    float row[IMAGE + 2];
    int32_t label;
    assert_int_equal(tr_source_read(source, 0, row, IMAGE + 2, NULL, &label), TR_OK);
    assert_true(row[IMAGE] == 0 && row[IMAGE + 1] == 0); /* the means */
    assert_int_equal(label, 1);
    tr_source_close(&source);
    static const char renamed[] = JOIN("seen: {idx: {images: images.idx}}, " KINDS);
    assert_int_equal(tr_source_open(renamed, test_directory(), text, &source), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "have no source \"seen\""));
    static const char *const damaged[] = {"", "trireme sources 1, 0 classes, 9 lines\nphoto\n",
                                          "trireme scaling 1, 0 classes, 0 lines\n"};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        tr_status status = tr_source_open(one, test_directory(), damaged[i], &source);
        assert_true(status == TR_EFORMAT || status == TR_EMISMATCH);
    }
    tr_text_free(text);
}

/* The digest follows from each source and from which has the labels, not from the packing of one. */
static void test_digest(void **state)
{
    (void)state;
    static const char *const descriptions[] = {
        JOIN("photo: {idx: {images: images.idx}}, " FACTS),
        JOIN("picture: {idx: {images: images.idx}}, " FACTS),
        JOIN("photo: {idx: {images: images.idx}}, " KINDS),
        JOIN("photo: {idx: {images: other.idx}}, " FACTS),
        "{join: {sources: {photo: {idx: {images: images.idx, labels: labels.idx}}, " FACTS
        "}, labels: facts}}",
        "{join: {sources: {photo: {idx: {images: images.idx, labels: labels.idx}}, " FACTS
        "}, labels: photo}}",
    };
    enum { KINDS_OF = sizeof descriptions / sizeof descriptions[0] };
    char digest[KINDS_OF][65], again[65];
    struct bytes bytes = read_file(test_path("images.idx"));
    struct bytes packed = pack(bytes.data, bytes.size, 31);
    write_file("packed.idx", packed.data, packed.size);
    bytes.data[20] ^= 1;
    write_file("other.idx", bytes.data, bytes.size);
    free(bytes.data);
    free(packed.data);
    for (int i = 0; i < KINDS_OF; i++) {
        tr_source *source = must_open(descriptions[i]);
        assert_int_equal(tr_source_digest(source, digest[i]), TR_OK);
        tr_source_close(&source);
        for (int k = 0; k < i; k++) assert_string_not_equal(digest[i], digest[k]);
    }
    tr_source *source = must_open(JOIN("photo: {idx: {images: packed.idx}}, " FACTS));
    assert_int_equal(tr_source_digest(source, again), TR_OK);
    assert_string_equal(again, digest[0]);
    tr_source_close(&source);
}

/* Batches have images as bytes and numbers as numbers, also of a part of the examples. */
static void test_batches(void **state)
{
    (void)state;
    struct tr_order order;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    const struct tr_batch *batch;
    tr_loader *loader;
    tr_source *whole = must_open(JOIN(FACTS ", photo: {idx: {images: images.idx}}")), *first, *second;
    assert_int_equal(tr_split_first(whole, &(struct tr_split){.seed = 5, .share = 0.4}, &first), TR_OK);
    assert_int_equal(tr_split_second(first, &second), TR_OK);
    assert_int_equal(first->info.count, 4);
    bool seen[COUNT] = {false};
    for (int part = 0; part < 2; part++) {
        const tr_source *source = part ? second : first;
        int64_t count = source->info.count;
        assert_int_equal(tr_order_make(&order, count, count, TR_LAST_BATCH_KEEP, true, 3), TR_OK);
        options.prefetch = part;
        assert_int_equal(tr_loader_create(source, &order, &options, &loader), TR_OK);
        assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
        for (int64_t row = 0; row < count; row++) {
            int example = (int)batch->targets[row] - 100;
            assert_true(example >= 0 && example < COUNT && !seen[example]);
            seen[example] = true;
            for (int k = 0; k < IMAGE; k++)
                assert_int_equal(batch->part[0][row * IMAGE + k], pixel(example, k));
            assert_true(batch->floats[2 * row] == (float)example + 0.5f &&
                        batch->floats[2 * row + 1] == (float)-example);
        }
        tr_loader_destroy(&loader);
    }
    tr_source_close(&first);
    tr_source_close(&second);
}

/* A text has as many words as its number, which stands beside it, in every order and after a split. */
static void test_batches_of_texts(void **state)
{
    (void)state;
    char texts[256] = "", numbers[128] = "number\n";
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k <= i; k++) strcat(texts, "word ");
        strcat(texts, i % 2 ? "\t1\n" : "\t0\n");
        snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%d\n", i + 1);
    }
    write_file("counted.tsv", texts, strlen(texts));
    write_file("counts.csv", numbers, strlen(numbers));
    struct tr_order order;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    tr_source *whole = must_open(JOIN("words: {text: {path: counted.tsv}}, counts: {csv: {path: counts.csv, "
                                      "label: none}}")),
              *parts[2];
    assert_int_equal(tr_split_first(whole, &(struct tr_split){.seed = 5, .share = 0.4}, &parts[0]), TR_OK);
    assert_int_equal(tr_split_second(parts[0], &parts[1]), TR_OK);
    int seen = 0;
    for (int part = 0; part < 2; part++) {
        const int64_t count = parts[part]->info.count;
        const struct tr_batch *batch;
        tr_loader *loader;
        assert_int_equal(tr_order_make(&order, count, count, TR_LAST_BATCH_KEEP, true, 3), TR_OK);
        options.prefetch = part;
        assert_int_equal(tr_loader_create(parts[part], &order, &options, &loader), TR_OK);
        assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
        for (int64_t row = 0; row < count; row++) {
            const int words = batch->offset[row + 1] - batch->offset[row];
            assert_true(words >= 1 && words <= COUNT && !(seen >> words & 1));
            seen |= 1 << words;
            assert_true(batch->floats[row] == (float)words);
            assert_int_equal(batch->labels[row], (words - 1) % 2);
        }
        tr_loader_destroy(&loader);
    }
    tr_source_close(&parts[0]);
    tr_source_close(&parts[1]);
}

/* The text whose tokens have labels is the first one, whatever their order; the other one is read beside it,
   also in batches and after a split. */
static void test_two_texts(void **state)
{
    (void)state;
    char from[512] = "", to[256] = "";
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 8 - i; k++) strcat(from, "x");
        for (int k = 0; k <= i; k++) strcat(to, "y");
        strcat(from, "\n");
        strcat(to, "\n");
    }
    write_file("from.txt", from, strlen(from));
    write_file("to.txt", to, strlen(to));
    static const char *const orders[] = {
        JOIN("from: {text: {path: from.txt, unit: characters, labels: false}}, to: {text: {path: to.txt, "
             "unit: "
             "characters, next: true}}"),
        JOIN("to: {text: {path: to.txt, unit: characters, next: true}}, from: {text: {path: from.txt, unit: "
             "characters, labels: false}}"),
    };
    for (int k = 0; k < 2; k++) {
        tr_source *source = must_open(orders[k]), *parts[2];
        const struct tr_source_info *info = tr_source_info(source);
        char *shown;
        assert_int_equal(info->features, TR_FEATURE_TOKENS);
        assert_int_equal(info->labels, TR_LABEL_TOKENS);
        assert_int_equal(info->max_tokens, 8);
        assert_int_equal(info->vocabulary, 3);
        assert_string_equal(source->parts->text, "to");
        assert_string_equal(source->parts->second, "from");
        assert_int_equal(source->parts->second_tokens, 8);
        assert_int_equal(source->parts->second_vocabulary, 2);
        assert_int_equal(source->parts->count, 0);
        assert_int_equal(tr_source_show(source, 5, 1, 80, &shown), TR_OK);
        assert_non_null(strstr(shown, "from xxx, to yyyyyy\n"));
        tr_text_free(shown);
        assert_int_equal(tr_split_first(source, &(struct tr_split){.seed = 5, .share = 0.4}, &parts[0]),
                         TR_OK);
        assert_int_equal(tr_split_second(parts[0], &parts[1]), TR_OK);
        for (int p = 0; p < 2; p++) {
            const int64_t count = tr_source_info(parts[p])->count;
            struct tr_order order;
            struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
            tr_loader *loader;
            const struct tr_batch *batch;
            assert_int_equal(tr_order_make(&order, count, count, TR_LAST_BATCH_KEEP, true, 3), TR_OK);
            assert_int_equal(tr_loader_create(parts[p], &order, &options, &loader), TR_OK);
            assert_int_equal(tr_loader_second_tokens(loader), 8 * count);
            assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
            for (int64_t r = 0; r < count; r++) {
                const int32_t length = batch->offset[r + 1] - batch->offset[r],
                              other = batch->second_offset[r + 1] - batch->second_offset[r];
                assert_int_equal(batch->second_offset[0], 0);
                assert_int_equal(length + other, 10); /* i + 1 and the boundary, and 8 - i */
                for (int32_t t = batch->second_offset[r]; t < batch->second_offset[r + 1]; t++)
                    assert_int_equal(batch->second[t], 1);
            }
            tr_loader_destroy(&loader);
        }
        tr_source_close(&parts[0]);
        tr_source_close(&parts[1]);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    write_file("gaps.csv", "a,b\n1,2\n,3\n4,5\n", 15);
    write_file("text.tsv", "good film\t1\n", 12);
    static const struct {
        const char *description;
        tr_status status;
        const char *part;
    } cases[] = {
        {JOIN("photo: {idx: {images: fewer.idx}}, " FACTS), TR_EMISMATCH,
         "source \"photo\" has 6 examples, source \"facts\" 7"},
        {JOIN("photo: {idx: {images: images.idx, labels: labels.idx}}, " FACTS), TR_EINVAL,
         "\"photo\" and \"facts\" both have labels"},
        {"{join: {sources: {photo: {idx: {images: images.idx}}, " FACTS "}, labels: photo}}", TR_EINVAL,
         "source \"photo\" has none"},
        {"{join: {sources: {photo: {idx: {images: images.idx}}, " FACTS "}, labels: fact}}", TR_EINVAL,
         "did you mean \"facts\"?"},
        {JOIN(FACTS), TR_EINVAL, "wants two to 4 sources"},
        {"{join: {sources: []}}", TR_EINVAL, "wants two to 4 sources"},
        {"{join: {labels: x}}", TR_EINVAL, "\"sources\" is missing"},
        {JOIN("input: {idx: {images: images.idx}}, " FACTS), TR_EINVAL,
         "\"input\" cannot be the name of a source"},
        {JOIN("a.b: {idx: {images: images.idx}}, " FACTS), TR_EINVAL,
         "\"a.b\" cannot be the name of a source"},
        {JOIN("a.b: {idx: {images: images.idx}}, " FACTS), TR_EINVAL,
         "\"a.b\" cannot be the name of a source"},
        {JOIN("photo: {join: {sources: {}}}, " FACTS), TR_EINVAL, "cannot be a join"},
        {JOIN("photo: {idy: {images: images.idx}}, " FACTS), TR_EINVAL, "did you mean \"idx\"?"},
        {JOIN("words: {text: {path: text.tsv}}, " FACTS), TR_EMISMATCH,
         "source \"words\" has 1 example, source \"facts\" 7"},
        {JOIN("gaps: {csv: {path: gaps.csv, missing: skip}}, " FACTS), TR_EFORMAT,
         "source \"gaps\" has left out 1 rows"},
        {JOIN("photo: {idx: {images: none.idx}}, " FACTS), TR_EIO, "source \"photo\": "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_status status = try_open(cases[i].description);
        /* A file that is not there has a status of its own. */
        if (cases[i].status == TR_EIO && status == TR_ENOTFOUND) continue;
        expect_refusal(cases[i].description, cases[i].status, cases[i].part);
    }
}

/* ---- images that a table names ---- */

static void test_table_of_images(void **state)
{
    (void)state;
    static const struct {
        const char *table, *column;
        int first; /* the image of the first row */
    } cases[] = {
        {"name\tfile\n1\tp3.png\n2\tp0.png\n3\tp3.png\n", "file", 3},
        {"p1.png;9\np2.png;8\n\np2.png;8\n", "0", 1},
        {"\"a\", \"p5.png\"\nb,p6.png\nc,p6.png\n", "1", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        uint8_t pixels[IMAGE];
        write_file("names.csv", cases[i].table, strlen(cases[i].table));
        snprintf(text, sizeof text, "{folder: {path: photos, table: names.csv, column: %s}}",
                 cases[i].column);
        tr_source *source = must_open(text);
        assert_int_equal(tr_source_info(source)->count, 3);
        assert_int_equal(tr_source_info(source)->labels, TR_LABEL_NONE);
        assert_int_equal(tr_source_read(source, 0, pixels, IMAGE, NULL, NULL), TR_OK);
        for (int k = 0; k < IMAGE; k++) assert_int_equal(pixels[k], pixel(cases[i].first, k));
        tr_source_close(&source);
    }
}

static void test_tables_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *table, *column;
        tr_status status;
        const char *part;
    } cases[] = {
        {"file,a\np0.png,1\n", "fil", TR_EINVAL,
         "image column \"fil\" is neither a name in the first line nor a "
         "number from 0 to 1; did you mean \"file\"?"},
        {"file,a\np0.png,1\n", "2", TR_EINVAL, "number from 0 to 1"},
        {"file,a\n", "file", TR_EFORMAT, "no row after the first line"},
        {"file,a\np0.png,1\n,2\n", "file", TR_EFORMAT, "names.csv:3:1: no name of a file"},
        {"file,a\np0.png,1,5\n", "file", TR_EFORMAT, "names.csv:2:1: 3 columns; the first line has 2"},
        {"file,a\n../photos/p0.png,1\n", "file", TR_EFORMAT, "is not in the folder"},
        {"file,a\nx/../../p0.png,1\n", "file", TR_EFORMAT, "is not in the folder"},
        {"file,a\n/p0.png,1\n", "file", TR_EFORMAT, "is not in the folder"},
        {"file,a\np0.png,1\np8.png,1\n", "file", TR_ENOTFOUND, "names.csv: example 1 (counted from 0): "},
        {"", "file", TR_EFORMAT, "the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        write_file("names.csv", cases[i].table, strlen(cases[i].table));
        snprintf(text, sizeof text, "{folder: {path: photos, table: names.csv, column: %s}}",
                 cases[i].column);
        expect_refusal(text, cases[i].status, cases[i].part);
    }
}

/* Columns of a table have names, and those that are not there a nearest one. */
static void test_nearest_column(void **state)
{
    (void)state;
    expect_refusal(
        "{csv: {path: table.csv, skip_columns: [file, kinds]}}", TR_EINVAL,
        "skipped column \"kinds\" is neither a name in the first line nor a number from 0 to 4; did "
        "you mean \"kind\"?");
    expect_refusal("{csv: {path: table.csv, skip_columns: file, label_columns: Price, label: value}}",
                   TR_EINVAL, "did you mean \"price\"?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_state),           cmocka_unit_test(test_digest),
        cmocka_unit_test(test_batches),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_table_of_images), cmocka_unit_test(test_tables_that_are_refused),
        cmocka_unit_test(test_nearest_column),  cmocka_unit_test(test_batches_of_texts),
        cmocka_unit_test(test_two_texts),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
