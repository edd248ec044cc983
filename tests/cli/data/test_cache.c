/* The data cache and files that go away under a run, as users of the program see them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "scratch.h"
#include "cli/session.h"
#include "support/files/npy.h"

#define LONG_RUN "--steps", "100000000", "--log", "json", "--set", "train.log_every=1000"

/* The path of an entry of the session's cache, in static storage; *count: how many there are. */
static const char *entry(int *count)
{
    static char path[1024];
    DIR *directory = opendir(session_cache());
    *count = 0;
    for (struct dirent *file; directory && (file = readdir(directory));) {
        if (!strstr(file->d_name, ".data")) continue;
        snprintf(path, sizeof path, "%s/%s", session_cache(), file->d_name);
        ++*count;
    }
    if (directory) closedir(directory);
    return path;
}

static int clear(void **state)
{
    (void)state;
    session_cache();
    expect_exit(0, "data", "cache", "--clear", "--data-cache-dir", session_cache());
    return 0;
}

static void trains_the_same_with_cache_and_without(void **state)
{
    (void)state;
    int count;
    char first[65];
    struct session session;
    static const char *const ways[] = {"--data-cache", "--data-cache", "--no-data-cache"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run(&session, "train", "tiny.yaml", "--out", "out", "--overwrite", ways[i], NULL),
                         0);
        if (i == 0) memcpy(first, hash_in(session.text[0]), sizeof first);
        assert_string_equal(hash_in(session.text[0]), first);
        assert_string_equal(session.text[1], "");
        session_release(&session);
        entry(&count);
        assert_int_equal(count, 2); /* the test data share what the training data found */
        if (i == 1) clear(NULL);
        entry(&count);
        assert_int_equal(count, i == 1 ? 0 : 2);
        if (i == 1) expect_exit(0, "train", "tiny.yaml", "--out", "out", "--overwrite");
    }
}

static void leaves_no_trace_where_it_is_off(void **state)
{
    (void)state;
    int count;
    static const char *const off[] = {"TRIREME_DATA_CACHE=false", NULL};
    struct session session;
    expect_exit(0, "train", "tiny.yaml", "--out", "out", "--overwrite", "--no-data-cache");
    expect_exit(0, "eval", "out", "--no-data-cache");
    assert_int_equal(run_with(&session, (struct setup){.environment = off}, "train", "tiny.yaml", "--out",
                              "out", "--overwrite", NULL),
                     0);
    session_release(&session);
    entry(&count);
    assert_int_equal(count, 0);
    expect_exit(0, "eval", "out");
    entry(&count);
    assert_int_equal(count, 1);
}

