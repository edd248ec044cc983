/* The files of the data cache by themselves: records that are not well formed count for nothing, directories
 * that are not the user's are refused, and only what is ours is looked at and removed.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "data/cache/cache.h"
#include "data/cache/files.h"
#include "data/cache/store.h"
#include "data/source.h"
#include "data/support.h"
#include "refuse.h"
#include "support/files/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define KEY           "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER         "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static tr_cache *open_cache(void)
{
    tr_cache *cache;
    if (tr_cache_open(NULL, test_path("cache"), 0, &cache) != TR_OK) fail_msg("%s", tr_error_message());
    return cache;
}

/* ---- records ---- */

/* Writes the record of KEY with the right checksum. */
static void write_record(const char *text)
{
    char sealed[600];
    snprintf(sealed, sizeof sealed, "%s%08x\n", text, tr_crc32c(0, text, strlen(text)));
    write_text("cache/" KEY ".note", sealed);
    assert_int_equal(chmod(test_path("cache/" KEY ".note"), 0600), 0);
}

static void records_are_read_again(void **unused)
{
    (void)unused;
    tr_cache *cache = open_cache();
    struct tr_cache_record record = {.entry = OTHER, .digest = KEY}, got;
    assert_false(tr_cache_record(cache, KEY, &got));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tr_cache_write_record(cache, KEY, &record), TR_OK);
        memset(&got, 0xee, sizeof got);
        assert_true(tr_cache_record(cache, KEY, &got));
        assert_string_equal(got.entry, i ? "" : OTHER);
        assert_string_equal(got.digest, KEY);
        record.entry[0] = '\0';
    }
    tr_cache_close(&cache);
    assert_null(cache);
    struct stat facts;
    assert_int_equal(stat(test_path("cache/lock"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
}

static void other_records_do_not_count(void **unused)
{
    static const char *const bad[] = {
        "",
        "trireme note 1\nentry " OTHER "\n",
        "trireme note 2\nentry " OTHER "\ndigest " KEY "\n",
        "trireme note 1\nentry " OTHER "\ndigest " OTHER "0\n",
        "trireme note 1\nentry FEDCBA9876543210fedcba9876543210fedcba9876543210fedcba9876543210\ndigest " KEY
        "\n",
        "trireme note 1\nentry fedcba987654321\ndigest " KEY "\n",
        "trireme note 1\nentry --\ndigest " KEY "\n",
        "trireme note 1\nentry -\ndigest 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\n",
        "trireme note 1\nentry -\ndigest 0123456789abcdef\n",
        "trireme note 1\nentry -\ndigest g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
        "trireme note 1\nentry  -\ndigest " KEY "\n",
        "trireme note 1\nentry -\ndigest " KEY "\n\n",
        "trireme note 1\nentry " OTHER "\ndigest " KEY
        "\nand more, so that it is longer than every record could ever be: " OTHER OTHER OTHER,
    };
    (void)unused;
    tr_cache *cache = open_cache();
    struct tr_cache_record got;
    write_record("trireme note 1\nentry -\ndigest " KEY "\n");
    assert_true(tr_cache_record(cache, KEY, &got));
    write_record("trireme note 1\nentry " OTHER "\ndigest " KEY "\n");
    assert_true(tr_cache_record(cache, KEY, &got));
    for (int i = 0; i < LENGTH(bad); i++) {
        write_record(bad[i]);
        if (tr_cache_record(cache, KEY, &got)) fail_msg("%s", bad[i]);
    }
    write_text("cache/" KEY ".note", "trireme note 1\nentry -\ndigest " KEY "\n00000000\n");
    assert_false(tr_cache_record(cache, KEY, &got));
    tr_cache_close(&cache);
}

/* Whichever allocation fails, it is told, and what was there stays. */
static void a_lack_of_memory_is_told(void **unused)
{
    (void)unused;
    write_text("table", "1,2,0\n3,4,1\n");
    tr_source *source = must_open("{csv: {path: table}}");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        const struct tr_cache_record record = {.entry = OTHER, .digest = KEY};
        tr_cache *cache = NULL;
        tr_source *cached = NULL;
        refuse_begin(at);
        tr_status status = tr_cache_open(NULL, test_path("cache"), 0, &cache);
        if (status == TR_OK) status = tr_cache_write_record(cache, KEY, &record);
        if (status == TR_OK) status = tr_cache_put(cache, KEY, source);
        if (status == TR_OK) status = tr_cache_get(cache, KEY, true, &cached);
        done = refuse_end();
        if (status != TR_OK && (done || status != TR_ENOMEM))
            fail_msg("allocation %d: %s", (int)at, tr_error_message());
        if (done) assert_non_null(cached);
        tr_source_close(&cached);
        tr_cache_close(&cache);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&source);
    /* the name of the entry is the first thing that is made */
    tr_cache *cache = open_cache();
    source = must_open("{csv: {path: table}}");
    refuse_begin(0);
    assert_int_equal(tr_cache_put(cache, OTHER, source), TR_ENOMEM);
    assert_false(refuse_end());
    assert_false(tr_file_exists(test_path("cache/" OTHER ".data")));
    tr_source_close(&source);
    tr_cache_close(&cache);
}

/* ---- directories ---- */

static void directories_are_the_users_alone(void **unused)
{
    struct stat facts;
    (void)unused;
    assert_int_equal(tr_cache_check_directory(NULL, test_path("a/b/c"), false), TR_ENOTFOUND);
    assert_int_equal(tr_cache_check_directory(NULL, test_path("a/b/c"), true), TR_OK);
    assert_int_equal(tr_cache_check_directory(NULL, test_path("a/b/c"), false), TR_OK);
    assert_int_equal(stat(test_path("a/b/c"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    write_text("file", "x");
    for (int make = 0; make < 2; make++) {
        assert_int_not_equal(tr_cache_check_directory(NULL, test_path("file"), make), TR_OK);
        assert_non_null(strstr(tr_error_message(), "Not a directory"));
        assert_int_not_equal(tr_cache_check_directory(NULL, test_path("file/below"), make), TR_OK);
        assert_non_null(strstr(tr_error_message(), "Not a directory"));
    }
    static const mode_t modes[] = {0720, 0702, 0722};
    for (int i = 0; i < LENGTH(modes); i++) {
        assert_int_equal(chmod(test_path("a/b/c"), modes[i]), 0);
        assert_int_equal(tr_cache_check_directory(NULL, test_path("a/b/c"), true), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(),
                               "/a/b/c\" can be written by other users; give it to yourself alone (chmod "
                               "700), or choose another directory"));
    }
    assert_int_equal(chmod(test_path("a/b/c"), 0755), 0); /* others may read */
    assert_int_equal(tr_cache_check_directory(NULL, test_path("a/b/c"), true), TR_OK);
}

/* ---- what is ours ---- */

struct seen {
    int count, at_stop;
    int64_t bytes;
};

static tr_status see(void *user, const struct tr_cache_file *file)
{
    struct seen *seen = user;
    seen->count++;
    seen->bytes += file->size;
    assert_memory_equal(file->path, test_directory(), strlen(test_directory()));
    return seen->count == seen->at_stop ? tr_fail(TR_EMISMATCH, "enough") : TR_OK;
}

static int64_t ago(int64_t seconds)
{
    return (int64_t)time(NULL) - seconds;
}

static void set_time(const char *name, int64_t seconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, test_path(name), times, 0), 0);
}

static bool exists(const char *name)
{
    return tr_file_exists(test_path(name));
}

static void only_our_files_are_seen(void **unused)
{
    static const char *const others[] = {"own/letter.data",   "own/" KEY,         "own/" KEY ".datas",
                                         "own/" KEY "0.data", "own/" KEY ".Data", "own/0123.data",
                                         "own/lock",          "own/x" KEY ".data"};
    struct seen seen = {0};
    (void)unused;
    mkdir(test_path("own"), 0700);
    for (int i = 0; i < LENGTH(others); i++) write_text(others[i], "other");
    write_text("own/" KEY ".data", "12");
    write_text("own/" KEY ".note", "345");
    write_text("own/" OTHER ".data.17-3.tmp", "6789");
    mkdir(test_path("own/" OTHER ".data"), 0700); /* no file */
    assert_int_equal(symlink("letter.data", test_path("own/" OTHER ".note")), 0);
    assert_int_equal(tr_cache_each(NULL, test_path("own"), see, &seen), TR_OK);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.bytes, 9);
    seen = (struct seen){.at_stop = 2};
    assert_int_equal(tr_cache_each(NULL, test_path("own"), see, &seen), TR_EMISMATCH);
    assert_int_equal(seen.count, 2);
    assert_int_not_equal(tr_cache_each(NULL, test_path("nowhere"), see, &seen), TR_OK);
}

