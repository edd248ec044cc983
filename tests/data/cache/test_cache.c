/* The data cache: what it gives is what the files give, whatever happened to its own files. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/file_fault.h"
#include "base/numbers/hash.h"
#include "base/text/log.h"
#include "data/order/batch.h"
#include "data/cache/cache.h"
#include "data/files/hold.h"
#include "data/support.h"
#include "data/cache/store.h"
#include "data/cache/unpacked_format.h"
#include "support/files/descriptors.h"
#include "support/files/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define IMAGES 40
#define SIDE   9
#define TABLE  "{csv: {path: table, standardize: true}}"
#define TEXTS  "{text: {path: texts}}"
#define DIGITS "{idx: {images: images, labels: labels}}"
#define MASKS  "{idx: {images: images, labels: images}}"
#define PACKED "{tfrecord: {path: packed.tfrecord, height: 9, width: 9}}"
#define FOLDER "{folder: {path: folder, memory: true}}"
#define ARRAYS "{npy: {features: array.npy}}"

static const char *const unpacking[] = {DIGITS, TABLE, TEXTS, PACKED, FOLDER, MASKS};
#define UNPACKING (sizeof unpacking / sizeof unpacking[0])

static char cache_path[512];
static int warnings;
static char last_warning[1024];

static void count_warning(void *user, enum tr_log_level level, const char *message)
{
    (void)user, (void)level;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

/* ---- data ---- */

