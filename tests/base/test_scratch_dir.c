/* A place has the room that was asked for, is held as long as its process lives, and is found when it was
 * killed. */
#include "base/scratch_dir.h"

#include "base/fail.h"
#include "base/files/file.h"
#include "support/files/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char kind[16]; /* of this run of the test alone */

static int name_kind(void **state)
{
    (void)state;
    snprintf(kind, sizeof kind, "test%d", (int)getpid());
    return 0;
}

static void put_file(const struct tr_scratch_dir *dir)
{
    char path[TR_SCRATCH_DIR_PATH + 8];
    snprintf(path, sizeof path, "%s/file", dir->path);
    assert_int_equal(tr_file_write_atomic(NULL, path, "bytes", 5), TR_OK);
}

/* In a child, which then waits to be killed; returns it, and its place. */
static pid_t start_holder(struct tr_scratch_dir *dir)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (tr_scratch_dir_make(kind, 1, dir) != TR_OK) _exit(1);
        put_file(dir);
        if (write(ends[1], dir->path, sizeof dir->path) != sizeof dir->path) _exit(1);
        for (;;) pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], dir->path, sizeof dir->path), sizeof dir->path);
    close(ends[0]);
    return child;
}

static void test_a_place_is_private_and_goes(void **state)
{
    (void)state;
    struct tr_scratch_dir dir;
    struct stat facts;
    assert_int_equal(tr_scratch_dir_make(kind, 1, &dir), TR_OK);
    assert_int_equal(stat(dir.path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    put_file(&dir);
    char path[TR_SCRATCH_DIR_PATH];
    memcpy(path, dir.path, sizeof path);
    tr_scratch_dir_remove(&dir);
    assert_false(tr_file_exists(path));
    assert_string_equal(dir.path, "");
    tr_scratch_dir_remove(&dir); /* an empty one is fine */
}

/* Held by the living, whatever their age; removed at once when its process was killed. */
static void test_what_nobody_holds_goes(void **state)
{
    (void)state;
    struct tr_scratch_dir held, own;
    pid_t child = start_holder(&held);
    const int before = descriptors_open();
    tr_scratch_dir_sweep(kind);
    assert_true(tr_file_is_directory(held.path));
    assert_int_equal(tr_scratch_dir_make(kind, 1, &own), TR_OK);
    assert_true(tr_file_is_directory(held.path));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(tr_file_is_directory(held.path));
    tr_fail(TR_EINVAL, "kept");
    tr_scratch_dir_sweep(kind);
    assert_string_equal(tr_error_message(), "kept");
    assert_false(tr_file_exists(held.path));
    assert_true(tr_file_is_directory(own.path)); /* this one is held */
    tr_scratch_dir_remove(&own);
    /* The next one that is made looks for them by itself. */
    child = start_holder(&held);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(tr_scratch_dir_make(kind, 1, &own), TR_OK);
    assert_false(tr_file_exists(held.path));
    tr_scratch_dir_remove(&own);
    assert_int_equal(descriptors_open(), before);
}

/* One that has no name yet is left to its maker for a minute; files, and what belongs to others, for ever. */
static void test_the_unnamed_grow_old(void **state)
{
    (void)state;
    const time_t now = time(NULL);
    char young[] = "/tmp/trireme-new-XXXXXX", old[] = "/tmp/trireme-new-XXXXXX";
    char file[TR_SCRATCH_DIR_PATH], foreign[TR_SCRATCH_DIR_PATH], other[TR_SCRATCH_DIR_PATH];
    assert_non_null(mkdtemp(young));
    assert_non_null(mkdtemp(old));
    snprintf(file, sizeof file, "/tmp/trireme-%s-file", kind);
    snprintf(other, sizeof other, "/tmp/trireme-%sx-dir", kind);
    snprintf(foreign, sizeof foreign, "/tmp/trireme-%s-dir", kind);
    assert_int_equal(tr_file_write_atomic(NULL, file, "bytes", 5), TR_OK);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(mkdir(foreign, 0700), 0);
    const bool owned = chown(foreign, geteuid() == 0 ? 12345 : geteuid(), getegid()) == 0 && geteuid() == 0;
    assert_int_equal(utimes(young, (struct timeval[2]){{now - 20, 0}, {now - 20, 0}}), 0);
    assert_int_equal(utimes(old, (struct timeval[2]){{now - 90, 0}, {now - 90, 0}}), 0);
    tr_scratch_dir_sweep(kind);
    assert_false(tr_file_exists(old));
    assert_true(tr_file_is_directory(young) || time(NULL) - now >= 40);
    assert_true(tr_file_exists(file));
    assert_true(tr_file_exists(other));
    assert_int_equal(tr_file_exists(foreign), owned);
    rmdir(young);
    assert_int_equal(unlink(file) + rmdir(other), 0);
    if (owned) rmdir(foreign);
}

/* Whether `path` is still there after half a minute. */
static bool stays(const char *path)
{
    for (int i = 0; i < 3000; i++) {
        if (!tr_file_exists(path)) return false;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return true;
}

/* What cannot get its name is not left behind without one. */
static void test_a_failed_one_goes(void **state)
{
    (void)state;
    static const char *const above[] = {"/dev/shm", "/tmp"};
    struct tr_file_names names[2][2] = {{{0}}};
    struct tr_scratch_dir dir;
    const int next = dup(1);
    close(next);
    for (int i = 0; i < 2; i++)
        if (tr_file_is_directory(above[i]))
            assert_int_equal(tr_file_list(NULL, above[i], &names[0][i]), TR_OK);
    assert_int_equal(tr_scratch_dir_make("no/folder", 1, &dir), TR_EIO);
    assert_string_equal(dir.path, "");
    assert_int_equal(dir.lock, -1);
    assert_int_equal(dup(1), next); /* nothing is open */
    close(next);
    for (int i = 0; i < 2; i++) {
        const struct tr_file_names *before = &names[0][i], *after = &names[1][i];
        if (!tr_file_is_directory(above[i])) continue;
        assert_int_equal(tr_file_list(NULL, above[i], &names[1][i]), TR_OK);
        for (int64_t a = 0, b = 0; a < after->count; a++) {
            char path[512];
            while (b < before->count && strcmp(before->name[b], after->name[a]) < 0) b++;
            if (b < before->count && strcmp(before->name[b], after->name[a]) == 0) continue;
            if (strncmp(after->name[a], "trireme-new-", 12) != 0) continue;
            /* One of another process soon gets its name. */
            snprintf(path, sizeof path, "%s/%s", above[i], after->name[a]);
            assert_false(stays(path));
        }
        for (int k = 0; k < 2; k++) tr_file_names_free(&names[k][i]);
    }
}

/* A link of the kind's name leads out of the place: neither it nor what it leads to is touched. */
static void test_links_are_not_followed(void **state)
{
    (void)state;
    struct tr_scratch_dir other;
    char link[TR_SCRATCH_DIR_PATH], name[16];
    memcpy(name, kind, sizeof name);
    kind[0] = 'x';
    assert_int_equal(tr_scratch_dir_make(kind, 1, &other), TR_OK);
    memcpy(kind, name, sizeof kind);
    snprintf(link, sizeof link, "/tmp/trireme-%s-link", kind);
    close(other.lock);
    other.lock = -1;
    assert_int_equal(symlink(other.path, link), 0);
    tr_scratch_dir_sweep(kind);
    assert_true(tr_file_is_directory(other.path));
    assert_int_equal(unlink(link), 0);
    tr_scratch_dir_remove(&other);
}

static void test_room_is_asked_for(void **state)
{
    (void)state;
    struct tr_scratch_dir dir;
    assert_true(tr_scratch_dir_room("/tmp") >= 0);
    assert_int_equal(tr_scratch_dir_room("/nowhere/at/all"), -1);
    if (tr_scratch_dir_room("/dev/shm") == INT64_MAX || tr_scratch_dir_room("/tmp") == INT64_MAX) skip();
    assert_int_equal(tr_scratch_dir_make(kind, INT64_MAX, &dir), TR_EIO);
    assert_string_equal(dir.path, "");
    assert_non_null(strstr(tr_error_message(), "/dev/shm has"));
    assert_non_null(strstr(tr_error_message(), "/tmp has"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_place_is_private_and_goes), cmocka_unit_test(test_what_nobody_holds_goes),
        cmocka_unit_test(test_the_unnamed_grow_old),        cmocka_unit_test(test_a_failed_one_goes),
        cmocka_unit_test(test_links_are_not_followed),      cmocka_unit_test(test_room_is_asked_for),
    };
    return cmocka_run_group_tests(tests, name_kind, NULL);
}
