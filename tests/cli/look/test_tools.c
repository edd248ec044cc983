/* eval, predict, inspect, devices and data, on small networks for images, texts and numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/session.h"

#include <png.h>

static const char *const text_model = "name: words\n"
                                      "data:\n"
                                      "  train: {text: {path: words.tsv, min_count: 1}}\n"
                                      "  test: {text: {path: words.tsv}}\n"
                                      "layers: [{embedding: 8}, {lstm: 8}, last, {dense: 2}]\n"
                                      "optimizer: {rule: adam, rate: 0.02}\n"
                                      "train: {batch: 6, microbatches: 2, steps: 60}\n";

static const char *const number_model =
    "name: line\n"
    "data: {train: {csv: {path: line.csv, label: value, label_columns: [2]}}}\n"
    "layers: [{dense: 1}]\n"
    "loss: mean_squared_error\n"
    "optimizer: {rule: sgd, rate: 0.05}\n"
    "train: {batch: 4, steps: 300}\n";

/* Trains the three networks that the tests look at. */
static int make_networks(void **state)
{
    if (place_make(state) != 0) return -1;
    write_text("words.tsv",
               "a good film\t1\na bad film\t0\ngood good\t1\nbad\t0\nvery good\t1\nvery very bad\t0\n");
    write_text("words.yaml", text_model);
    write_text("line.csv", "0,0,1\n1,0,3\n0,1,0\n1,1,2\n");
    write_text("line.yaml", number_model);
    expect_exit(0, "train", "tiny.yaml", "--set", "train.steps=150");
    expect_exit(0, "train", "words.yaml");
    expect_exit(0, "train", "line.yaml");
    return 0;
}

static void expect_text(const struct session *session, const char *part)
{
    if (!strstr(session->text[0], part)) session_show(session);
    assert_non_null(strstr(session->text[0], part));
}

/* Parses the whole of stdout as one object. */
static tr_json *parse(const struct session *session)
{
    tr_json *document;
    if (tr_json_parse(session->text[0], session->size[0], "stdout", &document) != TR_OK)
        fail_msg("%s\n%s", tr_error_message(), session->text[0]);
    return document;
}

static int64_t integer_of(const tr_json *document, const char *key)
{
    int64_t value;
    assert_int_equal(tr_json_get_integer(tr_json_root(document), "", key, INT64_MIN, INT64_MAX, &value),
                     TR_OK);
    return value;
}

/* ---- eval ---- */

static void test_eval(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "eval", "runs/tiny", NULL), 0);
    expect_text(&session, "checkpoint  runs/tiny/checkpoint-00000150 (step 150)\n");
    expect_text(&session, "test        accuracy 1.0000, loss ");
    session_release(&session);
    assert_int_equal(run(&session, "eval", "runs/tiny", "--confusion", "--set-name", "train", NULL), 0);
    expect_text(&session, "    0   1   2\n0  22   .   .\n1   .  21   .\n2   .   .  21\n");
    session_release(&session);
    assert_int_equal(run(&session, "eval", "runs/tiny", "--confusion", "--json", "--data",
                         "{idx: {images: images.idx, labels: labels.idx}}", NULL),
                     0);
    expect_text(&session, "\"confusion\":[[22,0,0],[0,21,0],[0,0,21]]");
    tr_json *document = parse(&session);
    assert_int_equal(integer_of(document, "examples"), 64);
    expect_text(&session, "\"accuracy\":1,");
    tr_json_destroy(&document);
    session_release(&session);
    /* Values have none. */
    assert_int_equal(run(&session, "eval", "runs/line", "--set-name", "train", "--json", NULL), 0);
    document = parse(&session);
    assert_non_null(tr_json_find(tr_json_root(document), "loss"));
    assert_null(tr_json_find(tr_json_root(document), "accuracy"));
    tr_json_destroy(&document);
    session_release(&session);
}

