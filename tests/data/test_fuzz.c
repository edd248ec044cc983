/* Every parser of data files against damaged input: any status is fine, a crash is not, and what is accepted
 * can be read in full and keeps its promises. The damage is the same in every run.
 *
 *     test_data_fuzz [rounds per parser]
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "data/example.h"
#include "data/image.h"
#include "data/inflate.h"
#include "data/support.h"
#include "data/tar.h"
#include "data/vocabulary.h"
#include "mutate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEED_MAX 4096

static uint32_t rounds = 3000;

struct seed {
    char data[SEED_MAX];
    size_t size;
};

static struct seed seed_of(const void *data, size_t size)
{
    struct seed seed = {.size = size};
    assert_true(size <= SEED_MAX);
    memcpy(seed.data, data, size);
    return seed;
}

static struct seed packed_seed(struct seed plain, int window_bits)
{
    struct bytes packed = pack(plain.data, plain.size, window_bits);
    struct seed seed = seed_of(packed.data, packed.size);
    free(packed.data);
    return seed;
}

/* Files in memory, which are faster than those on a disk: name[i] is a path to file i. */
static int descriptor[2];
static char name[2][32];

static int make_files(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        descriptor[i] = memfd_create("fuzz", 0);
        if (descriptor[i] < 0) return 1;
        snprintf(name[i], sizeof name[i], "/proc/self/fd/%d", descriptor[i]);
    }
    return 0;
}

static void set_file(int i, const void *data, size_t size)
{
    assert_int_equal(ftruncate(descriptor[i], 0), 0);
    assert_int_equal(pwrite(descriptor[i], data, size, 0), size);
}

/* Whoever trusts a source may index arrays with what it hands out. */
static void check_source(const tr_source *source)
{
    const struct tr_source_info *info = tr_source_info(source);
    int64_t capacity = tr_source_capacity(source), length;
    assert_true(info->count >= 1 && capacity >= 1 && capacity < 1 << 24);
    int32_t *features = malloc((size_t)capacity * 4), *label = malloc(4 * (size_t)(info->values + 1));
    for (int64_t i = 0; i < info->count; i++) {
        *label = 0;
        if (tr_source_read(source, i, features, capacity, &length, label) != TR_OK) continue;
        assert_true(length >= 1 && length <= capacity);
        if (info->labels == TR_LABEL_CLASS) assert_in_range(*label, 0, info->classes - 1);
        if (info->features != TR_FEATURE_TOKENS) {
            assert_int_equal(length, capacity);
            continue;
        }
        for (int64_t k = 0; k < length; k++) assert_in_range(features[k], 0, info->vocabulary - 1);
    }
    free(label);
    free(features);
    char *text = NULL, digest[65];
    const char *state_name;
    assert_int_equal(tr_source_digest(source, digest), TR_OK);
    assert_int_equal(tr_source_state(source, &state_name, &text), TR_OK);
    tr_text_free(text);
}

/* Opens a description in which %s are the files, damaged from the seeds, round by round. */
static void fuzz_source(const char *format, const struct seed *first, const struct seed *second)
{
    char description[256], damaged[SEED_MAX + 64];
    int opened = 0;
    snprintf(description, sizeof description, format, name[0], name[1]);
    set_file(0, first->data, first->size);
    if (second) set_file(1, second->data, second->size);
    int64_t live = tr_alloc_live();
    tr_source *source = must_open(description);
    check_source(source);
    tr_source_close(&source);
    for (uint32_t round = 0; round < rounds; round++) {
        int which = second ? (int)(round & 1) : 0;
        const struct seed *seed = which ? second : first;
        set_file(which, damaged, mutate_bytes(round, seed->data, seed->size, damaged));
        if (which == 0 && second) set_file(1, second->data, second->size);
        if (which == 1) set_file(0, first->data, first->size);
        if (tr_source_open(description, NULL, NULL, &source) == TR_OK) {
            opened++;
            check_source(source);
            tr_source_close(&source);
        } else {
            assert_true(tr_error_message()[0] != 0);
        }
        assert_null(source);
        assert_int_equal(tr_alloc_live(), live);
    }
    printf("%.40s: %u rounds, %d still opened\n", format, rounds, opened);
}

static struct seed idx_images(void)
{
    uint8_t data[16 + 4 * 6] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3};
    for (int i = 0; i < 24; i++) data[16 + i] = (uint8_t)(i * 11);
    return seed_of(data, sizeof data);
}

static struct seed idx_labels(void)
{
    const uint8_t data[] = {0, 0, 8, 1, 0, 0, 0, 4, 3, 1, 0, 2};
    return seed_of(data, sizeof data);
}

static void test_idx(void **state)
{
    (void)state;
    struct seed images = idx_images(), labels = idx_labels();
    fuzz_source("{idx: {images: %s, labels: %s}}", &images, &labels);
    images = packed_seed(images, 31);
    labels = packed_seed(labels, 31);
    fuzz_source("{idx: {images: %s, labels: %s}}", &images, &labels);
}

