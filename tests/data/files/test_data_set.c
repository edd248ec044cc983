/* Known data sets: describing, opening, verifying, fetching (from a folder instead of the network) and
 * showing. */
#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "base/files/module.h"
#include "data/files/data_set.h"
#include "data/files/fetch.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA TRIREME_SOURCE_DIR "/data"

struct counts {
    int state[4];
    char message[512];
};

static void count(void *user, const char *path, enum tr_data_file_state state, const char *message)
{
    struct counts *counts = user;
    assert_true(path[0] != 0);
    assert_true((message[0] != 0) == (state == TR_DATA_FILE_BAD));
    counts->state[state]++;
    if (state == TR_DATA_FILE_BAD) snprintf(counts->message, sizeof counts->message, "%s", message);
}

static void test_table(void **unused)
{
    (void)unused;
    int sets = 0;
    for (; tr_data_set_at(sets); sets++) {
        const struct tr_data_set_info *info = tr_data_set_at(sets);
        const struct tr_data_set_entry *entry = tr_data_set_entry(info->name);
        assert_ptr_equal(&entry->public, info);
        assert_true(info->can_fetch == (entry->mirrors[0] != NULL));
        for (int i = 0; entry->mirrors[i]; i++)
            assert_int_equal(strncmp(entry->mirrors[i], "https://", 8), 0);
        for (int i = 0; info->parts[i]; i++) {
            char *description;
            assert_int_equal(tr_data_set_describe(info->name, info->parts[i], &description), TR_OK);
            assert_non_null(strstr(description, info->name));
            tr_text_free(description);
        }
        for (int i = 0; i < entry->file_count; i++) {
            const struct tr_data_file *file = &entry->files[i];
            assert_true(file->sha256 || file->contents);
            assert_true(!file->sha256 || strlen(file->sha256) == 64);
            assert_true(!file->contents || strlen(file->contents) == 64);
        }
    }
    assert_int_equal(sets, 5);
    assert_null(tr_data_set_at(-1));
    char *description;
    assert_int_equal(tr_data_set_describe("minst", "train", &description), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "did you mean \"mnist\"?"));
    assert_int_equal(tr_data_set_describe("mnist", "dev", &description), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "it has train, test"));
}

static void test_shipped_sets(void **unused)
{
    (void)unused;
    struct counts counts = {0};
    assert_int_equal(tr_data_set_verify("mnist", DATA, count, &counts), TR_OK);
    assert_int_equal(tr_data_set_verify("sst2", DATA, count, &counts), TR_OK);
    assert_int_equal(tr_data_set_verify("shakespeare", DATA, count, &counts), TR_OK);
    assert_int_equal(counts.state[TR_DATA_FILE_GOOD], 8);
    tr_source *source = NULL;
    assert_int_equal(tr_data_set_open("mnist", "test", DATA, NULL, &source), TR_OK);
    assert_int_equal(tr_source_info(source)->count, 10000);
    tr_source_close(&source);
    assert_int_equal(tr_data_set_open("sst2", "dev", DATA, NULL, &source), TR_OK);
    assert_int_equal(tr_source_info(source)->count, 872);
    tr_source_close(&source);
    assert_int_equal(tr_data_set_open("cifar-10", "test", test_directory(), NULL, &source), TR_ENOTFOUND);
    assert_non_null(
        strstr(tr_error_message(), "data set cifar-10 is missing; download it: trireme data fetch cifar-10"));
    assert_int_equal(tr_data_set_verify("unknown", DATA, NULL, NULL), TR_ENOTFOUND);
}

static void expect_advice(const char *path, const char *expected)
{
    char *advice = tr_data_set_advice(path);
    assert_non_null(advice);
    assert_string_equal(advice, expected);
    tr_text_free(advice);
}