static void test_eval_refuses(void **state)
{
    (void)state;
    static const char *const mistakes[][5] = {
        {"runs/tiny", "--set-name", "validation", "validation"},
        {"runs/tiny", "--set-name", "tset", "tset"},
        {"runs/tiny", "--data", "{idx: {images: images.idx}}", "no classes"},
        {"runs/tiny", "--data", "{text: {path: words.tsv}}", "left classes.txt"},
        {"runs/line", "--set-name", "train", "--confusion", "no classes"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct session session;
        const char *const *a = mistakes[i];
        int code = run(&session, "eval", a[0], a[1], a[2], a[4] ? a[3] : NULL, NULL);
        expect_error(2, a[4] ? a[4] : a[3], &session, code);
        session_release(&session);
    }
}

static void test_a_damaged_checkpoint_is_told_of(void **state)
{
    (void)state;
    expect_exit(0, "train", "tiny.yaml", "--out", "damaged", "--steps", "4", "--set",
                "train.checkpoint_every=2");
    write_text("damaged/checkpoint-00000004/parameters.safetensors", "no longer what it was");
    static const char *const commands[][3] = {{"eval", NULL, NULL}, {"predict", "--set-name", "test"}};
    for (int i = 0; i < 2; i++) {
        struct session session;
        assert_int_equal(run(&session, commands[i][0], "damaged", commands[i][1], commands[i][2], NULL), 0);
        assert_non_null(
            strstr(session.text[1], ": warning: \"damaged/checkpoint-00000004/parameters.safetensors"));
        session_release(&session);
    }
    expect_exit(2, "eval", "damaged/checkpoint-00000004");
}

/* ---- predict ---- */

static void test_predict_examples(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "predict", "runs/tiny", "--set-name", "test", "--index", "0,1,2", NULL),
                     0);
    expect_text(&session, "test[0]: 0 ");
    expect_text(&session, "test[1]: 1 ");
    expect_text(&session, "test[2]: 2 ");
    session_release(&session);
    assert_int_equal(
        run(&session, "predict", "runs/tiny", "--idx", "images.idx", "-n", "4", "-k", "1", "--show", NULL),
        0);
    expect_text(&session, "images.idx[4]: 1 ");
    expect_text(&session, "\n%#%%%%\n"); /* the bright rows of class 1 */
    assert_null(strchr(strstr(session.text[0], "images.idx[4]"), ','));
    session_release(&session);
    int code = run(&session, "predict", "runs/tiny", "--set-name", "test", "--index", "64", NULL);
    expect_error(2, "no example 64", &session, code);
    session_release(&session);
}

static void write_png(const char *path, int side, bool inverted)
{
    uint8_t pixels[24 * 24];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)side,
                       .height = (png_uint_32)side,
                       .format = PNG_FORMAT_GRAY};
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            uint8_t value = y * 3 / side == 2 ? 220 : 30;
            pixels[y * side + x] = inverted ? (uint8_t)(255 - value) : value;
        }
    assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

static void test_predict_image_files(void **state)
{
    (void)state;
    struct session session;
    write_png("two.png", 6, false);
    write_png("large.png", 24, false);
    write_png("dark.png", 6, true);
    assert_int_equal(run(&session, "predict", "runs/tiny", "--image", "two.png", "--image", "two.png", NULL),
                     0);
    expect_text(&session, "two.png: 2 ");
    session_release(&session);
    /* What a terminal would obey is not printed. */
    write_png("t\033[31mo.png", 6, false);
    assert_int_equal(run(&session, "predict", "runs/tiny", "--image", "t\033[31mo.png", NULL), 0);
    expect_text(&session, "t?[31mo.png: ");
    assert_null(strchr(session.text[0], '\033'));
    session_release(&session);
    int code = run(&session, "predict", "runs/tiny", "--image", "large.png", NULL);
    expect_error(2, "24 x 24 pixels, and the network takes 6 x 6; add --fit scale, or --fit crop", &session,
                 code);
    session_release(&session);
    assert_int_equal(
        run(&session, "predict", "runs/tiny", "--image", "large.png", "--fit", "scale", "--show", NULL), 0);
    expect_text(&session, "large.png: 2 ");
    session_release(&session);
    assert_int_equal(run(&session, "predict", "runs/tiny", "--image", "dark.png", "--invert", "--json", NULL),
                     0);
    tr_json *document = parse(&session);
    assert_int_equal(integer_of(document, "class"), 2);
    tr_json_destroy(&document);
    session_release(&session);
    code = run(&session, "predict", "runs/tiny", "--image", "words.tsv", NULL);
    expect_error(2, "words.tsv", &session, code);
    session_release(&session);
}