/* Only where no other directory is named does the home decide. */
static void finds_its_place(void **state)
{
    (void)state;
    char here[512], cache[700], home[700];
    struct session session;
    assert_non_null(getcwd(here, sizeof here));
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s/xdg", here);
    snprintf(home, sizeof home, "HOME=%s/home", here);
    const char *both[] = {"TRIREME_DATA_CACHE_DIR=", cache, home, NULL};
    const char *none[] = {"TRIREME_DATA_CACHE_DIR=", "XDG_CACHE_HOME=", home, NULL};
    const char *const *setups[] = {both, none};
    const char *const paths[] = {"xdg/trireme/lock", "home/.cache/trireme/lock"};
    for (int i = 0; i < 2; i++) {
        assert_false(tr_file_exists(paths[i]));
        struct setup setup = {.environment = setups[i]};
        int code = run_with(&session, setup, "train", "tiny.yaml", "--out", "out", "--overwrite", NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        session_release(&session);
        assert_true(tr_file_exists(paths[i]));
    }
}

static void a_verification_keeps_data_where_it_is_told(void **state)
{
    (void)state;
    int count;
    expect_exit(0, "train", "tiny.yaml", "--receipt", "--out", "out", "--overwrite", "--no-data-cache");
    expect_exit(0, "verify", "out", "--data-cache-dir", "verified");
    assert_true(tr_file_exists("verified/lock"));
    entry(&count);
    assert_int_equal(count, 0);
}

static void goes_on_without_a_cache_that_cannot_be(void **state)
{
    (void)state;
    struct session session;
    write_text("file", "no directory");
    assert_int_equal(run(&session, "train", "tiny.yaml", "--out", "out", "--overwrite", "--data-cache-dir",
                         "file/cache", NULL),
                     0);
    assert_non_null(strstr(session.text[1], "warning: data cache: "));
    assert_non_null(strstr(session.text[1], "going on without"));
    session_release(&session);
    assert_int_equal(mkdir("open", 0777), 0);
    assert_int_equal(chmod("open", 0777), 0);
    assert_int_equal(
        run(&session, "train", "tiny.yaml", "--out", "out", "--overwrite", "--data-cache-dir", "open", NULL),
        0);
    assert_non_null(strstr(session.text[1], "can be written by other users"));
    session_release(&session);
    assert_int_equal(run(&session, "data", "cache", "--data-cache-dir", "open", NULL), 2);
    session_release(&session);
}

static void lists_and_clears(void **state)
{
    (void)state;
    int count;
    struct session session;
    expect_exit(0, "train", "tiny.yaml", "--out", "out", "--overwrite");
    assert_int_equal(run(&session, "data", "cache", NULL), 0);
    assert_non_null(strstr(session.text[0], "good "));
    assert_non_null(strstr(session.text[0], "64 images 6x6x1, 3 classes"));
    assert_non_null(strstr(session.text[0], "2 entries, "));
    session_release(&session);
    assert_int_equal(truncate(entry(&count), 100), 0);
    assert_int_equal(run(&session, "data", "cache", NULL), 0);
    assert_non_null(strstr(session.text[0], "good "));
    assert_non_null(strstr(session.text[0], "damaged "));
    session_release(&session);
    assert_int_equal(run(&session, "data", "cache", "--json", NULL), 0);
    assert_non_null(strstr(session.text[0], "\"good\":false"));
    assert_non_null(strstr(session.text[0], "\"good\":true"));
    assert_non_null(strstr(session.text[0], "\"examples\":\"64 images 6x6x1, 3 classes\""));
    session_release(&session);
    assert_int_equal(run(&session, "train", "tiny.yaml", "--out", "out", "--overwrite", NULL), 0);
    assert_non_null(strstr(session.text[1], "it is made anew"));
    session_release(&session);
    assert_int_equal(run(&session, "data", "cache", "--clear", NULL), 0);
    assert_non_null(strstr(session.text[0], "removed 2 entries"));
    session_release(&session);
    entry(&count);
    assert_int_equal(count, 0);
    expect_exit(0, "eval", "out");
    assert_int_equal(run(&session, "data", "cache", NULL), 0);
    assert_non_null(strstr(session.text[0], "\n1 entry, "));
    session_release(&session);
    assert_int_equal(run(&session, "data", "cache", "--clear", NULL), 0);
    assert_memory_equal(session.text[0], "removed 1 entry, ", 17);
    session_release(&session);
    assert_int_equal(run(&session, "data", "cache", "--clear", "--json", NULL), 0);
    assert_string_equal(session.text[0], "{\"removed\": 0, \"bytes\": 0}\n");
    session_release(&session);
    /* Who has no home has none, and can say where. */
    static const char *const nowhere[] = {"TRIREME_DATA_CACHE_DIR=", "XDG_CACHE_HOME=", "HOME=", NULL};
    int code = run_with(&session, (struct setup){.environment = nowhere}, "data", "cache", NULL);
    expect_error(2, "there is no data cache without a home directory; give --data-cache-dir", &session, code);
    session_release(&session);
}

/* Runs that begin at the same moment, on data that nobody has unpacked. */
static void first_runs_at_once(void **state)
{
    (void)state;
    enum { RUNS = 4 };
    struct session sessions[RUNS];
    char hash[65] = "", out[RUNS][16];
    int count;
    for (int i = 0; i < RUNS; i++) {
        snprintf(out[i], sizeof out[i], "out%d", i);
        const char *arguments[] = {"train", "tiny.yaml", "--out", out[i], "--overwrite", NULL};
        session_start(&sessions[i], &(struct setup){.arguments = arguments});
    }
    for (int i = 0; i < RUNS; i++) {
        int code = session_end(&sessions[i]);
        if (code != 0) session_show(&sessions[i]);
        assert_int_equal(code, 0);
        if (i == 0) memcpy(hash, hash_in(sessions[i].text[0]), sizeof hash);
        assert_string_equal(hash_in(sessions[i].text[0]), hash);
        session_release(&sessions[i]);
    }
    entry(&count);
    assert_int_equal(count, 2);
}

/* ---- files that go away ---- */

static void write_array(void)
{
    enum { ROWS = 4096, WIDTH = 16 };
    static float rows[ROWS * WIDTH];
    static int32_t labels[ROWS];
    char shape[32];
    for (int i = 0; i < ROWS * WIDTH; i++) rows[i] = (float)(i % 97) / 97;
    snprintf(shape, sizeof shape, "%d, %d", ROWS, WIDTH);
    npy_write("array.npy", "<f4", shape, rows, sizeof rows);
    for (int i = 0; i < ROWS; i++) labels[i] = i % 3;
    snprintf(shape, sizeof shape, "%d,", ROWS);
    npy_write("labels.npy", "<i4", shape, labels, sizeof labels);
    write_text("array.yaml", "name: array\n"
                             "data: {train: {npy: {features: array.npy, labels: labels.npy}}}\n"
                             "layers: [{dense: 3}]\n"
                             "optimizer: {rule: sgd, rate: 0.01}\n"
                             "train: {batch: 64, steps: 1000}\n");
}

/* Starts a run that would last for ever, and waits until it trains. */
static void start(struct session *session, const char *model)
{
    const char *arguments[] = {"train", model, "--out", "out", "--overwrite", LONG_RUN, NULL};
    session_start(session, &(struct setup){.arguments = arguments});
    session_wait_for(session, 0, "\"step\":1000");
}

/* The run ends for a file that was cut short. What it is reading at that moment, by the map or by a call,
   decides how it tells so. */
static void expect_lost(struct session *session, const char *path)
{
    int code = session_end(session);
    const char *text = session->text[1];
    bool told = strstr(text, path) &&
                (strstr(text, "was cut short, or its disk failed") || strstr(text, "bytes early"));
    if (code != 1 || !told) session_show(session);
    assert_int_equal(code, 1);
    assert_true(told);
    session_release(session);
}

static void a_source_that_is_cut_short_ends_the_run(void **state)
{
    (void)state;
    struct session session;
    write_array();
    start(&session, "array.yaml");
    assert_int_equal(truncate("array.npy", 1000), 0);
    expect_lost(&session, "array.npy");
}

static void so_does_an_entry(void **state)
{
    (void)state;
    int count;
    struct session session;
    write_text("alone.yaml", "name: alone\n"
                             "data: {train: {idx: {images: images.idx, labels: labels.idx}}}\n"
                             "input: {scale: 1/255}\n"
                             "layers: [{dense: 3}]\n"
                             "optimizer: {rule: sgd, rate: 0.01}\n"
                             "train: {batch: 10, steps: 40}\n");
    expect_exit(0, "train", "alone.yaml", "--out", "out", "--overwrite"); /* makes the entry */
    start(&session, "alone.yaml");
    char path[1024];
    snprintf(path, sizeof path, "%s", entry(&count));
    assert_int_equal(count, 1);
    assert_int_equal(truncate(path, 100), 0);
    expect_lost(&session, path);
    /* And is made anew. */
    struct session again;
    assert_int_equal(run(&again, "train", "alone.yaml", "--out", "out", "--overwrite", NULL), 0);
    assert_non_null(strstr(again.text[1], "it is made anew"));
    session_release(&again);
}

static void a_source_that_changes_is_named(void **state)
{
    (void)state;
    struct session session;
    struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    start(&session, "tiny.yaml");
    assert_int_equal(utimensat(AT_FDCWD, "labels.idx", now, 0), 0);
    /* Both sets have it; the one that is looked at first after the change is named. */
    session_wait_for(&session, 1, " data) has changed since the run began");
    assert_non_null(strstr(session.text[1], "labels.idx\" (t"));
    session_signal(&session, SIGTERM);
    assert_int_equal(session_end(&session), 3);
    char *first = strstr(session.text[1], "has changed since");
    assert_null(strstr(first + 1, "has changed since"));
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(trains_the_same_with_cache_and_without, clear),
        cmocka_unit_test_setup(leaves_no_trace_where_it_is_off, clear),
        cmocka_unit_test_setup(finds_its_place, clear),
        cmocka_unit_test_setup(a_verification_keeps_data_where_it_is_told, clear),
        cmocka_unit_test_setup(goes_on_without_a_cache_that_cannot_be, clear),
        cmocka_unit_test_setup(lists_and_clears, clear),
        cmocka_unit_test_setup(first_runs_at_once, clear),
        cmocka_unit_test_setup(a_source_that_is_cut_short_ends_the_run, clear),
        cmocka_unit_test_setup(so_does_an_entry, clear),
        cmocka_unit_test_setup(a_source_that_changes_is_named, clear),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