/* `head` is the dictionary of an .npy file; `data` fits it. */
static struct seed npy_array(const char *head, const void *data, size_t size)
{
    uint8_t file[512] = "\x93NUMPY\1";
    size_t length = strlen(head);
    file[8] = (uint8_t)length;
    memcpy(file + 10, head, length);
    memcpy(file + 10 + length, data, size);
    return seed_of(file, 10 + length + size);
}

static void test_npy(void **state)
{
    (void)state;
    const uint8_t pixels[24] = {1, 2, 3, 255};
    const int64_t classes[4] = {3, 1, 0, 2};
    const float numbers[8] = {1.5f, -2, 1e30f, 0}, values[4] = {1, 2, 3, -4};
    struct seed images =
        npy_array("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 3), }", pixels, sizeof pixels);
    struct seed labels =
        npy_array("{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", classes, sizeof classes);
    fuzz_source("{npy: {features: %s, labels: %s}}", &images, &labels);
    struct seed rows =
        npy_array("{'descr': '>f4', 'fortran_order': False, 'shape': (4, 2), }", numbers, sizeof numbers);
    labels = npy_array("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), }", values, sizeof values);
    fuzz_source("{npy: {features: %s, labels: %s}}", &rows, &labels);
}

static const char csv_text[] = "a,b,c\n1,-2.5,0\n\"3\",4e1,1\n5, 6 ,2\n7,8,0\n";
static const char tsv_text[] = "a stirring , funny film\t1\napparently reassembled\t0\nof the beast\t1\n";

static void test_tables_and_sentences(void **state)
{
    (void)state;
    struct seed csv = seed_of(csv_text, sizeof csv_text - 1), text = seed_of(tsv_text, sizeof tsv_text - 1);
    fuzz_source("{csv: {path: %s, standardize: true}}", &csv, NULL);
    fuzz_source("{csv: {path: %s, label: value, on_bad_record: skip, max_bad: 1}}", &csv, NULL);
    fuzz_source("{text: {path: %s, lower_case: true}}", &text, NULL);
    fuzz_source("{text: {path: %s, on_bad_record: skip, max_bad: 1}}", &text, NULL);
    csv = packed_seed(csv, 31);
    fuzz_source("{csv: {path: %s, on_bad_record: skip, max_bad: 1}}", &csv, NULL);
}

static size_t encode_example(uint8_t *to, int64_t label)
{
    const uint8_t pixels[6] = {1, 2, 3, 4, 5, 6};
    const float floats[2] = {1.5f, -2};
    int64_t count = 6;
    const struct tr_example_value value[] = {{"floats", TR_LIST_FLOATS, floats, 2},
                                             {"image_raw", TR_LIST_BYTES, pixels, 6},
                                             {"label", TR_LIST_INT64, &label, 1},
                                             {"pixels", TR_LIST_INT64, &count, 1}};
    tr_example_encode(value, 4, to);
    return tr_example_encoded_size(value, 4);
}

/* Writes a record around data. */
static size_t frame(const void *data, size_t size, uint8_t *to)
{
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)((uint64_t)size >> 8 * i);
    uint32_t head = tr_crc32c_mask(tr_crc32c(0, to, 8)), tail = tr_crc32c_mask(tr_crc32c(0, data, size));
    memcpy(to + 12, data, size);
    for (int i = 0; i < 4; i++) {
        to[8 + i] = (uint8_t)(head >> 8 * i);
        to[12 + size + (size_t)i] = (uint8_t)(tail >> 8 * i);
    }
    return size + 16;
}

static void test_tfrecord(void **state)
{
    (void)state;
    uint8_t example[256], file[1024];
    size_t size = 0;
    for (int64_t i = 0; i < 4; i++) size += frame(example, encode_example(example, i), file + size);
    struct seed seed = seed_of(file, size);
    fuzz_source("{tfrecord: {path: %s, height: 2, width: 3}}", &seed, NULL);
    fuzz_source("{tfrecord: {path: %s, height: 2, width: 3, on_bad_record: skip, max_bad: 1}}", &seed, NULL);
    fuzz_source("{tfrecord: {path: %s, height: 2, width: 3, check: read, classes: 4}}", &seed, NULL);
    seed = packed_seed(seed, 15);
    fuzz_source("{tfrecord: {path: %s, floats: floats}}", &seed, NULL);
}