static void write_images(const char *name, int seed)
{
    uint8_t bytes[16 + IMAGES * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    for (size_t i = 16; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + (size_t)seed * 101);
    write_file(name, bytes, sizeof bytes);
}

static void write_labels(void)
{
    uint8_t bytes[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    for (int i = 0; i < IMAGES; i++) bytes[8 + i] = (uint8_t)(i % 7);
    write_file("labels", bytes, sizeof bytes);
}

static void write_folder(const char *class, const char *file)
{
    /* A grey PNG of 1 x 1. */
    static const uint8_t png[] = {
        0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n', 0,    0,    0,    13,  'I',  'H',  'D',  'R',  0,
        0,    0,    1,    0,    0,    0,    1,    8,    0,    0,    0,    0,   0x3a, 0x7e, 0x9b, 0x55, 0,
        0,    0,    10,   'I',  'D',  'A',  'T',  0x78, 0x9c, 0x63, 0x68, 0,   0,    0,    0x82, 0,    0x81,
        0x77, 0xcd, 0x72, 0xb6, 0,    0,    0,    0,    'I',  'E',  'N',  'D', 0xae, 0x42, 0x60, 0x82};
    char name[64];
    mkdir(test_path("folder"), 0700);
    snprintf(name, sizeof name, "folder/%s", class);
    mkdir(test_path(name), 0700);
    snprintf(name, sizeof name, "folder/%s/%s", class, file);
    write_file(name, png, sizeof png);
}

static void write_array(void)
{
    float values[6];
    for (int i = 0; i < 6; i++) values[i] = (float)i / 2;
    npy_write(test_path("array.npy"), "<f4", "2, 3", values, sizeof values);
}

static void write_data(void)
{
    static const char table[] = "a,b,label\n1,2,0\n3,9,1\n-4,0.5,2\n";
    static const char texts[] = "a good film\t1\nbad\t0\nnot good at all\t0\n";
    write_images("images", 1);
    write_labels();
    write_file("table", table, strlen(table));
    write_file("texts", texts, strlen(texts));
    write_folder("cats", "1.png");
    write_folder("dogs", "2.png");
    write_array();
    tr_source *digits = must_open(DIGITS);
    assert_int_equal(tr_source_convert(digits, "tfrecord", "gzip", test_path("packed.tfrecord")), TR_OK);
    tr_source_close(&digits);
}

/* ---- looking ---- */

static bool is_unpacked(const tr_source *source)
{
    return strcmp(source->class->name, "unpacked") == 0;
}

/* Opens through a store of its own. */
static tr_source *open_through(const tr_file_system *files, int64_t limit, const char *description)
{
    tr_store *store;
    tr_source *source = NULL;
    assert_int_equal(tr_store_create(files, cache_path, limit, &store), TR_OK);
    if (tr_source_open_through(store, description, test_directory(), NULL, &source) != TR_OK)
        fail_msg("%s", tr_error_message());
    tr_store_destroy(&store);
    return source;
}

/* What comes through the cache is what the files hold. *unpacked: whether it came from an entry. */
static void expect_right(const tr_file_system *files, const char *description, bool *unpacked)
{
    tr_source *direct = must_open(description), *source = open_through(files, 0, description);
    expect_same_source(direct, source);
    if (unpacked) *unpacked = is_unpacked(source);
    tr_source_close(&source);
    tr_source_close(&direct);
}

/* Images of an entry take memory only where somebody takes them where they lie. */
static void images_are_read_from_the_entry(void **state)
{
    (void)state;
    struct tr_loader_options options = TR_LOADER_OPTIONS_WHOLE;
    struct tr_order order;
    tr_source *direct = must_open(DIGITS), *source = open_through(NULL, 0, DIGITS);
    int64_t count = source->info.count, bytes = tr_source_capacity(source);
    assert_true(is_unpacked(source) && source->resident && source->filed);
    assert_false(direct->filed);
    assert_int_equal(source->unpacked, 0);
    assert_true(direct->unpacked >= count * bytes);
    assert_int_equal(tr_order_make(&order, count, count, TR_LAST_BATCH_KEEP, false, 0), TR_OK);
    for (int in_place = 0; in_place < 2; in_place++) {
        const struct tr_batch *batch;
        tr_loader *loader;
        options.in_place = in_place;
        assert_int_equal(tr_loader_create(source, &order, &options, &loader), TR_OK);
        assert_int_equal(tr_loader_get(loader, 0, &batch), TR_OK);
        assert_true((batch->images == NULL) == in_place);
        const uint8_t *images = in_place ? source->resident : batch->images;
        assert_memory_equal(images, direct->resident, (size_t)(count * bytes));
        tr_loader_destroy(&loader);
    }
    tr_source_close(&source);
    tr_source_close(&direct);
}

/* The path of the only file with this ending in the cache, in static storage; NULL where there is none. */
static const char *only(const char *ending, int *count)
{
    static char path[1024];
    DIR *directory = opendir(cache_path);
    *count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name), tail = strlen(ending);
        if (length < tail || strcmp(entry->d_name + length - tail, ending) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", cache_path, entry->d_name);
        ++*count;
    }
    if (directory) closedir(directory);
    return *count > 0 ? path : NULL;
}

static int count_of(const char *ending)
{
    int count;
    only(ending, &count);
    return count;
}

static int empty_cache(void **unused)
{
    (void)unused;
    tr_file_remove(NULL, cache_path);
    warnings = 0;
    return 0;
}

/* Stamps of files this young are not relied on. */
static void wait_until_settled(void)
{
    tr_source *source = must_open(DIGITS);
    while (!tr_source_files_settled(&source->files, (int64_t)time(NULL)))
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    tr_source_close(&source);
}

/* ---- what it gives ---- */

static void gives_what_the_files_hold(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < UNPACKING; i++) {
        bool unpacked;
        int64_t live = tr_alloc_live();
        expect_right(NULL, unpacking[i], &unpacked); /* makes the entry */
        assert_true(unpacked);
        expect_right(NULL, unpacking[i], &unpacked);
        assert_true(unpacked);
        assert_int_equal(count_of(".data"), i + 1);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_int_equal(warnings, 0);
    assert_int_equal(count_of(".tmp"), 0);
}

/* What another set shares with the training data decides what it holds. */
static void keeps_states_apart(void **unused)
{
    (void)unused;
    static const char state[] = "trireme scaling 1, 3 classes, 2 lines\n0 1\n0 2\n";
    tr_store *store;
    tr_source *own, *direct, *source;
    assert_int_equal(tr_store_create(NULL, cache_path, 0, &store), TR_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(tr_source_open_through(store, TABLE, test_directory(), NULL, &own), TR_OK);
        assert_int_equal(tr_source_open_through(store, TABLE, test_directory(), state, &source), TR_OK);
        assert_int_equal(tr_source_open(TABLE, test_directory(), state, &direct), TR_OK);
        expect_same_source(direct, source);
        float mine[2], other[2];
        tr_source_read(own, 0, mine, 2, NULL, NULL);
        tr_source_read(source, 0, other, 2, NULL, NULL);
        assert_memory_not_equal(mine, other, sizeof mine);
        tr_source_close(&direct);
        tr_source_close(&source);
        tr_source_close(&own);
    }
    tr_store_destroy(&store);
}

/* Another content of the same size whose time of modification is set back to what it was. */
static void sees_what_times_do_not_tell(void **unused)
{
    (void)unused;
    struct stat before;
    bool unpacked;
    wait_until_settled();
    expect_right(NULL, DIGITS, NULL);
    assert_int_equal(count_of(".note"), 1);
    assert_int_equal(stat(test_path("images"), &before), 0);
    write_images("images", 2);
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, test_path("images"), times, 0), 0);
    expect_right(NULL, DIGITS, &unpacked);
    assert_true(unpacked);
    assert_int_equal(count_of(".data"), 2);
    assert_int_equal(count_of(".note"), 1); /* too young for one */
    /* And back: the first entry is still there, under the contents. */
    write_images("images", 1);
    expect_right(NULL, DIGITS, &unpacked);
    assert_int_equal(count_of(".data"), 2);
}