static void test_missing_files_say_how_to_get_them(void **unused)
{
    (void)unused;
    expect_advice("a/data/mnist/train-images-idx3-ubyte.gz",
                  "; `trireme data fetch mnist --dir a/data` gets it");
    expect_advice("mnist/test.tfrecord", "; `trireme data convert mnist mnist --dir .` makes it");
    expect_advice("/d/sst2/train.tsv",
                  "; data set sst2 ships with Trireme: take it from a copy, or check the path");
    expect_advice("a/data/mnist/images", "; check the path");
    expect_advice("a/other/train-images-idx3-ubyte.gz", "; check the path");
    expect_advice("file", "; check the path");
    expect_advice("/", "; check the path");
    tr_source *source;
    assert_int_equal(tr_source_open("{tfrecord: {path: none/mnist/train.tfrecord, height: 2, width: 2}}", "x",
                                    NULL, &source),
                     TR_ENOTFOUND);
    assert_string_equal(tr_error_message(),
                        "open \"x/none/mnist/train.tfrecord\": No such file or directory; `trireme data "
                        "convert mnist x/none/mnist --dir x/none` makes it");
}

static void test_damage_is_found(void **unused)
{
    (void)unused;
    struct bytes file = read_file(DATA "/mnist/t10k-labels-idx1-ubyte.gz");
    struct counts counts = {0};
    mkdir(test_path("mnist"), 0700);
    write_file("mnist/t10k-labels-idx1-ubyte.gz", file.data, file.size);
    assert_int_equal(tr_data_set_verify("mnist", test_directory(), count, &counts), TR_ENOTFOUND);
    assert_int_equal(counts.state[TR_DATA_FILE_GOOD], 1);
    assert_int_equal(counts.state[TR_DATA_FILE_MISSING], 3);
    file.data[file.size / 2] ^= 4;
    write_file("mnist/t10k-labels-idx1-ubyte.gz", file.data, file.size);
    assert_int_equal(tr_data_set_verify("mnist", test_directory(), count, &counts), TR_ECORRUPT);
    assert_int_equal(counts.state[TR_DATA_FILE_BAD], 1);
    assert_non_null(strstr(counts.message, "t10k-labels"));
    /* right packing of the wrong contents */
    struct bytes other = pack("other", 5, 31);
    write_file("mnist/t10k-labels-idx1-ubyte.gz", other.data, other.size);
    assert_int_equal(tr_data_set_verify("mnist", test_directory(), count, &counts), TR_ECORRUPT);
    assert_non_null(strstr(counts.message, "SHA-256 is"));
    free(other.data);
    free(file.data);
}

static int stop_at_once(void *user, const char *path, int64_t done, int64_t total)
{
    (void)path, (void)total;
    int *calls = user;
    ++*calls;
    return done > 0;
}

static int go_on(void *user, const char *path, int64_t done, int64_t total)
{
    (void)path, (void)done, (void)total;
    ++*(int *)user;
    return 0;
}

/* Nothing but the named files is in the folder. */
static void expect_no_leftovers(const char *path)
{
    char aside[600];
    snprintf(aside, sizeof aside, "%s.%ld.tmp", path, (long)getpid());
    assert_int_not_equal(access(aside, F_OK), 0);
}

