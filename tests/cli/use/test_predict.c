/* predict for data sets: files of every form, ranges, several losses, tags of words; held against the data
 * that the test wrote itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>

#include "cli/use/animals.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "data/images/image.h"
#include "io/npy.h"
#include "support/files/npy.h"
#include "support/files/png.h"

static const char heads[] =
    "name: heads\n"
    "data: {train: {csv: {path: heads.csv, label: value, label_columns: [kind, size]}}}\n"
    "layers: [{dense: 4}]\n"
    "loss: [{kind: softmax_cross_entropy, outputs: 3}, {kind: mean_squared_error, outputs: 1}]\n"
    "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 5}\n";

static const char tags[] = "name: tags\n"
                           "data: {train: {text: {path: tags.tsv, tags: true, max_tokens: 4}}}\n"
                           "input: {classes: [det, noun, verb]}\n"
                           "layers: [{embedding: 8}, {dense: 3}]\n"
                           "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 60}\n";

static const char letters[] = "name: letters\n"
                              "data: {train: {corpus: {path: tags.tsv, unit: characters, window: 4}}}\n"
                              "layers: [{embedding: 4}, {dense: 99}]\n"
                              "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 2}\n";

static int make(void **state)
{
    if (animals_make(state) != 0) return -1;
    write_text("heads.csv", "x,kind,size\n1,0,2\n2,1,4\n3,2,6\n");
    write_text("heads.yaml", heads);
    write_text("tags.tsv", "the dog runs\t0 1 2\na cat sleeps now\t0 1 2 -\nthe cat runs\t0 1 2\n");
    write_text("tags.yaml", tags);
    write_text("letters.yaml", letters);
    expect_exit(0, "train", "heads.yaml");
    expect_exit(0, "train", "tags.yaml");
    expect_exit(0, "train", "letters.yaml");
    return 0;
}

/* ---- data sets ---- */

/* Of a table all rows come in their order, each with its own label, and the numbers of all forms are the
 * same. */
static void test_a_set_in_every_form(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "predict", "runs/animals", "--set-name", "test", "--output", "all.csv", NULL);
    expect_output(&session, code, "all.csv (120 examples, ");
    expect_exit(0, "predict", "runs/animals", "--set-name", "test", "-o", "all.npy");
    expect_exit(0, "predict", "runs/animals", "--set-name", "test", "-o", "all.jsonl");
    struct tr_file_content table = content_of("all.csv"), array = content_of("all.npy"),
                           objects = content_of("all.jsonl");
    struct tr_npy npy;
    assert_int_equal(tr_npy_parse("all.npy", (uint8_t *)array.data, array.size, &npy), TR_OK);
    assert_true(npy.rank == 2 && npy.shape[0] == ROWS && npy.shape[1] == 3 && npy.dtype == TR_DTYPE_F32);
    char *at = table.data, *object = objects.data;
    assert_string_equal(next_line(&at),
                        "example,class,probability,label,\"p_big, \"\"old\"\" dog\",p_cat,p_owl");
    for (int i = 0; i < ROWS; i++) {
        const char *name = i % 3 == 1 ? "\"big, \"\"old\"\" dog\"" : kind_of(i);
        int class = i % 3 == 0 ? 1 : i % 3 == 1 ? 0 : 2;
        char expected[256], *line = next_line(&at), *json = next_line(&object);
        float output[3];
        tr_json *document;
        memcpy(output, array.data + npy.offset + (size_t)i * sizeof output, sizeof output);
        snprintf(expected, sizeof expected, "%d,%s,", i, name);
        if (strncmp(line, expected, strlen(expected)) != 0) fail_msg("%s begins not with %s", line, expected);
        char *rest = line + strlen(expected);
        assert_true(strtof(rest, &rest) == output[class]);
        snprintf(expected, sizeof expected, ",%s,", name);
        assert_memory_equal(rest, expected, strlen(expected));
        rest += strlen(expected);
        for (int k = 0; k < 3; k++, rest++) assert_true(strtof(rest, &rest) == output[k]);
        assert_int_equal(tr_json_parse(json, strlen(json), "line", &document), TR_OK);
        const struct tr_json_value *root = tr_json_root(document);
        assert_int_equal(tr_json_integer_or(root, "example", -1), i);
        assert_int_equal(tr_json_integer_or(root, "class", -1), class);
        assert_int_equal(tr_json_integer_or(root, "label", -1), class);
        assert_string_equal(tr_json_text_or_empty(root, "label_name"), kind_of(i));
        assert_true((float)tr_json_number_or_nan(root, "probability") == output[class]);
        tr_json_destroy(&document);
    }
    assert_string_equal(at, "");
    assert_string_equal(object, "");
    tr_file_content_free(&table);
    tr_file_content_free(&array);
    tr_file_content_free(&objects);
}