/* Whatever fails beside the work: no note leads to an entry that there is not, and who has no entry is told.
 */
static void notes_beside_the_work_have_their_entry(void **unused)
{
    (void)unused;
    wait_until_settled();
    bool hit = true, without = false;
    for (int64_t at = 4; hit; at++) {
        struct fault_files fault;
        tr_store *store;
        tr_source *source;
        empty_cache(NULL);
        fault_files_init(&fault, FAULT_ERROR, ENOSPC, at, false);
        assert_int_equal(tr_store_create(&fault.system, cache_path, 0, &store), TR_OK);
        tr_store_defer(store);
        assert_int_equal(tr_source_open_through(store, DIGITS, test_directory(), NULL, &source), TR_OK);
        tr_store_destroy(&store);
        tr_source_close(&source);
        hit = fault.calls >= at;
        if (count_of(".data") > 0) continue;
        without = true;
        assert_int_equal(count_of(".note"), 0);
        assert_true(warnings > 0);
    }
    assert_true(without);
}

/* A run that makes an entry beside its work begins with its own data. */
static void makes_entries_beside_the_work(void **unused)
{
    (void)unused;
    wait_until_settled();
    for (int full = 0; full < 2; full++) {
        struct fault_files fault;
        tr_store *store;
        tr_source *source, *direct = must_open(DIGITS);
        empty_cache(NULL);
        fault_files_init(&fault, FAULT_ERROR, ENOSPC, full ? 4 : 0, true);
        assert_int_equal(tr_store_create(&fault.system, cache_path, 0, &store), TR_OK);
        tr_store_defer(store);
        assert_int_equal(tr_source_open_through(store, DIGITS, test_directory(), NULL, &source), TR_OK);
        assert_false(is_unpacked(source));
        expect_same_source(direct, source);
        tr_store_destroy(&store); /* what goes on needs it no more */
        tr_source_close(&source);
        assert_int_equal(count_of(".data"), full ? 0 : 1);
        assert_int_equal(count_of(".note"), full ? 0 : 1);
        assert_int_equal(warnings, full);
        if (full) assert_non_null(strstr(last_warning, "No space left"));
        bool unpacked;
        expect_right(NULL, DIGITS, &unpacked);
        assert_true(unpacked);
        tr_source_close(&direct);
    }
}

/* A file that was touched, copied or moved has the contents that it had. */
static void knows_contents_again(void **unused)
{
    (void)unused;
    expect_right(NULL, TEXTS, NULL);
    struct bytes bytes = read_file(test_path("texts"));
    assert_int_equal(unlink(test_path("texts")), 0);
    write_file("texts", bytes.data, bytes.size);
    free(bytes.data);
    expect_right(NULL, TEXTS, NULL);
    assert_int_equal(count_of(".data"), 1);
}

/* A digest that a run took the trouble to compute is known to the next. */
static void keeps_digests_of_what_stays_in_files(void **unused)
{
    (void)unused;
    tr_store *store;
    tr_source *source;
    char digest[TR_SHA256_TEXT];
    wait_until_settled();
    assert_int_equal(tr_store_create(NULL, cache_path, 0, &store), TR_OK);
    assert_int_equal(tr_source_open_through(store, ARRAYS, test_directory(), NULL, &source), TR_OK);
    assert_int_equal(source->digest[0], 0);
    assert_int_equal(tr_source_digest(source, digest), TR_OK);
    tr_store_learn(store, source, digest);
    tr_source_close(&source);
    assert_int_equal(tr_source_open_through(store, ARRAYS, test_directory(), NULL, &source), TR_OK);
    assert_string_equal(source->digest, digest);
    tr_source_close(&source);
    tr_store_destroy(&store);
    assert_int_equal(count_of(".data"), 0);
    /* Of what has changed meanwhile, or without a cache, nothing is kept. */
    const struct timespec times[2] = {{1000, 0}, {1000, 0}};
    empty_cache(NULL);
    assert_int_equal(tr_store_create(NULL, cache_path, 0, &store), TR_OK);
    assert_int_equal(tr_source_open_through(store, ARRAYS, test_directory(), NULL, &source), TR_OK);
    assert_int_equal(utimensat(AT_FDCWD, test_path("array.npy"), times, 0), 0);
    tr_store_learn(store, source, digest);
    tr_source_close(&source);
    assert_int_equal(count_of(".note"), 0);
    write_array(); /* too young to be relied on */
    assert_int_equal(tr_source_open_through(store, ARRAYS, test_directory(), NULL, &source), TR_OK);
    tr_store_learn(store, source, digest);
    tr_source_close(&source);
    tr_store_destroy(&store);
    assert_int_equal(count_of(".note"), 0);
    source = must_open(ARRAYS);
    assert_int_equal(tr_store_create(NULL, NULL, 0, &store), TR_OK);
    tr_store_learn(store, source, digest);
    tr_store_destroy(&store);
    assert_int_equal(tr_store_create(NULL, cache_path, 0, &store), TR_OK);
    tr_store_learn(store, source, digest); /* which did not come through it */
    tr_store_destroy(&store);
    tr_source_close(&source);
    assert_int_equal(count_of(".note"), 0);
}

