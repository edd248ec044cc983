/* PNG files of 16 bits keep them: a folder, archives and masks beside them give the weights that an array of
 * the same values gives, which is read by another reader; the files are written without libpng
 * (support/files/png.h).
 */
#include "refuse.h"
#include "support/files/npy.h"
#include "support/files/png.h"
#include "support/training.h"

#include "base/alloc.h"
#include "data/source.h"
#include "io/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

enum { COUNT = 24, CLASSES = 3, EACH = COUNT / CLASSES, HEIGHT = 6, WIDTH = 5, PIXELS = HEIGHT * WIDTH };

static uint16_t value[COUNT][PIXELS];

static void write_bytes(const char *name, const void *data, size_t size)
{
    must_train(tr_file_write_atomic(NULL, scratch_in(name), data, size));
}

/* Image `n` as a file: its values shifted to the right. */
static void write_picture(const char *name, int n, int depth, int shift)
{
    uint16_t shifted[PIXELS];
    size_t size;
    for (int k = 0; k < PIXELS; k++) shifted[k] = (uint16_t)(value[n][k] >> shift);
    uint8_t *file = png_of(PNG_GREY, depth, HEIGHT, WIDTH, shifted, &size);
    write_bytes(name, file, size);
    free(file);
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(scratch_in(name), 0700), 0);
}

static int make_place(void **state)
{
    uint8_t class[COUNT], mask[COUNT][PIXELS];
    char name[64];
    scratch_place_make(state);
    static const char *const folders[] = {"deep",   "deep/a", "deep/b", "deep/c", "high",  "high/a",
                                          "high/b", "high/c", "scenes", "masks",  "mixed", "mixed/a"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) make_folder(folders[i]);
    static struct {
        uint8_t bytes[1 << 16];
        size_t size;
    } tar;
    for (int n = 0; n < COUNT; n++) {
        class[n] = (uint8_t)(n / EACH);
        /* Low bytes differ, and decide as much as high ones: a reader that drops them is found. */
        for (int k = 0; k < PIXELS; k++) value[n][k] = (uint16_t)((n / EACH) * 9000 + n * 4099 + k * 2521);
        for (int k = 0; k < PIXELS; k++) mask[n][k] = (uint8_t)((n + k / 4) % CLASSES);
        snprintf(name, sizeof name, "deep/%c/%02d.png", 'a' + class[n], n);
        write_picture(name, n, 16, 0);
        snprintf(name, sizeof name, "high/%c/%02d.png", 'a' + class[n], n);
        write_picture(name, n, 8, 8);
        snprintf(name, sizeof name, "scenes/%02d.png", n);
        write_picture(name, n, 16, 0);
        uint16_t numbers[PIXELS];
        size_t size;
        for (int k = 0; k < PIXELS; k++) numbers[k] = mask[n][k];
        uint8_t *file = png_of(PNG_GREY, 8, HEIGHT, WIDTH, numbers, &size);
        snprintf(name, sizeof name, "masks/%02d.png", n);
        write_bytes(name, file, size);
        free(file);
        file = png_of(PNG_GREY, 16, HEIGHT, WIDTH, value[n], &size);
        for (int member = 0; member < 2; member++) {
            char text[8];
            snprintf(name, sizeof name, "%02d.%s", n, member == 0 ? "png" : "cls");
            snprintf(text, sizeof text, "%d", class[n]);
            const size_t bytes = member == 0 ? size : strlen(text);
            must_train(tr_tar_header("some", name, bytes, tar.bytes + tar.size));
            memcpy(tar.bytes + tar.size + TR_TAR_BLOCK, member == 0 ? (const void *)file : text, bytes);
            tar.size += TR_TAR_BLOCK + bytes + tr_tar_padding(bytes);
        }
        free(file);
    }
    write_bytes("deep.tar", tar.bytes, tar.size + 2 * TR_TAR_BLOCK);
    write_picture("mixed/a/1.png", 0, 16, 0);
    write_picture("mixed/a/2.png", 1, 8, 8);
    npy_write(scratch_in("values.npy"), "<u2", "24, 6, 5, 1", value, sizeof value);
    npy_write(scratch_in("classes.npy"), "|u1", "24,", class, sizeof class);
    npy_write(scratch_in("masks.npy"), "|u1", "24, 6, 5", mask, sizeof mask);
    uint16_t widened[COUNT][PIXELS];
    for (int n = 0; n < COUNT; n++)
        for (int k = 0; k < PIXELS; k++) widened[n][k] = (uint16_t)((value[n][k] >> 8) * 257);
    npy_write(scratch_in("widened.npy"), "<u2", "24, 6, 5, 1", widened, sizeof widened);
    static const char model[] = "name: deep\n"
                                "data: {train: {folder: deep}}\n"
                                "layers: [{conv: {filters: 3, kernel: 3, padding: same}}, {dense: 3}]\n"
                                "optimizer: {rule: adam, rate: 0.05}\n"
                                "train: {batch: 8, microbatches: 2, steps: 12}\n";
    write_bytes("deep.yaml", model, strlen(model));
    return 0;
}

static void run(struct outcome *out, const char *const *set)
{
    struct job job;
    job_begin(&job, scratch_in("deep.yaml"));
    job.settings.journal = "";
    for (; *set; set++) job_set(&job, *set);
    job_outcome(&job, out);
}

#define RUN(out, ...) run(out, (const char *const[]){__VA_ARGS__, NULL})