static void test_fetch(void **unused)
{
    (void)unused;
    static const char text[] = "the contents of a file\n";
    char sum[TR_SHA256_TEXT], good[600], bad[600], missing[600], path[512];
    assert_int_equal(tr_sha256_of(text, sizeof text - 1, sum), TR_OK);
    mkdir(test_path("good"), 0700);
    mkdir(test_path("bad"), 0700);
    write_file("good/file", text, sizeof text - 1);
    write_file("bad/file", "the contents of a fake\n", sizeof text - 1);
    snprintf(good, sizeof good, "file://%s/", test_path("good"));
    snprintf(bad, sizeof bad, "file://%s/", test_path("bad"));
    snprintf(missing, sizeof missing, "file://%s/", test_path("missing"));
    snprintf(path, sizeof path, "%s", test_path("fetched"));
    struct tr_data_file file = {"file", sizeof text - 1, sum, NULL};
    int calls = 0;

    /* the first mirror that has it right counts */
    const char *const mirrors[] = {missing, bad, good, NULL};
    if (tr_data_file_fetch(&file, mirrors, path, go_on, &calls) != TR_OK) fail_msg("%s", tr_error_message());
    assert_true(calls > 0);
    struct bytes got = read_file(path);
    assert_int_equal(got.size, sizeof text - 1);
    assert_memory_equal(got.data, text, got.size);
    free(got.data);
    expect_no_leftovers(path);

    /* a failure keeps what was there */
    const char *const bad_only[] = {bad, NULL}, *const missing_only[] = {missing, NULL},
                      *const good_only[] = {good, NULL};
    assert_int_equal(tr_data_file_fetch(&file, bad_only, path, NULL, NULL), TR_ECORRUPT);
    assert_non_null(strstr(tr_error_message(), "SHA-256"));
    assert_int_equal(tr_data_file_fetch(&file, missing_only, path, NULL, NULL), TR_EIO);
    assert_int_equal(tr_data_file_fetch(&file, good_only, path, stop_at_once, &calls), TR_EINTERRUPTED);
    file.size = 5; /* a mirror that sends more than it should */
    assert_int_equal(tr_data_file_fetch(&file, good_only, path, NULL, NULL), TR_ECORRUPT);
    assert_non_null(strstr(tr_error_message(), "more than the 5 bytes"));
    assert_int_equal(tr_data_file_verify(&(struct tr_data_file){"file", 0, sum, NULL}, path), TR_OK);
    expect_no_leftovers(path);
    assert_int_equal(tr_data_file_fetch(&file, good_only, test_path("no/folder/file"), NULL, NULL), TR_EIO);
    /* one whose size nobody knows has an end, too */
    static const char hundred[100];
    char large[600], mirror[600];
    struct stat facts;
    snprintf(large, sizeof large, "%s", test_path("good/large"));
    snprintf(mirror, sizeof mirror, "file://%s", test_path("good"));
    const char *const one[] = {mirror, NULL};
    write_file("good/large", hundred, sizeof hundred);
    const struct tr_data_file unknown = {"large", 0, sum, NULL};
    for (int more = 0; more < 2; more++) {
        assert_int_equal(truncate(large, ((off_t)64 << 20) + more), 0);
        assert_int_equal(tr_data_file_fetch(&unknown, one, path, NULL, NULL), TR_ECORRUPT);
        assert_non_null(strstr(tr_error_message(),
                               more ? "more than the 67108864 bytes that the file may have" : "SHA-256 is"));
    }
    expect_no_leftovers(path);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, sizeof text - 1);
}

/* Whatever memory fails: it is told, and what was there stays. */
static void test_memory_may_fail(void **unused)
{
    (void)unused;
    char text[] = "the contents of a file\n", sum[TR_SHA256_TEXT], mirror[600], path[600], *description;
    assert_int_equal(tr_sha256_of(text, sizeof text - 1, sum), TR_OK);
    mkdir(test_path("good"), 0700);
    write_file("good/file", text, sizeof text - 1);
    snprintf(mirror, sizeof mirror, "file://%s", test_path("good"));
    snprintf(path, sizeof path, "%s", test_path("fetched"));
    const char *const mirrors[] = {mirror, NULL};
    const struct tr_data_file file = {"file", sizeof text - 1, sum, NULL};
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        unlink(path);
        refuse_begin(at);
        tr_status status = tr_data_file_fetch(&file, mirrors, path, NULL, NULL);
        if (status == TR_OK) status = tr_data_file_verify(&file, path);
        if (status == TR_OK) status = tr_data_set_verify("sst2", DATA, NULL, NULL);
        if (status == TR_OK) status = tr_data_set_fetch("mnist", NULL, DATA, NULL, NULL, NULL);
        description = NULL;
        if (status == TR_OK) status = tr_data_set_describe("mnist", "test", &description);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %d: %s: %s", (int)at, tr_status_name(status), tr_error_message());
        tr_text_free(description);
        expect_no_leftovers(path);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void test_fetch_of_sets(void **unused)
{
    (void)unused;
    struct counts counts = {0};
    assert_int_equal(tr_data_set_fetch("mnist", NULL, DATA, NULL, count, &counts),
                     TR_OK); /* all there: nothing to do */
    assert_int_equal(counts.state[TR_DATA_FILE_GOOD], 4);
    assert_int_equal(tr_data_set_fetch("sst2", NULL, test_directory(), NULL, count, &counts),
                     TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "ships with Trireme"));
    assert_int_equal(counts.state[TR_DATA_FILE_MISSING], 1);
    assert_int_equal(counts.state[TR_DATA_FILE_BAD], 0);
    assert_int_equal(tr_data_set_fetch("nothing", NULL, DATA, NULL, NULL, NULL), TR_ENOTFOUND);
}