static void names_a_file_that_changes_in_use(void **unused)
{
    (void)unused;
    tr_source *source = open_through(NULL, 0, TEXTS);
    assert_null(tr_source_files_changed(&source->files));
    FILE *file = fopen(test_path("texts"), "a");
    assert_true(file && fputs("more\t1\n", file) >= 0 && fclose(file) == 0);
    assert_string_equal(tr_source_files_changed(&source->files), test_path("texts"));
    assert_int_equal(unlink(test_path("texts")), 0);
    assert_string_equal(tr_source_files_changed(&source->files), test_path("texts"));
    tr_source_close(&source);
    write_data();
}

/* ---- damage ---- */

/* The entry is `bytes` now: the data must be right all the same, with a word, and the entry whole again. */
static void expect_repair(const char *path, const void *bytes, size_t size)
{
    int before = warnings;
    bool unpacked;
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    expect_right(NULL, TEXTS, &unpacked);
    assert_true(unpacked);
    if (warnings != before + 1) fail_msg("%d warnings, of %zu bytes", warnings - before, size);
    assert_non_null(strstr(last_warning, path));
    expect_right(NULL, TEXTS, &unpacked);
    assert_int_equal(warnings, before + 1);
}

static void makes_damaged_entries_anew(void **unused)
{
    (void)unused;
    int count;
    expect_right(NULL, TEXTS, NULL);
    char path[1024];
    snprintf(path, sizeof path, "%s", only(".data", &count));
    struct bytes good = read_file(path);
    uint8_t *bad = malloc(good.size + 1);
    assert_non_null(bad);
    memcpy(bad, good.data, good.size);
    bad[good.size] = 0;
    const size_t sizes[] = {0, 1, 4096, good.size / 2, good.size - 1, good.size + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) expect_repair(path, bad, sizes[i]);
    /* Behind the page every byte counts. */
    for (size_t at = 4096; at < good.size; at += at < good.size - 200 ? 61 : 7) {
        bad[at] ^= 0x10;
        expect_repair(path, bad, good.size);
        bad[at] ^= 0x10;
    }
    free(bad);
    free(good.data);
}

/* Figures that no data have, where all checksums are right. */
static void refuses_figures_out_of_range(void **unused)
{
    (void)unused;
#define FIGURE(name) #name, offsetof(struct tr_unpacked_tail, name)
    static const struct {
        const char *name;
        size_t at;
        int64_t most;
    } figures[] = {
        {FIGURE(features), TR_FEATURE_TOKENS}, {FIGURE(labels), TR_LABEL_PIXELS},
        {FIGURE(height), UINT16_MAX},          {FIGURE(width), UINT16_MAX},
        {FIGURE(channels), UINT16_MAX},        {FIGURE(floats), INT32_MAX},
        {FIGURE(max_tokens), INT32_MAX},       {FIGURE(vocabulary), INT32_MAX},
        {FIGURE(classes), INT32_MAX},          {FIGURE(values), INT32_MAX},
        {FIGURE(skipped), INT64_MAX},
    };
    int count;
    expect_right(NULL, TEXTS, NULL);
    char path[1024];
    snprintf(path, sizeof path, "%s", only(".data", &count));
    struct bytes entry = read_file(path);
    uint8_t *end = entry.data + entry.size - sizeof(struct tr_unpacked_tail);
    struct tr_unpacked_tail good, bad;
    memcpy(&good, end, sizeof good);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        for (int above = 0; above < 2; above++) {
            if (above && figures[i].most == INT64_MAX) continue;
            const int64_t value = above ? figures[i].most + 1 : -1;
            bad = good;
            memcpy((char *)&bad + figures[i].at, &value, sizeof value);
            bad.crc = tr_crc32c(0, &bad, offsetof(struct tr_unpacked_tail, crc));
            memcpy(end, &bad, sizeof bad);
            expect_repair(path, entry.data, entry.size);
            if (!strstr(last_warning, "a figure in its header is out of range"))
                fail_msg("%s %lld: %s", figures[i].name, (long long)value, last_warning);
        }
    }
    free(entry.data);
}

