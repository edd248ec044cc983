/* Which sources go together, and what becomes of them: names, texts, images of 16 bits, what has no numbers,
 * and what a join knows of its sources.
 */
#include "base/options/config.h"
#include "data/support.h"
#include "data/tables/join.h"
#include "support/files/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define JOIN(...) "{join: {sources: {" __VA_ARGS__ "}}}"
#define NUMBERS   "n: {csv: {path: numbers, label: none}}"

static void write_png(const char *name, bool wide)
{
    const uint16_t pixels[4] = {0, 1000, 40000, 65535};
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = 2,
                       .height = 2,
                       .format = wide ? PNG_FORMAT_LINEAR_Y : PNG_FORMAT_GRAY};
    if (!png_image_write_to_file(&image, test_path(name), 0, pixels, 0, NULL)) fail_msg("%s", image.message);
}

static int make_files(void **state)
{
    (void)state;
    write_text("numbers", "1,2\n3,4\n");
    write_text("classes", "a,0\nb,1\n");
    write_text("texts", "good film\t1\nbad\t0\n");
    write_text("running", "a running text without an end");
    npy_write(test_path("images.npy"), "|u1", "2, 2, 2", (const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
    mkdir(test_path("wide"), 0700);
    mkdir(test_path("small"), 0700);
    write_png("wide/a.png", true);
    write_png("wide/b.png", true);
    write_png("small/a.png", false);
    write_png("small/b.png", false);
    write_text("names", "a.png\nb.png\n");
    return 0;
}

#define LONGEST "abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_012345678"

static void names_are_checked(void **state)
{
    static const char *const bad[] = {"a/b", "a.b", "\"a b\"", "\"a\\tb\"", "input"};
    char description[256];
    (void)state;
    _Static_assert(sizeof LONGEST == TR_NAMED_SHAPE_NAME, "the longest name");
    snprintf(description, sizeof description, JOIN(NUMBERS ", %s: {npy: {features: images.npy}}"), LONGEST);
    tr_source *source = must_open(description);
    assert_string_equal(source->parts->part[0].name, LONGEST);
    tr_source_close(&source);
    snprintf(description, sizeof description, JOIN(NUMBERS ", %s: {npy: {features: images.npy}}"),
             LONGEST "f");
    expect_refusal(description, TR_EINVAL,
                   "\"" LONGEST "f\" cannot be the name of a source: give one of fewer than 64 "
                   "characters");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(description, sizeof description, JOIN(NUMBERS ", %s: {npy: {features: images.npy}}"),
                 bad[i]);
        expect_refusal(description, TR_EINVAL, "cannot be the name of a source");
    }
}

static void some_do_not_go_together(void **state)
{
    static const struct {
        const char *description;
        tr_status status;
        const char *says;
    } cases[] = {
        {JOIN("t: {text: {path: texts}}, u: {text: {path: texts}}, v: {text: {path: texts}}"),
         TR_EUNSUPPORTED, "sources \"t\", \"u\" and \"v\" are texts; two can be joined"},
        {JOIN("t: {text: {path: texts}}, p: {npy: {features: images.npy}}"), TR_EUNSUPPORTED,
         "source \"t\" has texts and source \"p\" images; a text can be joined with numbers"},
        {JOIN("r: {corpus: {path: running, window: 2}}, " NUMBERS), TR_EUNSUPPORTED,
         "source \"r\" is running text, which has no examples to join"},
        {JOIN("t: {text: {path: texts}}, only: {csv: {path: classes, skip_columns: 0, label_columns: 1}}"),
         TR_EINVAL, "sources \"t\" and \"only\" both have labels"},
        {"{join: {sources: {t: {text: {path: texts}}, only: {csv: {path: classes, skip_columns: 0, "
         "label_columns: 1}}}, labels: t}}",
         TR_EINVAL, "beside the text \"t\" there are no numbers and no other text"},
        {"{join: {sources: {a: {csv: {path: classes, skip_columns: 0, label_columns: 1}}, b: {csv: {path: "
         "classes, skip_columns: 0, label_columns: 1}}}, labels: a}}",
         TR_EINVAL, "an example of the joined sources has 0 numbers; 1 to 2147483647 are taken"},
        {JOIN("t: {text: {path: texts, labels: false}}, u: {text: {path: texts}}, v: {text: {path: texts, "
              "labels: false}}"),
         TR_EFORMAT, "labels"},
        {JOIN("w: {folder: {path: wide, table: names, column: 0}}, " NUMBERS), TR_EUNSUPPORTED,
         "source \"w\" has images of 16 bits, which cannot be joined; set its depth: 8"},
        {JOIN(NUMBERS ", w: {folder: {path: wide, table: names, column: 0}}"), TR_EUNSUPPORTED,
         "source \"w\" has images of 16 bits"},
        {JOIN("a: {csv: {path: numbers, label: none}}, b: {csv: {path: numbers, label: none}}, c: {csv: "
              "{path: numbers, label: none}}, d: {csv: {path: numbers, label: none}}, e: {csv: {path: "
              "numbers, label: none}}"),
         TR_EINVAL, "wants two to 4 sources"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refusal(cases[i].description, cases[i].status, cases[i].says);
}

/* One slow source makes a slow join. */
static void a_join_knows_its_sources(void **state)
{
    (void)state;
    tr_source *source = must_open("{join: {sources: {c: {csv: {path: numbers}}, p: {npy: {features: "
                                  "images.npy}}, d: {csv: {path: numbers, label: value}}}, labels: c}}");
    assert_false(source->info.slow);
    assert_int_equal(source->unpacked,
                     2 * 2 * 2 * sizeof(float)); /* of the tables; arrays lie in their file */
    tr_source_close(&source);
    source = must_open(JOIN("p: {folder: {path: small, table: names, column: 0}}, " NUMBERS));
    assert_true(source->info.slow);
    tr_source_close(&source);
    source = must_open("{join: {sources: {a: {csv: {path: numbers, label: none}}, b: {csv: {path: numbers, "
                       "label: none}}, c: {csv: {path: numbers, label: none}}, d: {csv: {path: classes, "
                       "skip_columns: 0, label_columns: 1}}}}}");
    float row[6];
    int32_t label;
    int64_t length;
    assert_int_equal(tr_source_read(source, 1, row, 6, &length, &label), TR_OK);
    assert_int_equal(length, 6);
    assert_memory_equal(row, ((const float[]){3, 4, 3, 4, 3, 4}), sizeof row);
    assert_int_equal(label, 1);
    tr_source_close(&source);
}

static tr_config *parse(const char *description)
{
    tr_config *node;
    assert_int_equal(tr_config_parse(description, strlen(description), "here", &node), TR_OK);
    return node;
}

/* Descriptions are checked before any file is read. */
static void descriptions_are_checked(void **state)
{
    static const struct {
        const char *description, *says; /* NULL: good */
    } cases[] = {
        {JOIN("a: {csv: {path: none}}, b: {csv: {path: none}}"), NULL},
        {JOIN("a: {csv: {path: none}}"), "wants two to 4 sources"},
        {JOIN("a: {csv: {path: none}}, b: {csv: {label: none}}"), "\"path\" is missing"},
        {JOIN("a: {csv: {label: none}}, b: {csv: {path: none}}"), "\"path\" is missing"},
        {"{join: {sources: {a: {csv: {path: none}}, b: {csv: {path: none}}}, labels: b}}", NULL},
        {"{join: {sources: {a: {csv: {path: none}}, b: {csv: {path: none}}}, labels: c}}",
         "labels: source \"c\""},
        {"{join: {sources: {photo: {csv: {path: none}}, b: {csv: {path: none}}}, labels: phot}}",
         "did you mean \"photo\"?"},
        {"{join: {labels: c}}", "\"sources\" is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *node = parse(cases[i].description);
        const tr_status status = tr_source_check_config(node);
        if (status != (cases[i].says ? TR_EINVAL : TR_OK) ||
            (status != TR_OK && !strstr(tr_error_message(), cases[i].says)))
            fail_msg("%s: %s", cases[i].description, tr_error_message());
        tr_config_destroy(&node);
    }
}

static void names_are_known_without_files(void **state)
{
    struct tr_source_parts parts = {.count = 3};
    (void)state;
    tr_config *node = parse(JOIN("first: {csv: {path: none}}, second: {csv: {path: none}}"));
    assert_int_equal(tr_join_names(node, &parts), TR_OK);
    assert_int_equal(parts.count, 2);
    assert_string_equal(parts.part[0].name, "first");
    assert_string_equal(parts.part[1].name, "second");
    tr_config_destroy(&node);
    node = parse("{csv: {path: none}}");
    assert_int_equal(tr_join_names(node, &parts), TR_OK);
    assert_int_equal(parts.count, 0);
    tr_config_destroy(&node);
    node = parse("{join: {labels: a}}");
    assert_int_equal(tr_join_names(node, &parts), TR_EINVAL);
    tr_config_destroy(&node);
    node = parse(JOIN("a: {csv: {path: none}}"));
    assert_int_equal(tr_join_names(node, &parts), TR_EINVAL);
    tr_config_destroy(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(some_do_not_go_together),
        cmocka_unit_test(a_join_knows_its_sources),
        cmocka_unit_test(descriptions_are_checked),
        cmocka_unit_test(names_are_known_without_files),
    };
    return cmocka_run_group_tests_name("data.join_parts", tests, make_files, NULL);
}