static void test_predict_texts(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "predict", "runs/words", "--text", "good film", "-x", "bad bad", NULL), 0);
    expect_text(&session, "good film: 1 ");
    expect_text(&session, "bad bad: 0 ");
    session_release(&session);
    struct setup lines = {.input = "very good\n\n  \nbad film\r\nno newline at the end good"};
    assert_int_equal(run_with(&session, lines, "predict", "runs/words", NULL), 0);
    expect_text(&session, "very good: 1 ");
    expect_text(&session, "\nbad film: 0 ");
    expect_text(&session, "\nno newline at the end good: ");
    session_release(&session);
    int code = run(&session, "predict", "runs/words", "--image", "two.png", NULL);
    expect_error(2, "--image", &session, code);
    session_release(&session);
    code = run(&session, "predict", "runs/tiny", "--text", "good", NULL);
    expect_error(2, "takes images", &session, code);
    session_release(&session);
    code = run(&session, "predict", "runs/tiny", NULL);
    expect_error(2, "nothing to predict", &session, code);
    session_release(&session);
}

static void test_predict_numbers(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "predict", "runs/line", "--values", "1,1", "--json", NULL), 0);
    const char *output = strstr(session.text[0], "\"output\":[");
    assert_non_null(output);
    double value = strtod(output + 10, NULL); /* 2 x - y + 1 */
    assert_true(value > 1.9 && value < 2.1);
    session_release(&session);
    int code = run(&session, "predict", "runs/line", "--values", "1,1,1", NULL);
    expect_error(2, "3 numbers, the network takes 2", &session, code);
    session_release(&session);
}

/* ---- inspect, devices ---- */

static void test_inspect(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "inspect", "tiny.yaml", NULL), 0);
    expect_text(&session, "parameters  323 in ");
    expect_text(&session, "dense1    dense    8  ");
    session_release(&session);
    assert_int_equal(run(&session, "inspect", "tiny.yaml", "--json", "--set", "layers.dense1.units=16", NULL),
                     0);
    tr_json *document = parse(&session);
    assert_int_equal(integer_of(document, "parameters"), 36 * 16 + 16 + 16 * 3 + 3);
    assert_int_equal(integer_of(document, "example_operations"), 2 * (36 * 16 + 16 * 3) + 16);
    /* No gradient flows into the input: the first layer has one product less. */
    assert_int_equal(integer_of(document, "step_operations"), 10 * (2 * (2 * 36 * 16 + 3 * 16 * 3) + 2 * 16));
    tr_json_destroy(&document);
    session_release(&session);
    assert_int_equal(run(&session, "inspect", "runs/words", NULL), 0);
    expect_text(&session, "steps done  60\n");
    expect_text(&session, "hash        ");
    expect_text(&session, "with 3 tokens");
    session_release(&session);
    assert_int_equal(run(&session, "inspect", "--layers", NULL), 0);
    expect_text(&session, "conv: ");
    expect_text(&session, "  filters ");
    session_release(&session);
    int code = run(&session, "inspect", "tiny.yaml", "--set", "layers.0.units=0", NULL);
    expect_error(2, "units", &session, code);
    session_release(&session);
}