/* An entry of other data under this name: whole, but not what was asked for. */
static void refuses_an_entry_of_another_name(void **unused)
{
    (void)unused;
    int count;
    expect_right(NULL, TEXTS, NULL);
    struct bytes texts = read_file(only(".data", &count));
    tr_file_remove(NULL, only(".data", &count));
    expect_right(NULL, TABLE, NULL);
    char path[1024];
    snprintf(path, sizeof path, "%s", only(".data", &count));
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(texts.data, 1, texts.size, file) == texts.size && fclose(file) == 0);
    expect_right(NULL, TABLE, NULL);
    assert_int_equal(warnings, 1);
    free(texts.data);
}

static void does_without_damaged_notes(void **unused)
{
    (void)unused;
    int count;
    wait_until_settled();
    expect_right(NULL, DIGITS, NULL);
    char path[1024];
    snprintf(path, sizeof path, "%s", only(".note", &count));
    struct bytes good = read_file(path);
    for (size_t at = 0; at <= good.size; at += 5) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        if (at < good.size) good.data[at] ^= 1; /* at the end: one that is cut short */
        assert_int_equal(fwrite(good.data, 1, at < good.size ? good.size : good.size / 2, file) > 0, 1);
        fclose(file);
        if (at < good.size) good.data[at] ^= 1;
        expect_right(NULL, DIGITS, NULL);
        struct bytes again = read_file(path);
        assert_int_equal(again.size, good.size);
        assert_memory_equal(again.data, good.data, good.size);
        free(again.data);
    }
    free(good.data);
}

/* ---- others ---- */

static void trusts_nobody_else(void **unused)
{
    (void)unused;
    int count;
    bool unpacked;
    expect_right(NULL, TEXTS, NULL);
    char path[1024], aside[1100];
    snprintf(path, sizeof path, "%s", only(".data", &count));
    snprintf(aside, sizeof aside, "%s/elsewhere", cache_path);
    /* Others could have written it. */
    assert_int_equal(chmod(path, 0620), 0);
    expect_right(NULL, TEXTS, &unpacked);
    assert_true(unpacked);
    assert_non_null(strstr(last_warning, "can be written by other users"));
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    /* A link, to whatever file. */
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(aside, path), 0);
    warnings = 0;
    expect_right(NULL, TEXTS, &unpacked);
    assert_int_equal(warnings, 1);
    assert_int_equal(lstat(path, &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 0), 0);
        expect_right(NULL, TEXTS, &unpacked);
        assert_non_null(strstr(last_warning, "belongs to another user"));
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_uid, 0);
    }
    /* The directory. */
    warnings = 0;
    assert_int_equal(chmod(cache_path, 0777), 0);
    expect_right(NULL, TEXTS, &unpacked);
    assert_false(unpacked);
    assert_int_equal(warnings, 1);
    tr_cache *cache;
    assert_int_equal(tr_cache_open(NULL, cache_path, 0, &cache), TR_EINVAL);
    assert_int_equal(chmod(cache_path, 0700), 0);
    if (geteuid() != 0) return;
    assert_int_equal(chown(cache_path, 65534, 0), 0);
    assert_int_equal(tr_cache_open(NULL, cache_path, 0, &cache), TR_EINVAL);
    assert_int_equal(chown(cache_path, 0, 0), 0);
}

/* ---- failures and kills ---- */

/* Whatever call fails, the data are right, and what is left behind is whole. */
static void gets_over_a_full_disk(void **unused)
{
    (void)unused;
    static const enum fault_kind kinds[] = {FAULT_ERROR, FAULT_SHORT_WRITE};
    for (size_t k = 0; k < 2; k++) {
        int64_t at = 1;
        for (bool hit = true; hit; at++) {
            struct fault_files fault;
            empty_cache(NULL);
            fault_files_init(&fault, kinds[k], ENOSPC, at, true);
            expect_right(&fault.system, TEXTS, NULL);
            hit = fault.calls >= at;
            if (hit) assert_in_range(warnings, 0, 1); /* once, and not for what matters little */
            expect_right(NULL, TEXTS, NULL);
            assert_int_equal(count_of(".data"), 1);
        }
        assert_true(at > 6);
    }
}

/* Forks a process that opens the data and says by its exit code whether they are right. */
static pid_t open_elsewhere(const tr_file_system *files, const char *description)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    tr_source *direct = must_open(description), *source = open_through(files, 0, description);
    expect_same_source(direct, source);
    _exit(is_unpacked(source) ? 0 : 1);
}

static int exit_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void gets_over_kills_at_any_moment(void **unused)
{
    (void)unused;
    int code = FAULT_EXIT_CODE, left = 0;
    for (int64_t at = 1; code == FAULT_EXIT_CODE; at++) {
        struct fault_files fault;
        empty_cache(NULL);
        fault_files_init(&fault, FAULT_KILL, 0, at, false);
        code = exit_of(open_elsewhere(&fault.system, TEXTS));
        left += count_of(".tmp");
        bool unpacked;
        expect_right(NULL, TEXTS, &unpacked);
        assert_true(unpacked);
        assert_int_equal(warnings, 0); /* what was cut off never had the name of an entry */
    }
    assert_int_equal(code, 0);
    assert_true(left > 0);
}