#define ARRAYS(features, labels)                                                                             \
    "data={train: {npy: {features: " features ", labels: " labels                                            \
    "}}, validation: {npy: {features: " features ", labels: " labels "}}}"
#define FOLDER(options) "data={train: {folder: {" options "}}, validation: {folder: {" options "}}}"
#define EVALUATED       "train.evaluate_every=4"

static void expect_equal(const struct outcome *expected, const struct outcome *got, const char *how)
{
    expect_same(expected, got, how);
    assert_true(got->evaluations > 0 && got->evaluated_loss == expected->evaluated_loss);
}

static void test_one_hash(void **state)
{
    (void)state;
    struct outcome expected, got;
    RUN(&expected, ARRAYS("values.npy", "classes.npy"), EVALUATED, "input={scale: 1/65535}");
    RUN(&got, FOLDER("path: deep"), EVALUATED);
    expect_equal(&expected, &got, "a folder");
    RUN(&got, FOLDER("path: deep, memory: true"), EVALUATED, "input={scale: 1/65535}");
    expect_equal(&expected, &got, "a folder in memory");
    RUN(&got, FOLDER("path: deep, depth: 16, channels: 1"), EVALUATED);
    expect_equal(&expected, &got, "a folder of given depth");
    RUN(&got, "data={train: {shards: deep.tar}, validation: {shards: {path: deep.tar}}}", EVALUATED);
    expect_equal(&expected, &got, "an archive");
    RUN(&expected, ARRAYS("values.npy", "classes.npy"), EVALUATED,
        "input={scale: 1/65535, pad: 1, flip: true, rotate: 10, brightness: 0.3, mixup: 0.4}");
    RUN(&got, FOLDER("path: deep"), EVALUATED,
        "input={pad: 1, flip: true, rotate: 10, brightness: 0.3, mixup: 0.4}");
    expect_equal(&expected, &got, "augmented");
}

static void test_unpacked(void **state)
{
    (void)state;
    struct outcome expected, got;
    struct job job;
    char cache[SCRATCH_PATH];
    RUN(&expected, FOLDER("path: deep"), EVALUATED);
    for (int turn = 0; turn < 2; turn++) {
        job_begin(&job, scratch_in("deep.yaml"));
        job.settings.journal = "";
        job.settings.data_cache = scratch_join(cache, scratch_place, "cache");
        job_set(&job, FOLDER("path: deep, memory: true"));
        job_set(&job, EVALUATED);
        job_outcome(&job, &got);
        expect_equal(&expected, &got, turn == 0 ? "unpacked" : "from the cache");
    }
}

static void test_masks(void **state)
{
    (void)state;
    static const char layers[] = "layers=[{conv: {filters: 3, kernel: 3, padding: same}}]";
    struct outcome expected, got;
    RUN(&expected, ARRAYS("values.npy", "masks.npy"), EVALUATED, layers, "loss={per: pixel}",
        "input={scale: 1/65535, pad: 1, rotate: 20, flip: true}");
    RUN(&got, FOLDER("path: scenes, masks: masks, classes: 3"), EVALUATED, layers, "loss={per: pixel}",
        "input={pad: 1, rotate: 20, flip: true}");
    expect_equal(&expected, &got, "masks");
    RUN(&got, FOLDER("path: scenes, masks: masks, classes: 3, memory: true"), EVALUATED, layers,
        "loss={per: pixel}", "input={pad: 1, rotate: 20, flip: true}");
    expect_equal(&expected, &got, "masks in memory");
}

static void test_depths(void **state)
{
    (void)state;
    struct outcome expected, got;
    RUN(&expected, FOLDER("path: high"), EVALUATED);
    RUN(&got, FOLDER("path: deep, depth: 8"), EVALUATED);
    expect_equal(&expected, &got, "the high bytes");
    RUN(&expected, ARRAYS("widened.npy", "classes.npy"), EVALUATED, "input={scale: 1/65535}");
    RUN(&got, FOLDER("path: high, depth: 16"), EVALUATED);
    expect_equal(&expected, &got, "bytes, widened");
    RUN(&got, FOLDER("path: mixed, depth: 16"), "layers=[{dense: 2}]");
    must_train(got.status);
}

static void expect_refused(const struct outcome *got, const char *words, const char *more)
{
    if (got->status == TR_OK || !strstr(got->message, words) || !strstr(got->message, more))
        fail_msg("status %d, \"%s\"", (int)got->status, got->message);
}

static void test_refused(void **state)
{
    (void)state;
    struct outcome got;
    RUN(&got, FOLDER("path: mixed"));
    expect_refused(&got, "mixed/a/2.png has 8 bits a value, and ", "mixed/a/1.png has 16; set depth: 16");
    RUN(&got, FOLDER("path: deep, depth: 12"));
    expect_refused(&got, "depth is 12", "give 8, 16");
    RUN(&got, "data={train: {shards: {path: deep.tar, depth: 4}}}");
    expect_refused(&got, "shards: depth is 4", "give 8, 16");
    RUN(&got,
        "data={train: {join: {sources: {photo: {folder: deep}, facts: {npy: {features: classes.npy}}}}}}",
        "layers=[{dense: {units: 3, from: facts}}]");
    expect_refused(&got, "\"photo\" has images of 16 bits", "depth: 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_hash), cmocka_unit_test(test_unpacked),
                                       cmocka_unit_test(test_masks), cmocka_unit_test(test_depths),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