/* A file by its name is read as the training data are, with or without what only training needs. */
static void test_a_file_by_its_name(void **state)
{
    (void)state;
    struct session session;
    write_text("bare.csv", "height,weight\n8,7\nNA,1\n");
    int code = run(&session, "predict", "runs/animals", "--data", "bare.csv", NULL);
    assert_non_null(strstr(session.text[0], "\ndata[1]: cat "));
    expect_output(&session, code, "data[0]: owl ");
    code = run(&session, "eval", "runs/animals", "--data", "animals.csv", NULL);
    expect_output(&session, code, "accuracy 1.0000, ");
    write_text("bad.csv", "height,weight,kind\n8,x,owl\n");
    expect_refusal("bad.csv:2:3: column \"weight\": \"x\" is not a number",
                   (const char *[]){"predict", "runs/animals", "--data", "bad.csv", NULL});
    write_text("plain.txt", "the dog\n");
    code = run(&session, "predict", "runs/tags", "--data", "plain.txt", NULL);
    expect_output(&session, code, "data[0]: the/det dog/noun\n");
    expect_refusal("gone.csv", (const char *[]){"predict", "runs/animals", "--data", "gone.csv", NULL});
    expect_refusal("says too little", (const char *[]){"eval", "runs/letters", "--data", "bad.csv", NULL});
}