/* What a kill leaves goes when somebody comes by later; what somebody writes stays. */
static void sweeps_up(void **unused)
{
    (void)unused;
    int count;
    for (int64_t at = 1; !only(".tmp", &count); at++) {
        struct fault_files fault;
        fault_files_init(&fault, FAULT_KILL, 0, at, false);
        assert_int_equal(exit_of(open_elsewhere(&fault.system, TEXTS)), FAULT_EXIT_CODE);
    }
    expect_right(NULL, TABLE, NULL); /* young: somebody may be at it */
    assert_int_equal(count_of(".tmp"), 1);
    const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, only(".tmp", &count), long_ago, 0), 0);
    expect_right(NULL, DIGITS, NULL);
    assert_int_equal(count_of(".tmp"), 0);
}

/* Makes the entry of a description the only one, and notes its path and size. */
static int64_t make_alone(const char *description, char path[1024])
{
    int count;
    struct stat facts;
    empty_cache(NULL);
    expect_right(NULL, description, NULL);
    snprintf(path, 1024, "%s", only(".data", &count));
    assert_int_equal(count, 1);
    assert_int_equal(stat(path, &facts), 0);
    return facts.st_size;
}

static void keeps_to_its_limit(void **unused)
{
    (void)unused;
    static const struct timespec old[2] = {{2000, 0}, {2000, 0}}, older[2] = {{1000, 0}, {1000, 0}};
    char texts[1024], table[1024], digits[1024];
    int64_t limit = make_alone(DIGITS, digits) + make_alone(TABLE, table) + make_alone(TEXTS, texts);
    expect_right(NULL, TABLE, NULL);
    for (int round = 0; round < 2; round++) {
        /* With all three there is a byte too much: what was used last before stays. */
        const char *kept = round ? table : texts, *gone = round ? texts : table;
        assert_int_equal(utimensat(AT_FDCWD, kept, old, 0), 0);
        assert_int_equal(utimensat(AT_FDCWD, gone, older, 0), 0);
        tr_source *source = open_through(NULL, limit - 1, DIGITS);
        assert_true(is_unpacked(source));
        tr_source_close(&source);
        assert_true(tr_file_exists(kept) && tr_file_exists(digits));
        assert_false(tr_file_exists(gone));
        assert_int_equal(tr_file_remove(NULL, digits), TR_OK);
        expect_right(NULL, TEXTS, NULL);
        expect_right(NULL, TABLE, NULL);
    }
    /* Using an entry counts. */
    assert_int_equal(utimensat(AT_FDCWD, texts, older, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, table, old, 0), 0);
    expect_right(NULL, TEXTS, NULL);
    tr_source *source = open_through(NULL, limit - 1, DIGITS);
    tr_source_close(&source);
    assert_true(tr_file_exists(texts));
    assert_false(tr_file_exists(table));
    /* What is larger than all that is allowed is not kept, and no harm. */
    empty_cache(NULL);
    source = open_through(NULL, 100, DIGITS);
    assert_false(is_unpacked(source));
    tr_source_close(&source);
    assert_int_equal(count_of(".data"), 0);
}

/* ---- several processes ---- */

/* Counts the entries that processes begin to write. */
struct counting {
    tr_file_system system;
    struct tr_file_ops ops;
    int *begun; /* shared */
};

static int counting_open(void *context, const char *path, enum tr_file_create create)
{
    struct counting *counting = context;
    if (strstr(path, ".data.")) __atomic_add_fetch(counting->begun, 1, __ATOMIC_SEQ_CST);
    return tr_file_ops_posix.open(NULL, path, create);
}

static void counting_init(struct counting *counting)
{
    counting->ops = tr_file_ops_posix;
    counting->ops.open = counting_open;
    counting->system = (tr_file_system){&counting->ops, counting};
    counting->begun = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(counting->begun, MAP_FAILED);
}

static void one_of_many_makes_the_entry(void **unused)
{
    (void)unused;
    enum { MANY = 8 };
    struct counting counting;
    pid_t child[MANY];
    counting_init(&counting);
    for (int i = 0; i < MANY; i++) child[i] = open_elsewhere(&counting.system, DIGITS);
    for (int i = 0; i < MANY; i++) assert_int_equal(exit_of(child[i]), 0);
    assert_int_equal(*counting.begun, 1);
    assert_int_equal(count_of(".data"), 1);
    munmap(counting.begun, sizeof(int));
}