/* A checkpoint can be looked at without its data, and then says what it cannot know. */
static void test_inspect_without_data(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(rename("words.tsv", "gone.tsv"), 0);
    assert_int_equal(run(&session, "inspect", "runs/words", NULL), 0);
    expect_text(&session, "a step      unknown");
    session_release(&session);
    assert_int_equal(run(&session, "inspect", "runs/words", "--json", NULL), 0);
    tr_json *document = parse(&session);
    assert_null(tr_json_find(tr_json_root(document), "step_operations"));
    tr_json_destroy(&document);
    session_release(&session);
    assert_int_equal(rename("gone.tsv", "words.tsv"), 0);
}

/* The line of the text from `at` on. */
static char *line_at(const char *at)
{
    char *line = tr_format("%.*s", (int)strcspn(at, "\n"), at);
    assert_non_null(line);
    return line;
}

/* The text tells what the JSON has: one instruction set is the default, the first; caches with their size,
   and how many processors share one. */
static void expect_same_processor(const char *text, const struct tr_json_value *cpu)
{
    char size[TR_TEXT_NUMBER_SIZE];
    const struct tr_json_value *isa = tr_json_find(cpu, "isa")->first;
    const char *chosen = strstr(text, "(default)"), *first = strstr(text, "  isa");
    assert_non_null(first);
    assert_non_null(chosen);
    assert_null(strstr(chosen + 1, "(default)"));
    char *line = line_at(first);
    assert_non_null(strstr(line, isa->text));
    assert_non_null(strstr(line, "(default)"));
    tr_free(line);
    const char *caches = strstr(text, "  caches");
    assert_non_null(caches);
    line = line_at(caches);
    assert_non_null(strstr(line, "blocks of matrices follow from them"));
    for (const struct tr_json_value *cache = tr_json_find(cpu, "caches")->first; cache; cache = cache->next) {
        int64_t bytes = tr_json_find(cache, "bytes")->integer;
        int processors = (int)tr_json_find(cache, "processors")->integer;
        char *told = processors > 1 ? tr_format("%s for %d", tr_text_from_bytes(bytes, size), processors)
                                    : tr_format("%s", tr_text_from_bytes(bytes, size));
        assert_non_null(told);
        const char *at = strstr(line, told);
        if (!at) fail_msg("\"%s\" is not in \"%s\"", told, line);
        if (processors <= 1) assert_int_not_equal(strncmp(at + strlen(told), " for", 4), 0);
        tr_free(told);
    }
    tr_free(line);
}

static void test_devices(void **state)
{
    (void)state;
    struct session session, words;
    assert_int_equal(run(&words, "devices", NULL), 0);
    expect_text(&words, "plain");
    assert_int_equal(run(&session, "devices", "--json", NULL), 0);
    tr_json *document = parse(&session);
    const struct tr_json_value *devices = tr_json_find(tr_json_root(document), "devices");
    /* what CUDA and OpenCL find here is within theirs, and names for it in the last */
    static const char *const names[] = {"cpu", "ref", "cuda", "opencl", "gpu"};
    enum { KINDS = sizeof names / sizeof names[0] };
    assert_int_equal(devices->count, KINDS);
    const struct tr_json_value *device = devices->first;
    for (int i = 0; i < KINDS; i++, device = device->next) {
        assert_string_equal(tr_json_find(device, "name")->text, names[i]);
        assert_int_equal(tr_json_find(device, "default")->truth, i == 0);
    }
    expect_same_processor(words.text[0], devices->first);
    tr_json_destroy(&document);
    session_release(&session);
    session_release(&words);
}

/* ---- data ---- */