/* A mirror of one's own serves any set, if what it has is right; what others can change on the way is none.
 */
static void test_a_mirror_of_ones_own(void **unused)
{
    (void)unused;
    static const char *const names[] = {"train.tsv", "dev.tsv", "test.tsv"};
    struct counts counts = {0};
    mkdir(test_path("own"), 0700);
    mkdir(test_path("own/sst2"), 0700);
    for (int i = 0; i < 3; i++) {
        char from[600], to[64];
        snprintf(from, sizeof from, DATA "/sst2/%s", names[i]);
        snprintf(to, sizeof to, "own/sst2/%s", names[i]);
        struct bytes file = read_file(from);
        if (i == 2) file.data[0] ^= 1;
        write_file(to, file.data, file.size);
        free(file.data);
    }
    char mirror[600];
    snprintf(mirror, sizeof mirror, "file://%s", test_path("own/sst2"));
    mkdir(test_path("got"), 0700);
    assert_int_equal(tr_data_set_fetch("sst2", mirror, test_path("got"), NULL, count, &counts), TR_ECORRUPT);
    assert_int_equal(counts.state[TR_DATA_FILE_FETCHED], 2);
    assert_non_null(strstr(tr_error_message(), "SHA-256 is"));
    assert_int_not_equal(access(test_path("got/sst2/test.tsv"), F_OK), 0);

    static const char *const refused[] = {"http://localhost/", "ftp://localhost/", "/tmp", "file://host/x",
                                          "HTTP://localhost/", "scp://localhost/", ""};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(tr_data_set_fetch("sst2", refused[i], test_path("got"), NULL, NULL, NULL),
                         TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "give https://"));
    }
}

/* The module itself speaks nothing but https: nobody listens there, and that is not the reason. */
static void test_the_module_refuses_http(void **unused)
{
    (void)unused;
    static const struct tr_module module = {"trireme-fetch.so", TR_FETCH_SYMBOL, TR_FETCH_VERSION, "", ""};
    const void *loaded;
    char message[256] = "";
    if (tr_module_load(&module, &loaded) != TR_OK) fail_msg("%s", tr_error_message());
    const struct tr_fetch_module *fetch = loaded;
    assert_int_equal(fetch->get("http://127.0.0.1:9/", NULL, NULL, NULL, message, sizeof message),
                     TR_FETCH_FAILED);
    if (!strstr(message, "Protocol") && !strstr(message, "protocol")) fail_msg("%s", message);
}

static int refuse_bytes(void *user, const void *data, size_t size)
{
    (void)data;
    *(size_t *)user = size;
    return 1;
}

static int refuse_progress(void *user, int64_t done, int64_t total)
{
    (void)done, (void)total;
    ++*(size_t *)user;
    return 1;
}

static int take_bytes(void *user, const void *data, size_t size)
{
    (void)user, (void)data, (void)size;
    return 0;
}

/* Whoever does not take what comes ends it, a single byte, too. */
static void test_the_module_is_stopped(void **unused)
{
    (void)unused;
    static const struct tr_module module = {"trireme-fetch.so", TR_FETCH_SYMBOL, TR_FETCH_VERSION, "", ""};
    const void *loaded;
    char message[256] = "", url[600];
    size_t got = 0;
    assert_int_equal(tr_module_load(&module, &loaded), TR_OK);
    const struct tr_fetch_module *fetch = loaded;
    snprintf(url, sizeof url, "file://%s", test_path("bytes"));
    for (size_t size = 1; size <= 3; size++) {
        write_file("bytes", "123", size);
        assert_int_equal(fetch->get(url, refuse_bytes, NULL, &got, message, sizeof message),
                         TR_FETCH_STOPPED);
        assert_int_equal(got, size);
        assert_int_equal(fetch->get(url, take_bytes, NULL, NULL, message, sizeof message), TR_FETCH_OK);
    }
    got = 0;
    assert_int_equal(fetch->get(url, take_bytes, refuse_progress, &got, message, sizeof message),
                     TR_FETCH_STOPPED);
    assert_true(got > 0);
    assert_int_equal(unlink(test_path("bytes")), 0);
    assert_int_equal(fetch->get(url, take_bytes, NULL, NULL, message, sizeof message), TR_FETCH_FAILED);
    assert_true(message[0] != 0);
}