/* A process of a job with a slot: what others of the host are given by train/setup/share.c. */
static pid_t open_in_slot(int slot, const char *directory, const tr_file_system *files, int expected_seed)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    char path[64];
    uint8_t image[SIDE * SIDE];
    int64_t length;
    tr_store *store;
    tr_config *node;
    tr_source *source;
    snprintf(path, sizeof path, "/proc/self/fd/%d", slot);
    int slots[TR_STORE_SLOTS];
    for (int i = 0; i < TR_STORE_SLOTS; i++) slots[i] = i ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (tr_store_create(files, directory, 0, &store) != TR_OK) _exit(10);
    tr_store_share(store, slots, 1e9, false);
    if (tr_config_parse(DIGITS, strlen(DIGITS), "digits", &node) != TR_OK) _exit(11);
    if (tr_source_open_config(node, test_directory(), NULL, store, 0, &source) != TR_OK) _exit(12);
    if (!is_unpacked(source)) _exit(13);
    if (tr_source_read(source, 0, image, sizeof image, &length, NULL) != TR_OK) _exit(14);
    _exit(image[0] == (uint8_t)(16 * 37 + expected_seed * 101) ? 0 : 15);
}

/* Without a cache the first one's data are the others': they are the same even if the file has changed since.
 */
static void processes_share_one_copy(void **unused)
{
    (void)unused;
    for (int with_cache = 0; with_cache < 2; with_cache++) {
        const char *directory = with_cache ? cache_path : NULL;
        int slot = memfd_create("slot", MFD_CLOEXEC);
        struct stat facts;
        assert_int_equal(exit_of(open_in_slot(slot, directory, NULL, 1)), 0);
        assert_int_equal(fstat(slot, &facts), 0);
        assert_int_equal(facts.st_size > IMAGES * SIDE * SIDE, !with_cache); /* or the name of the entry */
        write_images("images", 2);
        assert_int_equal(exit_of(open_in_slot(slot, directory, NULL, 1)), 0);
        close(slot);
        slot = memfd_create("slot", MFD_CLOEXEC);
        assert_int_equal(exit_of(open_in_slot(slot, directory, NULL, 2)), 0);
        close(slot);
        write_images("images", 1);
    }
}

/* One dies at any moment of making the data; another one takes over. */
static void another_one_takes_over(void **unused)
{
    (void)unused;
    int code = FAULT_EXIT_CODE;
    for (int64_t at = 1; code == FAULT_EXIT_CODE; at++) {
        struct fault_files fault;
        int slot = memfd_create("slot", MFD_CLOEXEC);
        empty_cache(NULL);
        fault_files_init(&fault, FAULT_KILL, 0, at, false);
        pid_t first = open_in_slot(slot, cache_path, &fault.system, 1);
        pid_t second = open_in_slot(slot, cache_path, NULL, 1);
        code = exit_of(first);
        assert_int_equal(exit_of(second), 0);
        close(slot);
    }
    assert_int_equal(code, 0);
}

/* One that is stopped in the middle of it is not waited for for ever. */
static void a_stopped_one_holds_up_nobody(void **unused)
{
    (void)unused;
    int slot = memfd_create("slot", MFD_CLOEXEC);
    char path[64];
    tr_store *store;
    tr_config *node;
    tr_source *source, *direct = must_open(DIGITS);
    snprintf(path, sizeof path, "/proc/self/fd/%d", slot);
    int slots[TR_STORE_SLOTS];
    for (int i = 0; i < TR_STORE_SLOTS; i++) slots[i] = i ? -1 : open(path, O_RDWR | O_CLOEXEC);
    assert_true(tr_hold_take(slot, 0, NULL, 1));
    assert_int_equal(tr_store_create(NULL, NULL, 0, &store), TR_OK);
    tr_store_share(store, slots, 0.05, false);
    assert_int_equal(tr_config_parse(DIGITS, strlen(DIGITS), "digits", &node), TR_OK);
    assert_int_equal(tr_source_open_config(node, test_directory(), NULL, store, 0, &source), TR_OK);
    expect_same_source(direct, source);
    struct stat facts;
    assert_int_equal(fstat(slot, &facts), 0);
    assert_int_equal(facts.st_size, 0); /* it is the other one's to fill */
    tr_source_close(&direct);
    tr_source_close(&source);
    tr_config_destroy(&node);
    tr_store_destroy(&store);
    close(slot);
}

