/* Data through a store: what it took while they were opened, locks, descriptors, memory, it has given back,
 * also where memory fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "data/cache/store.h"
#include "data/support.h"
#include "refuse.h"
#include "support/files/npy.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS "{idx: {images: images, labels: labels}}"

enum { IMAGES = 20, SIDE = 5 };

static char cache_path[512];

static int descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* Fails the test if anybody holds a part of the file. */
static void expect_free(const char *path, const char *what)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(fcntl(descriptor, F_OFD_GETLK, &lock), 0);
    close(descriptor);
    if (lock.l_type != F_UNLCK) fail_msg("%s: byte %lld is still held", what, (long long)lock.l_start);
}

static tr_status open_data(const char *description, tr_store *store, int slot, tr_source **out)
{
    tr_config *node;
    *out = NULL;
    TR_TRY(tr_config_parse(description, strlen(description), "digits", &node));
    tr_status status = tr_source_open_config(node, test_directory(), NULL, store, slot, out);
    tr_config_destroy(&node);
    return status;
}

static tr_status open_digits(tr_store *store, int slot, tr_source **out)
{
    return open_data(DIGITS, store, slot, out);
}

/* With a cache and without; with memory that processes share and without; made now, and found. */
static void open_data_hold_up_nobody(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const bool with_cache = kind & 1, shares = kind & 2;
        char path[64], lock[sizeof cache_path + 8];
        tr_file_remove(NULL, cache_path);
        int memory = memfd_create("slot", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
        snprintf(lock, sizeof lock, "%s/lock", cache_path);
        for (int again = 0; again < 2; again++) {
            const int64_t live = tr_alloc_live();
            const int before = descriptors();
            int slot[TR_STORE_SLOTS];
            tr_store *store;
            tr_source *source;
            for (int i = 0; i < TR_STORE_SLOTS; i++)
                slot[i] = i == 0 && shares ? open(path, O_RDWR | O_CLOEXEC) : -1;
            assert_int_equal(tr_store_create(NULL, with_cache ? cache_path : NULL, 0, &store), TR_OK);
            tr_store_share(store, slot, 1e9, false);
            assert_int_equal(open_digits(store, 0, &source), TR_OK);
            expect_free(path, "memory that processes share");
            if (with_cache) expect_free(lock, "the cache");
            tr_source_close(&source);
            tr_store_destroy(&store);
            assert_int_equal(tr_alloc_live(), live);
            assert_int_equal(descriptors(), before);
        }
        close(memory);
    }
}

/* Whichever allocation fails while an entry is made, or data are opened that need none: an error, or data
   without the cache. */
static void without_memory_nothing_stays(void **state)
{
    static const char *const descriptions[] = {DIGITS, "{npy: {features: pixels.npy}}"};
    (void)state;
    npy_write(test_path("pixels.npy"), "|u1", "3, 2, 2", "0123456789ab", 12);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        tr_store *store;
        refuse_begin(at);
        const tr_status status = tr_store_create(NULL, cache_path, 0, &store);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_store_destroy(&store);
        assert_int_equal(tr_alloc_live(), live);
    }
    for (int64_t at = 0, kind = 0; kind < 2; at++) {
        const int64_t live = tr_alloc_live();
        const int before = descriptors();
        tr_store *store;
        tr_source *source = NULL;
        tr_file_remove(NULL, cache_path);
        refuse_begin(at);
        tr_status status = tr_store_create(NULL, cache_path, 0, &store);
        if (status == TR_OK) status = open_data(descriptions[kind], store, -1, &source);
        const bool done = refuse_end();
        if (status != TR_OK && (done || status != TR_ENOMEM))
            fail_msg("allocation %lld refused gives %s: %s", (long long)at, tr_status_name(status),
                     tr_error_message());
        assert_int_equal(source != NULL, status == TR_OK);
        tr_source_close(&source);
        tr_store_destroy(&store);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(descriptors(), before);
        if (done) kind++, at = -1;
    }
}

static int warnings;
static char last_warning[512];

static void note_warning(void *user, enum tr_log_level level, const char *message)
{
    (void)user, (void)level;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

/* A store without a cache that shares this memory; the descriptor is taken. */
static tr_store *share(int slot)
{
    int slots[TR_STORE_SLOTS];
    tr_store *store;
    assert_true(slot >= 0);
    for (int i = 0; i < TR_STORE_SLOTS; i++) slots[i] = i ? -1 : slot;
    assert_int_equal(tr_store_create(NULL, NULL, 0, &store), TR_OK);
    tr_store_share(store, slots, 1e9, false);
    return store;
}

/* Memory that cannot be emptied, or not be written: a process has its own data then, and says so. */
static void memory_that_cannot_be_shared_is_left(void **state)
{
    (void)state;
    tr_log_set_sink(note_warning, NULL, TR_LOG_WARNING);
    for (int sealed = 0; sealed < 2; sealed++) {
        const int64_t live = tr_alloc_live();
        const int before = descriptors();
        const int memory = memfd_create("slot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        char path[64];
        struct stat facts;
        tr_source *source, *direct = must_open(DIGITS);
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
        if (sealed) assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_GROW), 0);
        tr_store *store = share(open(path, (sealed ? O_RDWR : O_RDONLY) | O_CLOEXEC));
        warnings = 0;
        assert_int_equal(open_digits(store, 0, &source), TR_OK);
        expect_same_source(direct, source);
        assert_string_not_equal(source->class->name, "unpacked");
        assert_int_equal(warnings, 1);
        assert_non_null(strstr(last_warning, "; each process of this host unpacks the data for itself"));
        if (!sealed) assert_non_null(strstr(last_warning, "memory that processes share: cannot be emptied"));
        assert_int_equal(fstat(memory, &facts), 0);
        assert_int_equal(facts.st_size, 0);
        tr_source_close(&source);
        tr_source_close(&direct);
        tr_store_destroy(&store);
        close(memory);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(descriptors(), before);
    }
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
}