static void test_ranges(void **state)
{
    (void)state;
    struct session session;
    expect_exit(0, "predict", "runs/animals", "--set-name", "test", "-n", "118-,7,0-99", "-o", "some.csv");
    struct tr_file_content table = content_of("some.csv");
    char *at = table.data;
    next_line(&at);
    for (int i = 0; i < 103; i++)
        assert_int_equal(atoi(next_line(&at)), i < 2 ? 118 + i : i == 2 ? 7 : i - 3);
    assert_string_equal(at, "");
    tr_file_content_free(&table);
    expect_exit(0, "predict", "runs/animals", "--set-name", "test", "-n", "118-,7,0-99", "-o", "some.npy");
    struct tr_file_content array = content_of("some.npy");
    struct tr_npy npy;
    assert_int_equal(tr_npy_parse("some.npy", (uint8_t *)array.data, array.size, &npy), TR_OK);
    assert_true(npy.rank == 2 && npy.shape[0] == 103 && npy.shape[1] == 3);
    tr_file_content_free(&array);
    int code = run(&session, "predict", "runs/animals", "--set-name", "test", NULL);
    assert_non_null(strstr(session.text[0], "test[119]: "));
    expect_output(&session, code, "test[0]: ");
    static const char *const wrong[][2] = {{"119-120", "no example 120; test has 120"},
                                           {"7-3", "write 3-7"},
                                           {"1,,2", "no range"},
                                           {"a", "no range"},
                                           {"-1", "no range"},
                                           {"1-2-3", "no range"},
                                           {"99999999999999999999", "no range"},
                                           {"1,", "no range"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char index[64];
        snprintf(index, sizeof index, "--index=%s", wrong[i][0]);
        expect_refusal(wrong[i][1],
                       (const char *[]){"predict", "runs/animals", "--set-name", "test", index, NULL});
    }
}

/* A run that fails leaves the old file and nothing beside it. */
static void test_a_failure_leaves_the_old_file(void **state)
{
    (void)state;
    struct session session;
    struct setup lines = {.input = "1,2\n3,4\nx,5\n"};
    write_text("kept.csv", "old\n");
    int code = run_with(&session, lines, "predict", "runs/animals", "-o", "kept.csv", NULL);
    expect_error(2, "standard input:3:1: field 0 \"x\" is not a number", &session, code);
    session_release(&session);
    expect_content("kept.csv", "old\n");
    DIR *here = opendir(".");
    for (struct dirent *entry; (entry = readdir(here));) assert_null(strstr(entry->d_name, ".tmp"));
    closedir(here);
    expect_refusal("nowhere/p.csv", (const char *[]){"predict", "runs/animals", "--set-name", "test", "-o",
                                                     "nowhere/p.csv", NULL});
}

/* Values without names: one, and two. */
static void test_values_without_names(void **state)
{
    (void)state;
    static const char *const titles[] = {"example,label,output", "example,label_0,label_1,output_0,output_1"};
    write_text("plain.csv", "1,2,3\n2,3,5\n3,1,4\n4,4,8\n");
    for (int i = 0; i < 2; i++) {
        char model[400];
        snprintf(
            model, sizeof model,
            "name: plain\ndata: {train: {csv: {path: plain.csv, label: value%s}}}\nlayers: [{dense: %d}]\n"
            "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 4, steps: 1}\n",
            i ? ", label_columns: [1, 2]" : "", i + 1);
        write_text("plain.yaml", model);
        expect_exit(0, "train", "plain.yaml", "--quiet", "--overwrite");
        expect_exit(0, "predict", "runs/plain", "--set-name", "train", "-o", "plain.out.csv");
        struct tr_file_content table = content_of("plain.out.csv");
        char *at = table.data;
        assert_string_equal(next_line(&at), titles[i]);
        assert_int_equal(strncmp(at, i ? "0,2,3," : "0,3,", i ? 6 : 4), 0);
        tr_file_content_free(&table);
    }
}

/* ---- several losses ---- */

static void test_several_losses(void **state)
{
    (void)state;
    struct session session;
    expect_exit(0, "predict", "runs/heads", "--set-name", "train", "-o", "heads.out.csv");
    struct tr_file_content table = content_of("heads.out.csv");
    char *at = table.data;
    assert_string_equal(next_line(&at),
                        "example,class_1,probability_1,label_kind,label_size,p_1_0,p_1_1,p_1_2,size");
    for (int i = 0; i < 3; i++) {
        int example, class, best = 0;
        float probability, kind, size, p[3], value, sum = 0;
        assert_int_equal(sscanf(next_line(&at), "%d,%d,%f,%f,%f,%f,%f,%f,%f", &example, &class, &probability,
                                &kind, &size, &p[0], &p[1], &p[2], &value),
                         9);
        for (int k = 0; k < 3; k++) {
            sum += p[k];
            if (p[k] > p[best]) best = k;
        }
        assert_true(example == i && class == best && probability == p[best]);
        assert_true(kind == (float)i && size == (float)(2 * i + 2));
        assert_true(sum > 0.9999F && sum < 1.0001F);
    }
    tr_file_content_free(&table);
    int code = run(&session, "predict", "runs/heads", "--set-name", "train", "-n", "1", NULL);
    assert_non_null(strstr(session.text[0], "; "));
    expect_output(&session, code, "(in truth 1.0000 4.0000)");
}

/* ---- tags ---- */

static void test_tags(void **state)
{
    (void)state;
    struct session session;
    int code =
        run(&session, "predict", "runs/tags", "--text", "the dog sleeps", "-x", "a cat runs the dog", NULL);
    expect_output(&session, code, "the/det dog/noun sleeps/verb\na/det cat/noun runs/verb the/det dog/-\n");
    struct setup lines = {.input = "a  dog\n\nthe cat runs a cat\n"};
    code = run_with(&session, lines, "predict", "runs/tags", "-o", "lines.conll", NULL);
    expect_output(&session, code, "(2 examples, ");
    expect_content("lines.conll", "a\tdet\ndog\tnoun\n\nthe\tdet\ncat\tnoun\nruns\tverb\na\tdet\ncat\t-\n\n");
    expect_exit(0, "predict", "runs/tags", "--set-name", "train", "-n", "1-2", "-o", "set.conll");
    struct tr_file_content columns = content_of("set.conll");
    static const char expected[] = "a\tdet\tdet\ncat\tnoun\tnoun\nsleeps\tverb\tverb\nnow\t-\t";
    assert_memory_equal(columns.data, expected, strlen(expected));
    assert_non_null(strstr(columns.data, "\n\nthe\tdet\tdet\n"));
    tr_file_content_free(&columns);
    expect_exit(0, "predict", "runs/tags", "--set-name", "train", "-n", "0", "-o", "set.csv");
    columns = content_of("set.csv");
    char *at = columns.data;
    assert_string_equal(next_line(&at), "example,token,word,class,probability,label,p_det,p_noun,p_verb");
    assert_int_equal(strncmp(next_line(&at), "0,0,the,det,", 12), 0);
    assert_int_equal(strncmp(next_line(&at), "0,1,dog,noun,", 13), 0);
    tr_file_content_free(&columns);
    /* An array of the tokens that are read, of all texts together, whose number is known at the end only. */
    struct tr_npy npy;
    expect_exit(0, "predict", "runs/tags", "--set-name", "train", "-o", "set.npy");
    columns = content_of("set.npy");
    assert_int_equal(tr_npy_parse("set.npy", (uint8_t *)columns.data, columns.size, &npy), TR_OK);
    assert_true(npy.rank == 2 && npy.shape[0] == 3 + 4 + 3 && npy.shape[1] == 3);
    assert_int_equal(columns.size, npy.offset + sizeof(float[10][3]));
    tr_file_content_free(&columns);
    /* Of a text that is too long all words are there, and tags of those that are read. */
    code = run(&session, "predict", "runs/tags", "-x", "a cat runs the dog", "--json", NULL);
    expect_output(&session, code,
                  "\"words\":[\"a\",\"cat\",\"runs\",\"the\",\"dog\"],"
                  "\"tags\":[\"det\",\"noun\",\"verb\",\"det\"],\"probabilities\":[");
    code = run(&session, "predict", "runs/tags", "-x", "a \"cat\"", "--json", NULL);
    expect_output(&session, code, "\"words\":[\"a\",\"\\\"cat\\\"\"],\"tags\":[\"det\",");
}

/* Images of colours, of which several are read at a time: each has the answer that it has alone. */
static void test_pictures_of_colours(void **state)
{
    (void)state;
    static uint8_t pixels[4][4 * 3 * 3];
    static const uint8_t labels[4] = {0, 1, 0, 1};
    struct session session;
    char alone[3][256], all[800];
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 36; i++) pixels[n][i] = (uint8_t)(n * 60 + i * 37 % 71);
    npy_write("colours.npy", "|u1", "4, 4, 3, 3", pixels, sizeof pixels);
    npy_write("names.npy", "|u1", "4,", labels, sizeof labels);
    write_text("colours.yaml",
               "name: colours\ndata: {train: {npy: {features: colours.npy, labels: names.npy}}}\n"
               "layers: [{flatten: null}, {dense: 2}]\noptimizer: {rule: sgd, rate: 0.01}\n"
               "train: {batch: 4, steps: 3}\n");
    expect_exit(0, "train", "colours.yaml", "--quiet");
    for (int n = 0; n < 3; n++) {
        char name[24];
        uint8_t *png;
        size_t bytes;
        snprintf(name, sizeof name, "c%d.png", n);
        assert_int_equal(tr_image_encode(pixels[n], (struct tr_image_size){4, 3, 3}, &png, &bytes), TR_OK);
        assert_int_equal(tr_file_write_atomic(NULL, name, png, bytes), TR_OK);
        tr_free(png);
        int code = run(&session, "predict", "runs/colours", "--image", name, NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        snprintf(alone[n], sizeof alone[n], "%s", session.text[0]);
        session_release(&session);
    }
    assert_string_not_equal(alone[0] + 7, alone[1] + 7); /* behind the name */
    snprintf(all, sizeof all, "%s%s%s", alone[0], alone[1], alone[2]);
    int code = run(&session, "predict", "runs/colours", "--image", "c0.png", "--image", "c1.png", "--image",
                   "c2.png", NULL);
    assert_int_equal(code, 0);
    assert_string_equal(session.text[0], all);
    session_release(&session);
    struct setup lines = {.input = "c0.png\nc1.png\nc2.png\n"};
    code = run_with(&session, lines, "predict", "runs/colours", NULL);
    assert_int_equal(code, 0);
    assert_string_equal(session.text[0], all);
    session_release(&session);
}

static void write_picture(const char *name, int depth, uint16_t from)
{
    uint16_t values[16];
    size_t size;
    for (int i = 0; i < 16; i++) values[i] = (uint16_t)(from + i);
    uint8_t *file = png_of(PNG_GREY, depth, 4, 4, values, &size);
    assert_int_equal(tr_file_write_atomic(NULL, name, file, size), TR_OK);
    free(file);
}

/* Pictures of 16 bits that differ in their low bytes alone are told apart: as a set, as files by name, and by
   the description of their data. */
static void test_pictures_of_16_bits(void **state)
{
    (void)state;
    struct session session;
    char name[32];
    for (int i = 0; i < 3; i++)
        assert_int_equal(mkdir((const char *[]){"cells", "cells/dark", "cells/light"}[i], 0700), 0);
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "cells/%s/%d.png", i % 2 ? "light" : "dark", i);
        write_picture(name, 16, (uint16_t)(i % 2 ? 200 + i : 20 + i));
    }
    write_text("cells.yaml", "name: cells\ndata: {train: {folder: cells}, test: {folder: {path: cells}}}\n"
                             "input: {scale: 1/256}\nlayers: [{dense: 2}]\n"
                             "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 12, steps: 60}\n");
    expect_exit(0, "train", "cells.yaml");
    int code = run(&session, "eval", "runs/cells", NULL);
    expect_output(&session, code, "accuracy 1.0000");
    write_picture("dim.png", 16, 30);
    write_picture("bright.png", 16, 210);
    code = run(&session, "predict", "runs/cells", "--image", "dim.png", "--image", "bright.png", NULL);
    assert_non_null(strstr(session.text[0], "dim.png: dark "));
    expect_output(&session, code, "bright.png: light ");
    write_picture("byte.png", 8, 0); /* 0 to 15, widened: up to 3855 */
    code = run(&session, "predict", "runs/cells", "--image", "byte.png", NULL);
    expect_output(&session, code, "byte.png: light ");
    write_picture("inverse.png", 16, 65500); /* 20 to 35 */
    code = run(&session, "predict", "runs/cells", "--image", "inverse.png", "--invert", NULL);
    expect_output(&session, code, "inverse.png: dark ");
    code = run(&session, "predict", "runs/cells", "--image", "dim.png", "--invert", NULL);
    expect_output(&session, code, "dim.png: light ");
    code = run(&session, "data", "show", "{folder: cells}", NULL);
    expect_output(&session, code, "12 examples: images of numbers 4x4x1, 2 classes");
    for (int i = 0; i < 2; i++) assert_int_equal(mkdir((const char *[]){"scenes", "masks"}[i], 0700), 0);
    write_picture("scenes/1.png", 16, 1000);
    write_picture("masks/1.png", 8, 0);
    code = run(&session, "data", "show", "{folder: {path: scenes, masks: masks, classes: 16}}", NULL);
    expect_output(&session, code, "1 example: images of numbers 4x4x1, a label for each pixel, 16 classes");
    expect_refusal("takes numbers", (const char *[]){"predict", "runs/cells", "--text", "dim.png", NULL});
}