/* A slot that another description has taken is left alone. */
static void slots_are_of_one_request(void **unused)
{
    (void)unused;
    int slot = memfd_create("slot", MFD_CLOEXEC);
    char path[64];
    tr_store *store;
    tr_config *node;
    tr_source *source, *direct;
    assert_int_equal(exit_of(open_in_slot(slot, NULL, NULL, 1)), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", slot);
    int slots[TR_STORE_SLOTS];
    for (int i = 0; i < TR_STORE_SLOTS; i++) slots[i] = i ? -1 : open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(tr_store_create(NULL, NULL, 0, &store), TR_OK);
    tr_store_share(store, slots, 1e9, false);
    assert_int_equal(tr_config_parse(TEXTS, strlen(TEXTS), "texts", &node), TR_OK);
    assert_int_equal(tr_source_open_config(node, test_directory(), NULL, store, 0, &source), TR_OK);
    direct = must_open(TEXTS);
    expect_same_source(direct, source);
    tr_source_close(&direct);
    tr_source_close(&source);
    tr_config_destroy(&node);
    tr_store_destroy(&store);
    assert_int_equal(exit_of(open_in_slot(slot, NULL, NULL, 1)), 0);
    close(slot);
}

/* ---- the tool ---- */

struct listed {
    int good, bad;
    char examples[256];
};

static void note_entry(void *user, const struct tr_data_cache_entry *entry)
{
    struct listed *listed = user;
    listed->good += entry->good;
    listed->bad += !entry->good;
    if (entry->good) snprintf(listed->examples, sizeof listed->examples, "%s", entry->examples);
}

static void lists_and_clears(void **unused)
{
    (void)unused;
    struct listed listed = {0};
    int entries, count;
    int64_t bytes;
    char own[1024];
    assert_int_equal(tr_data_cache_list(cache_path, note_entry, &listed), TR_OK); /* nobody has made it */
    assert_int_equal(listed.good + listed.bad, 0);
    expect_right(NULL, DIGITS, NULL);
    const int descriptors = descriptors_open();
    assert_int_equal(tr_data_cache_list(cache_path, note_entry, &listed), TR_OK);
    assert_int_equal(descriptors_open(), descriptors);
    assert_int_equal(listed.good, 1);
    assert_string_equal(listed.examples, "40 images 9x9x1, 7 classes");
    assert_int_equal(truncate(only(".data", &count), 5000), 0);
    assert_int_equal(tr_data_cache_list(cache_path, note_entry, &listed), TR_OK);
    assert_int_equal(listed.bad, 1);
    /* What is no file of the cache stays. */
    snprintf(own, sizeof own, "%s/letter.data", cache_path);
    assert_int_equal(tr_file_write_atomic(NULL, own, "mine", 4), TR_OK);
    assert_int_equal(tr_data_cache_clear(cache_path, &entries, &bytes), TR_OK);
    assert_int_equal(entries, 1);
    assert_true(bytes >= 5000);
    assert_int_equal(count_of(".data"), 1);
    assert_true(tr_file_exists(own));
    expect_right(NULL, DIGITS, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_what_the_files_hold, empty_cache),
        cmocka_unit_test_setup(images_are_read_from_the_entry, empty_cache),
        cmocka_unit_test_setup(keeps_states_apart, empty_cache),
        cmocka_unit_test_setup(sees_what_times_do_not_tell, empty_cache),
        cmocka_unit_test_setup(notes_beside_the_work_have_their_entry, empty_cache),
        cmocka_unit_test_setup(makes_entries_beside_the_work, empty_cache),
        cmocka_unit_test_setup(knows_contents_again, empty_cache),
        cmocka_unit_test_setup(keeps_digests_of_what_stays_in_files, empty_cache),
        cmocka_unit_test_setup(names_a_file_that_changes_in_use, empty_cache),
        cmocka_unit_test_setup(makes_damaged_entries_anew, empty_cache),
        cmocka_unit_test_setup(refuses_figures_out_of_range, empty_cache),
        cmocka_unit_test_setup(refuses_an_entry_of_another_name, empty_cache),
        cmocka_unit_test_setup(does_without_damaged_notes, empty_cache),
        cmocka_unit_test_setup(trusts_nobody_else, empty_cache),
        cmocka_unit_test_setup(gets_over_a_full_disk, empty_cache),
        cmocka_unit_test_setup(gets_over_kills_at_any_moment, empty_cache),
        cmocka_unit_test_setup(sweeps_up, empty_cache),
        cmocka_unit_test_setup(keeps_to_its_limit, empty_cache),
        cmocka_unit_test_setup(one_of_many_makes_the_entry, empty_cache),
        cmocka_unit_test_setup(processes_share_one_copy, empty_cache),
        cmocka_unit_test_setup(another_one_takes_over, empty_cache),
        cmocka_unit_test_setup(a_stopped_one_holds_up_nobody, empty_cache),
        cmocka_unit_test_setup(slots_are_of_one_request, empty_cache),
        cmocka_unit_test_setup(lists_and_clears, empty_cache),
    };
    snprintf(cache_path, sizeof cache_path, "%s", test_path("cache"));
    tr_log_set_sink(count_warning, NULL, TR_LOG_WARNING);
    write_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