/* What lies in the memory is nothing, or damaged, or an entry of a cache that this process has not: the data
   are right, and where nothing whole is there they are shared then. */
static void memory_may_hold_anything(void **state)
{
    enum { ZEROS, NOTHING, OTHERS, DAMAGED, ENTRY, KINDS };
    (void)state;
    tr_source *direct = must_open(DIGITS);
    for (int kind = 0; kind < KINDS; kind++) {
        const int64_t live = tr_alloc_live();
        const int memory = memfd_create("slot", MFD_CLOEXEC);
        char path[64];
        struct stat facts;
        tr_source *source;
        tr_store *store;
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
        if (kind == DAMAGED || kind == ENTRY) {
            int slots[TR_STORE_SLOTS];
            for (int i = 0; i < TR_STORE_SLOTS; i++) slots[i] = i ? -1 : open(path, O_RDWR | O_CLOEXEC);
            assert_int_equal(tr_store_create(NULL, kind == ENTRY ? cache_path : NULL, 0, &store), TR_OK);
            tr_store_share(store, slots, 1e9, false);
            assert_int_equal(open_digits(store, 0, &source), TR_OK);
            tr_source_close(&source);
            tr_store_destroy(&store);
        }
        assert_int_equal(fstat(memory, &facts), 0);
        const bool unknown = kind == ZEROS || kind == NOTHING || kind == OTHERS;
        if (unknown) assert_int_equal(ftruncate(memory, 4096), 0);
        if (kind == OTHERS) assert_int_equal(pwrite(memory, "trirslow\1", 9, 0), 9);
        if (kind == NOTHING) assert_int_equal(pwrite(memory, "trirslot", 8, 0), 8);
        if (kind == DAMAGED) assert_int_equal(ftruncate(memory, facts.st_size - 1), 0);
        for (int again = 0; again < 2; again++) {
            store = share(open(path, O_RDWR | O_CLOEXEC));
            if (open_digits(store, 0, &source) != TR_OK) fail_msg("%d: %s", kind, tr_error_message());
            expect_same_source(direct, source);
            if (unknown) assert_string_equal(source->class->name, "unpacked");
            tr_source_close(&source);
            tr_store_destroy(&store);
        }
        close(memory);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&direct);
}

/* The same description, read in two directories: each process has its own data. */
static void requests_are_of_their_directory(void **state)
{
    (void)state;
    static const char description[] = "{idx: {images: images}}";
    static uint8_t images[16 + 4] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 9, 8, 7, 6};
    const int memory = memfd_create("slot", MFD_CLOEXEC);
    char path[64];
    assert_int_equal(mkdir(test_path("other"), 0700), 0);
    write_file("other/images", images, sizeof images);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    for (int other = 0; other < 2; other++) {
        tr_config *node;
        tr_source *source;
        tr_store *store = share(open(path, O_RDWR | O_CLOEXEC));
        assert_int_equal(tr_config_parse(description, strlen(description), "images", &node), TR_OK);
        assert_int_equal(tr_source_open_config(node, other ? test_path("other") : test_directory(), NULL,
                                               store, 0, &source),
                         TR_OK);
        assert_int_equal(source->info.count, other ? 1 : IMAGES);
        tr_config_destroy(&node);
        tr_source_close(&source);
        tr_store_destroy(&store);
    }
    close(memory);
}

/* Whichever allocation fails while data are shared: an error, or right data; and what the next process finds
   is whole. */
static void shared_data_are_whole_without_memory(void **state)
{
    (void)state;
    tr_source *direct = must_open(DIGITS);
    tr_log_set_sink(note_warning, NULL, TR_LOG_WARNING);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int memory = memfd_create("slot", MFD_CLOEXEC);
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
        const int64_t live = tr_alloc_live();
        const int before = descriptors();
        for (int next = 0; next < 2; next++) {
            tr_source *source;
            tr_store *store = share(open(path, O_RDWR | O_CLOEXEC));
            warnings = 0;
            if (!next) refuse_begin(at);
            tr_status status = open_digits(store, 0, &source);
            if (!next) done = refuse_end();
            if (status != (source ? TR_OK : TR_ENOMEM) || ((next || done) && !source))
                fail_msg("allocation %d: %s", (int)at, tr_error_message());
            if (source) expect_same_source(direct, source);
            if (source) assert_int_equal(warnings, strcmp(source->class->name, "unpacked") != 0);
            tr_source_close(&source);
            tr_store_destroy(&store);
            assert_int_equal(tr_alloc_live(), live);
            assert_int_equal(descriptors(), before);
        }
        close(memory);
    }
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
    tr_source_close(&direct);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_cannot_be_shared_is_left),
        cmocka_unit_test(memory_may_hold_anything),
        cmocka_unit_test(requests_are_of_their_directory),
        cmocka_unit_test(shared_data_are_whole_without_memory),
        cmocka_unit_test(open_data_hold_up_nobody),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    uint8_t images[16 + IMAGES * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    uint8_t labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    for (size_t i = 16; i < sizeof images; i++) images[i] = (uint8_t)(i * 37);
    write_file("images", images, sizeof images);
    write_file("labels", labels, sizeof labels);
    snprintf(cache_path, sizeof cache_path, "%s", test_path("cache"));
    return cmocka_run_group_tests_name("data.store", tests, NULL, NULL);
}