/* ---- masks ---- */

enum { SIDE = 4, SCENES = 8 };

/* Pixels of a scene: bright ones are of class 1. */
static bool is_bright(int scene, int pixel)
{
    return (scene * 7 + pixel * 5) % 11 < 5 + scene % 2;
}

static void write_scene(const char *name, int scene, bool mask)
{
    uint16_t values[SIDE * SIDE];
    size_t size;
    for (int i = 0; i < SIDE * SIDE; i++)
        values[i] = mask                  ? is_bright(scene, i)
                    : is_bright(scene, i) ? (uint16_t)(200 + i)
                                          : (uint16_t)(10 + i);
    uint8_t *file = png_of(PNG_GREY, 8, SIDE, SIDE, values, &size);
    assert_int_equal(tr_file_write_atomic(NULL, name, file, size), TR_OK);
    free(file);
}

static void expect_mask(const char *path, int scene)
{
    struct tr_image_size size;
    uint8_t *numbers;
    if (tr_image_read_numbers(path, &size, &numbers) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(size.height, SIDE);
    assert_int_equal(size.width, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (numbers[i] != is_bright(scene, i)) fail_msg("%s: pixel %d has class %d", path, i, numbers[i]);
    tr_free(numbers);
}

/* A PNG for each image, of its name, or with the number of its example; and no image's mask in another one's
   place. */
static void test_masks(void **state)
{
    static const char *const folders[] = {"bright", "bright-masks", "east", "west", "east/up.north"};
    struct session session;
    char name[64];
    (void)state;
    for (int i = 0; i < 5; i++) assert_int_equal(mkdir(folders[i], 0700), 0);
    for (int i = 0; i < SCENES; i++) {
        snprintf(name, sizeof name, "bright/%d.png", i);
        write_scene(name, i, false);
        snprintf(name, sizeof name, "bright-masks/%d.png", i);
        write_scene(name, i, true);
    }
    write_text("bright.yaml",
               "name: bright\ndata: {train: {folder: {path: bright, masks: bright-masks, classes: 2}}}\n"
               "input: {scale: 1/255}\nlayers: [{conv: {filters: 2, kernel: 1}}]\nloss: {per: pixel}\n"
               "optimizer: {rule: adam, rate: 0.3}\ntrain: {batch: 8, steps: 60}\n");
    expect_exit(0, "train", "bright.yaml");
    write_scene("east/a.b.png", 1, false);
    write_scene("west/c.png", 2, false);
    write_scene("east/up.north/plain", 3, false);
    expect_exit(0, "predict", "runs/bright", "--image", "east/a.b.png", "--image", "west/c.png", "--image",
                "east/up.north/plain", "--masks", "named");
    expect_mask("named/a.b.png", 1);
    expect_mask("named/c.png", 2);
    expect_mask("named/plain.png", 3);
    expect_exit(0, "predict", "runs/bright", "--set-name", "train", "-n", "3-4", "--masks", "numbered");
    expect_mask("numbered/000003.png", 3);
    expect_mask("numbered/000004.png", 4);
    assert_false(tr_file_exists("numbered/000000.png"));
    int code = run(&session, "predict", "runs/bright", "--set-name", "train", "-n", "1", "--json", NULL);
    int bright = 0;
    for (int i = 0; i < SIDE * SIDE; i++) bright += is_bright(1, i);
    snprintf(name, sizeof name, "\"pixels\":[%d,%d],\"accuracy\":1}", SIDE * SIDE - bright, bright);
    expect_output(&session, code, name);
    /* Another run may write them again; one does not write the same mask for two images. */
    write_scene("west/a.b.jpg.png", 4, false);
    write_scene("west/a.b.png", 5, false);
    code = run(&session, "predict", "runs/bright", "--image", "east/a.b.png", "--image", "west/c.png",
               "--image", "west/a.b.png", "--masks", "named", NULL);
    assert_int_equal(code, 2);
    if (!strstr(session.text[1], "\"west/a.b.png\"")) session_show(&session);
    assert_non_null(strstr(session.text[1], "\"west/a.b.png\""));
    assert_non_null(strstr(session.text[1], "\"named/a.b.png\""));
    session_release(&session);
    expect_mask("named/a.b.png", 1);
    struct setup lines = {.input = "west/c.png\nwest/a.b.jpg.png\nwest/c.png\n"};
    code = run_with(&session, lines, "predict", "runs/bright", "--masks", "named", NULL);
    assert_int_equal(code, 2);
    session_release(&session);
    expect_mask("named/a.b.jpg.png", 4);
    /* An error on the way is told, not that it ended there. */
    assert_int_equal(mkdir("taken", 0700) | mkdir("taken/000001.png", 0700), 0);
    code = run(&session, "predict", "runs/bright", "--set-name", "train", "--masks", "taken", NULL);
    assert_int_not_equal(code, 0);
    assert_non_null(strstr(session.text[1], "taken/000001.png"));
    assert_null(strstr(session.text[1], "were ended"));
    session_release(&session);
    expect_mask("taken/000000.png", 0);
    expect_refusal("answers for whole examples",
                   (const char *[]){"predict", "runs/cells", "--image", "dim.png", "--masks", "none", NULL});
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *part, *arguments[10];
    } mistakes[] = {
        {".csv, .npy, .jsonl or .conll", {"predict", "runs/animals", "--set-name", "test", "-o", "x.txt"}},
        {"answers for whole examples", {"predict", "runs/animals", "--set-name", "test", "-o", "x.conll"}},
        {"one kind of input",
         {"predict", "runs/animals", "--set-name", "test", "--values", "1,2", "-o", "x.csv"}},
        {"--json: is for standard output",
         {"predict", "runs/animals", "--set-name", "test", "--json", "-o", "x.csv"}},
        {"add --set-name", {"predict", "runs/animals", "--values", "1,2", "-n", "0"}},
        {"trireme generate runs/letters", {"predict", "runs/letters", "--text", "the"}},
        {"trireme generate runs/letters", {"predict", "runs/letters", "--set-name", "train"}},
        {"takes numbers", {"predict", "runs/animals", "--text", "the"}},
        {"--values:1:1: field 0 \"a\" is not a number", {"predict", "runs/animals", "--values", "a,b"}},
        {"takes texts", {"predict", "runs/tags", "--values", "1"}},
        {"is missing, and has no replacement", {"predict", "runs/heads", "--values", "NA"}},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        expect_refusal(mistakes[i].part, mistakes[i].arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_in_every_form),
        cmocka_unit_test(test_a_file_by_its_name),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_pictures_of_colours),
        cmocka_unit_test(test_a_failure_leaves_the_old_file),
        cmocka_unit_test(test_values_without_names),
        cmocka_unit_test(test_several_losses),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_pictures_of_16_bits),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make, place_remove);
}