/* Damage inside an Example whose checksum is right. */
static void test_example(void **state)
{
    (void)state;
    uint8_t example[256], file[1024];
    char damaged[256 + 64];
    size_t size = encode_example(example, 3);
    int opened = 0;
    for (uint32_t round = 0; round < 10 * rounds; round++) {
        size_t now = mutate_bytes(round, (const char *)example, size, damaged);
        struct tr_example_feature feature[] = {{.name = "floats", .name_length = 6},
                                               {.name = "image_raw", .name_length = 9},
                                               {.name = "label", .name_length = 5}};
        /* a copy of exactly this size, so that a read beyond the end is seen */
        uint8_t *copy = malloc(now > 0 ? now : 1);
        memcpy(copy, damaged, now);
        if (tr_example_find(copy, now, feature, 3) == TR_OK) {
            float values[2];
            const uint8_t *bytes;
            size_t count;
            int64_t number;
            tr_example_floats(&feature[0], values, 2, &count);
            if (tr_example_bytes(&feature[1], &bytes, &count) == TR_OK) {
                assert_true(bytes >= copy && bytes + count <= copy + now);
            }
            tr_example_int64(&feature[2], &number);
        }
        free(copy);
        if (round % 10 != 0) continue;
        set_file(0, file, frame(damaged, now, file));
        char description[128];
        snprintf(description, sizeof description, "{tfrecord: {path: %s, height: 2, width: 3}}", name[0]);
        tr_source *source = NULL;
        if (tr_source_open(description, NULL, NULL, &source) != TR_OK) continue;
        opened++;
        check_source(source);
        tr_source_close(&source);
    }
    printf("Examples: %u rounds, %d still opened\n", rounds, opened);
}

static void fuzz_image(const char *file)
{
    char path[256], damaged[SEED_MAX + 64];
    snprintf(path, sizeof path, TRIREME_SOURCE_DIR "/tests/data/seeds/%s", file);
    struct bytes seed = read_file(path);
    assert_true(seed.size <= SEED_MAX);
    int opened = 0;
    int64_t live = tr_alloc_live();
    for (uint32_t round = 0; round < rounds; round++) {
        struct tr_image_size size;
        uint8_t *pixels = NULL;
        set_file(0, damaged, mutate_bytes(round, (const char *)seed.data, seed.size, damaged));
        if (tr_image_read(name[0], (int32_t)(round % 2) * 3, &size, &pixels) == TR_OK) opened++;
        tr_text_free((char *)pixels);
        assert_int_equal(tr_alloc_live(), live);
    }
    free(seed.data);
    printf("%s: %u rounds, %d still opened\n", file, rounds, opened);
}

static void test_images(void **state)
{
    (void)state;
    fuzz_image("grey.png");
    fuzz_image("colour.png");
    fuzz_image("palette.png");
    fuzz_image("colour.jpg");
}

static void test_archives(void **state)
{
    (void)state;
    char damaged[SEED_MAX + 64];
    struct bytes tar = read_file(TRIREME_SOURCE_DIR "/tests/data/seeds/members.tar");
    for (int packed = 0; packed < 2; packed++) {
        struct bytes seed = packed ? pack(tar.data, tar.size, 31) : tar;
        for (uint32_t round = 0; round < rounds; round++) {
            size_t size = mutate_bytes(round, (const char *)seed.data, seed.size, damaged);
            tr_inflate *inflate;
            struct tr_tar_member member = {.name = "x"};
            enum tr_packing packing = packed ? TR_PACKING_GZIP : TR_PACKING_NONE;
            assert_int_equal(tr_inflate_create("x", (const uint8_t *)damaged, size, packing, &inflate),
                             TR_OK);
            while (member.name[0] && tr_tar_next(inflate, "x", &member) == TR_OK && member.name[0] &&
                   tr_tar_skip(inflate, &member, 0) == TR_OK) {
            }
            tr_inflate_destroy(&inflate);
        }
        if (packed) free(seed.data);
    }
    free(tar.data);
}

static void test_states(void **state)
{
    (void)state;
    static const char good[] =
        "trireme vocabulary 1, 2 classes, 5 lines\nlower_case 1 max_tokens 20\n<unknown>\nthe\na\nfilm\n";
    char damaged[SEED_MAX + 64];
    for (uint32_t round = 0; round < rounds; round++) {
        size_t size = mutate_bytes(round, good, sizeof good - 1, damaged);
        damaged[size] = 0;
        tr_vocabulary *vocabulary = NULL;
        int32_t classes, tokens[8];
        if (tr_vocabulary_read(damaged, &vocabulary, &classes) != TR_OK) continue;
        const char *line = "the film is a film";
        int64_t length = tr_vocabulary_length(vocabulary, line, strlen(line));
        assert_in_range(length, 1, 5);
        tr_vocabulary_encode(vocabulary, line, strlen(line), tokens);
        for (int64_t i = 0; i < length; i++)
            assert_in_range(tokens[i], 0, tr_vocabulary_size(vocabulary) - 1);
        tr_vocabulary_destroy(&vocabulary);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) rounds = (uint32_t)strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx),      cmocka_unit_test(test_tables_and_sentences),
        cmocka_unit_test(test_npy),      cmocka_unit_test(test_tfrecord),
        cmocka_unit_test(test_example),  cmocka_unit_test(test_images),
        cmocka_unit_test(test_archives), cmocka_unit_test(test_states),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