static void test_show_images(void **unused)
{
    (void)unused;
    uint8_t images[16 + 2 * 16] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4};
    const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 3};
    for (int i = 0; i < 16; i++) images[16 + i] = i % 4 < 2 ? 0 : 255;
    memset(images + 32, 128, 16);
    write_file("images", images, sizeof images);
    write_file("labels", labels, sizeof labels);
    tr_source *source = must_open("{idx: {images: images, labels: labels}}");
    char *text;
    assert_int_equal(tr_source_show(source, 0, 2, 80, &text), TR_OK);
    assert_string_equal(text, "[0] 7 [1] 3\n  @@  ++++\n  @@  ++++\n");
    tr_text_free(text);
    assert_int_equal(tr_source_show(source, 1, 100, 2, &text), TR_OK); /* cut, and shrunk to two columns */
    assert_string_equal(text, "[1] 3\n++\n");
    tr_text_free(text);
    assert_int_equal(tr_source_show(source, 0, 0, 80, &text), TR_OK);
    assert_string_equal(text, "");
    tr_text_free(text);
    assert_int_equal(tr_source_show(source, 2, 1, 80, &text), TR_EINVAL);
    assert_int_equal(tr_source_show(source, 0, 1, 0, &text), TR_EINVAL);
    tr_source_close(&source);
}

static void test_show_others(void **unused)
{
    (void)unused;
    char *text;
    write_file("a.tsv", "b a b\t1\nfilm\t0\n", 15);
    tr_source *source = must_open("{text: {path: a.tsv}}");
    assert_int_equal(tr_source_show(source, 0, 2, 80, &text), TR_OK);
    assert_string_equal(text, "[0] 1: b a b\n[1] 0: film\n");
    tr_text_free(text);
    tr_source_close(&source);
    write_file("a.csv", "1.5,2,7,8\n", 10);
    source = must_open("{csv: {path: a.csv, label: value, label_columns: [2, 3]}}");
    assert_int_equal(tr_source_show(source, 0, 1, 80, &text), TR_OK);
    assert_string_equal(text, "[0] 7 8: 1.5 2\n");
    tr_text_free(text);
    tr_source_close(&source);
}

static void test_convert_by_name(void **unused)
{
    (void)unused;
    write_file("a.csv", "1.5,2,1\n3,4,0\n", 14);
    write_file("a.tsv", "b a b\t1\nfilm\t0\n", 15);
    tr_source *table = must_open("{csv: {path: a.csv}}"), *sentences = must_open("{text: {path: a.tsv}}");
    assert_int_equal(tr_source_convert(table, "tfrecord", "gzip", test_path("out")), TR_OK);
    tr_source *back = must_open("{tfrecord: {path: out, floats: floats}}");
    assert_int_equal(tr_source_info(back)->count, 2);
    tr_source_close(&back);
    assert_int_equal(tr_source_convert(table, "idx", "none", test_path("out")), TR_EUNSUPPORTED);
    assert_int_equal(tr_source_convert(table, "parquet", "none", test_path("out")), TR_EINVAL);
    assert_int_equal(tr_source_convert(table, "tfrecord", "lzma", test_path("out")), TR_EINVAL);
    assert_int_equal(tr_source_convert(sentences, "tfrecord", "none", test_path("out2")), TR_EUNSUPPORTED);
    assert_int_not_equal(access(test_path("out2"), F_OK), 0);
    tr_source_close(&sentences);
    tr_source_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_files_say_how_to_get_them),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_shipped_sets),
        cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_fetch),
        cmocka_unit_test(test_memory_may_fail),
        cmocka_unit_test(test_fetch_of_sets),
        cmocka_unit_test(test_a_mirror_of_ones_own),
        cmocka_unit_test(test_the_module_refuses_http),
        cmocka_unit_test(test_the_module_is_stopped),
        cmocka_unit_test(test_show_images),
        cmocka_unit_test(test_show_others),
        cmocka_unit_test(test_convert_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