/* Old records go, and what writers left who are no more; a minute is not old. */
static void what_is_old_is_swept_up(void **unused)
{
    (void)unused;
    mkdir(test_path("old"), 0700);
    write_text("old/" KEY ".data", "x");
    write_text("old/" KEY ".note", "x");
    write_text("old/" OTHER ".note", "x");
    write_text("old/" KEY ".data.1-1.tmp", "x");
    write_text("old/" OTHER ".data.1-1.tmp", "x");
    write_text("old/letter.tmp", "x");
    set_time("old/" KEY ".data", 1000);
    set_time("old/letter.tmp", 1000);
    set_time("old/" KEY ".note", ago(91LL * 24 * 3600));
    set_time("old/" OTHER ".note", ago(89LL * 24 * 3600));
    set_time("old/" KEY ".data.1-1.tmp", ago(3600));
    set_time("old/" OTHER ".data.1-1.tmp", ago(5));
    write_text("old/" OTHER ".note.1-2.tmp", "x"); /* old, and still being written */
    set_time("old/" OTHER ".note.1-2.tmp", ago(3600));
    const int writer = open(test_path("old/" OTHER ".note.1-2.tmp"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(writer, LOCK_EX), 0);
    const int descriptors = descriptors_open();
    tr_cache_sweep(NULL, test_path("old"));
    assert_int_equal(descriptors_open(), descriptors);
    assert_true(exists("old/" KEY ".data") && exists("old/letter.tmp"));
    assert_false(exists("old/" KEY ".note"));
    assert_true(exists("old/" OTHER ".note"));
    assert_false(exists("old/" KEY ".data.1-1.tmp"));
    assert_true(exists("old/" OTHER ".data.1-1.tmp"));
    assert_true(exists("old/" OTHER ".note.1-2.tmp"));
    close(writer);
    tr_cache_sweep(NULL, test_path("old"));
    assert_false(exists("old/" OTHER ".note.1-2.tmp"));
}

/* The least recently used entries go until the rest is within the limit; the one that was just made stays. */
static void the_oldest_go_first(void **unused)
{
    char name[4][100];
    (void)unused;
    for (int64_t limit = 0; limit <= 40; limit += 10) {
        tr_file_remove(NULL, test_path("full"));
        mkdir(test_path("full"), 0700);
        for (int i = 0; i < 4; i++) {
            snprintf(name[i], sizeof name[i], "full/%c%s.data", "2f0a"[i], &KEY[1]);
            write_text(name[i], "ten bytes.");
            set_time(name[i], 1000 + 10 * (i * 3 % 4)); /* used in the order 0, 3, 2, 1 */
        }
        write_text("full/" KEY ".note", "a record takes no part");
        tr_cache_trim(NULL, test_path("full"), limit, name[3] + strlen("full/"));
        /* 3 is kept */
        assert_true(exists(name[3]));
        assert_int_equal(exists(name[0]), limit >= 40);
        assert_int_equal(exists(name[2]), limit >= 30);
        assert_int_equal(exists(name[1]), limit >= 20);
        assert_true(exists("full/" KEY ".note"));
    }
}

/* Where memory is lacking nothing goes: which entries are old is not known. */
static void none_goes_without_memory(void **unused)
{
    char name[3][100];
    (void)unused;
    tr_file_remove(NULL, test_path("full"));
    mkdir(test_path("full"), 0700);
    for (int i = 0; i < 3; i++) {
        snprintf(name[i], sizeof name[i], "full/%c%s.data", "2f0"[i], &KEY[1]);
        write_text(name[i], "ten bytes.");
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_cache_trim(NULL, test_path("full"), 0, KEY);
        done = refuse_end();
        assert_int_equal(tr_alloc_live(), live);
        for (int i = 0; i < 3; i++) assert_int_equal(exists(name[i]), !done || i == 2); /* which is KEY */
    }
}

/* What was not written whole is not there, and nothing of it. */
static void a_failure_leaves_no_entry(void **unused)
{
    char path[500];
    (void)unused;
    snprintf(path, sizeof path, "%s", test_path("partly/" KEY ".data"));
    for (int failed = 0; failed < 2; failed++) {
        const tr_status status = failed ? TR_ECORRUPT : TR_OK;
        struct tr_cache_writing writing;
        mkdir(test_path("partly"), 0700);
        assert_int_equal(tr_cache_begin(NULL, path, 0, &writing), TR_OK);
        assert_int_equal(tr_file_write(&writing.writer, "some", 4), TR_OK);
        assert_int_equal(tr_cache_finish(&writing, status), status);
        assert_int_equal(exists("partly/" KEY ".data"), !failed);
        tr_file_discard(NULL, path);
        assert_int_equal(rmdir(test_path("partly")), 0);
    }
}

/* ---- the store ---- */

static tr_status open_table(tr_store *store, tr_source **out)
{
    *out = NULL;
    return tr_source_open_through(store, "{csv: {path: table}}", test_directory(), NULL, out);
}

static void stores_have_limits(void **unused)
{
    tr_store *store;
    tr_source *source;
    (void)unused;
    write_text("table", "1,2,0\n3,4,1\n"); /* 12 bytes */
    for (int64_t memory = 11; memory <= 12; memory++) {
        assert_int_equal(tr_store_create(NULL, NULL, 0, &store), TR_OK);
        tr_store_allow_memory(store, memory);
        assert_int_equal(open_table(store, &source), memory < 12 ? TR_ENOMEM : TR_OK);
        if (memory < 12)
            assert_non_null(strstr(tr_error_message(),
                                   "table\": the data are unpacked into memory; their files alone have 12"));
        tr_source_close(&source);
        tr_store_destroy(&store);
    }
    atomic_int stop = 0;
    assert_int_equal(tr_store_create(NULL, NULL, 0, &store), TR_OK);
    tr_store_stop(store, &stop);
    assert_int_equal(open_table(store, &source), TR_OK);
    tr_source_close(&source);
    stop = 1;
    assert_int_equal(open_table(store, &source), TR_EINTERRUPTED);
    assert_string_equal(tr_error_message(), "opening the data was ended by the stop of the settings");
    tr_store_destroy(&store);
    /* what is larger than all that the cache may take */
    tr_cache *cache;
    assert_int_equal(open_table(NULL, &source), TR_OK);
    assert_int_equal(tr_cache_open(NULL, test_path("small"), 4, &cache), TR_OK);
    assert_int_equal(tr_cache_put(cache, KEY, source),
                     TR_OK); /* 4 numbers: how many bytes each is known only later */
    tr_cache_close(&cache);
    assert_int_equal(tr_cache_open(NULL, test_path("small"), 3, &cache), TR_OK);
    assert_int_equal(tr_cache_put(cache, KEY, source), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "small\": the data are larger than its limit of 3 bytes"));
    tr_cache_close(&cache);
    tr_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_again),   cmocka_unit_test(other_records_do_not_count),
        cmocka_unit_test(a_lack_of_memory_is_told), cmocka_unit_test(directories_are_the_users_alone),
        cmocka_unit_test(only_our_files_are_seen),  cmocka_unit_test(what_is_old_is_swept_up),
        cmocka_unit_test(the_oldest_go_first),      cmocka_unit_test(stores_have_limits),
        cmocka_unit_test(none_goes_without_memory), cmocka_unit_test(a_failure_leaves_no_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