static void test_data_list_and_verify(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "data", "list", NULL), 0);
    expect_text(&session, "mnist ");
    expect_text(&session, "cifar-10 ");
    expect_text(&session, "not fetched");
    session_release(&session);
    assert_int_equal(run(&session, "data", "list", "--dir", TRIREME_SOURCE_DIR "/data", NULL), 0);
    expect_text(&session, "mnist          complete");
    session_release(&session);
    assert_int_equal(run(&session, "data", "verify", "--dir", TRIREME_SOURCE_DIR "/data", NULL), 0);
    expect_text(&session, "good     " TRIREME_SOURCE_DIR "/data/mnist/train-images-idx3-ubyte.gz\n");
    assert_null(strstr(session.text[0], "cifar"));
    session_release(&session);
    assert_int_equal(run(&session, "data", "verify", "mnist", "--dir", "none", NULL), 2);
    expect_text(&session, "missing  none/mnist/train-images-idx3-ubyte.gz");
    session_release(&session);
    assert_int_equal(tr_file_make_directories(NULL, "data/mnist"), TR_OK);
    write_text("data/mnist/train-images-idx3-ubyte.gz", "rubbish");
    assert_int_equal(run(&session, "data", "verify", "mnist", NULL), 5);
    expect_text(&session, "damaged  data/mnist/train-images-idx3-ubyte.gz");
    session_release(&session);
}

static void test_data_show(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(
        run(&session, "data", "show", "{idx: {images: images.idx, labels: labels.idx}}", "-n", "2", NULL), 0);
    expect_text(&session, "64 examples: images 6x6x1, 3 classes\n[0] 0   [1] 1\n");
    session_release(&session);
    assert_int_equal(
        run(&session, "data", "show", "{text: {path: words.tsv}}", "--first", "3", "-n", "1", NULL), 0);
    expect_text(&session, "bad");
    session_release(&session);
    int code = run(&session, "data", "show", "{text: {path: words.tsv}}", "--first", "6", NULL);
    expect_error(2, "examples", &session, code);
    session_release(&session);
}

static void test_data_convert(void **state)
{
    (void)state;
    struct session session;
    const char *const idx = "{idx: {images: images.idx, labels: labels.idx}}";
    assert_int_equal(run(&session, "data", "convert", idx, "images.tfrecord", "--packing", "gzip", NULL), 0);
    expect_text(&session, "wrote 64 examples to images.tfrecord\n");
    session_release(&session);
    /* Back again: the same bytes. */
    const char *const tfrecord = "{tfrecord: {path: images.tfrecord, height: 6, width: 6}}";
    assert_int_equal(run(&session, "data", "convert", tfrecord, "again", "--format", "idx", NULL), 0);
    session_release(&session);
    struct tr_file_content before, after;
    assert_int_equal(tr_file_read("images.idx", 1 << 20, &before), TR_OK);
    assert_int_equal(tr_file_read("again-images-idx3-ubyte", 1 << 20, &after), TR_OK);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    tr_file_content_free(&before);
    tr_file_content_free(&after);
    /* All parts of a known set into a directory. */
    assert_int_equal(
        run(&session, "data", "convert", "mnist", "all", "--dir", TRIREME_SOURCE_DIR "/data", NULL), 0);
    assert_true(tr_file_exists("all/train.tfrecord") && tr_file_exists("all/test.tfrecord"));
    session_release(&session);
    int code = run(&session, "data", "convert", idx, "x", "--format", "jpeg", NULL);
    expect_error(2, "jpeg", &session, code);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eval),
        cmocka_unit_test(test_eval_refuses),
        cmocka_unit_test(test_a_damaged_checkpoint_is_told_of),
        cmocka_unit_test(test_predict_examples),
        cmocka_unit_test(test_predict_image_files),
        cmocka_unit_test(test_predict_texts),
        cmocka_unit_test(test_predict_numbers),
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_inspect_without_data),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_data_list_and_verify),
        cmocka_unit_test(test_data_show),
        cmocka_unit_test(test_data_convert),
    };
    return cmocka_run_group_tests(tests, make_networks, place_remove);
}
