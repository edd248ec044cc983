/* What is done through the table of a file system, its messages, and how far it comes where a call fails. */
#include "base/files/ops.h"

#include "base/fail.h"
#include "base/files/file_fault.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static void reasons_have_their_advice(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *advice;
    } cases[] = {
        {ENOSPC, "; free space there or choose another place"},
        {EDQUOT, "; free space within the quota or choose another place"},
        {EFBIG, "; raise the file size limit (ulimit -f) or choose another file system"},
        {EACCES, "; check the permissions or choose another place"},
        {EPERM, "; check the permissions or choose another place"},
        {EROFS, "; check the permissions or choose another place"},
        {ENOENT, "; check the path"},
        {ENOTDIR, "; check the path"},
        {EEXIST, "; remove it or choose another name"},
        {ENOTEMPTY, "; remove it or choose another name"},
        {ELOOP, "; a symbolic link is not followed here: remove it or choose another place"},
        {ENXIO, "; a regular file is needed: remove what is there or choose another place"},
        {EIO, "; check the disk and the system log"},
        {ENAMETOOLONG, "; choose a shorter name"},
        {EMFILE, "; raise the limit on open files (ulimit -n)"},
        {ENFILE, "; raise the limit on open files (ulimit -n)"},
        {EINVAL, ""},
    };
    char expected[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tr_file_failure("fetch", "a path", cases[i].error), TR_EIO);
        snprintf(expected, sizeof expected, "fetch \"a path\": %s%s", strerror(cases[i].error),
                 cases[i].advice);
        assert_string_equal(tr_error_message(), expected);
    }
}

/* ---- writing ---- */

static int odd_calls;

/* Is interrupted, then takes one byte at a time. */
static int64_t write_bytes(void *context, int descriptor, const void *data, size_t size)
{
    (void)size;
    return odd_calls++ % 2 == 0 ? -EINTR : tr_file_ops_posix.write(context, descriptor, data, 1);
}

/* Takes nothing, without a reason. */
static int64_t write_nothing(void *context, int descriptor, const void *data, size_t size)
{
    (void)context, (void)descriptor, (void)data, (void)size;
    return 0;
}

static void writes_go_on_until_all_is_there(void **state)
{
    (void)state;
    struct tr_file_ops ops = tr_file_ops_posix;
    const tr_file_system files = {&ops, NULL};
    struct tr_file_writer writer;
    struct tr_file_content content;
    const char *path = scratch_in("written");
    ops.write = write_bytes;
    assert_int_equal(tr_file_begin(&files, path, TR_FILE_NEW, 0, &writer), TR_OK);
    assert_int_equal(tr_file_write(&writer, "abcde", 5), TR_OK);
    assert_int_equal(tr_file_write(&writer, "", 0), TR_OK);
    assert_int_equal(odd_calls, 10);
    ops.write = write_nothing;
    assert_int_equal(tr_file_write(&writer, "fg", 2), TR_EIO);
    assert_message_has("Input/output error after 5 bytes; check the disk");
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
    assert_int_equal(tr_file_read(path, 5, &content), TR_OK);
    assert_string_equal(content.data, "abcde");
    tr_file_content_free(&content);
    assert_int_equal(tr_file_begin(&files, path, TR_FILE_NEW, 0, &writer), TR_EIO);
    assert_message_has("File exists; remove it or choose another name");
}

/* Abandoning again, after a failed beginning or after the end closes nothing that others have opened. */
static void a_file_is_closed_once(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct tr_file_writer writer;
        assert_int_equal(
            tr_file_begin(NULL, way == 2 ? scratch_place : scratch_in("once"), TR_FILE_REPLACE, 0, &writer),
            way == 2 ? TR_EIO : TR_OK);
        const int before = writer.descriptor;
        if (way == 0) tr_file_abandon(&writer);
        if (way == 1) assert_int_equal(tr_file_finish(&writer, true), TR_OK);
        const int other = open("/dev/null", O_RDONLY);
        if (way < 2) {
            assert_int_equal(other, before); /* numbers are taken again */
            assert_int_equal(writer.descriptor, -1);
        }
        tr_fail(TR_EINVAL, "kept");
        tr_file_abandon(&writer);
        assert_string_equal(tr_error_message(), "kept");
        assert_true(fcntl(other, F_GETFD) >= 0);
        close(other);
    }
    tr_file_abandon(&(struct tr_file_writer){0}); /* one that never began */
    assert_true(fcntl(0, F_GETFD) >= 0);
}

/* A program may have closed its standard input, whose number the next file then has. */
static void any_descriptor_is_one(void **state)
{
    (void)state;
    struct tr_file_writer writer;
    struct tr_file_content content;
    const int kept = dup(0);
    close(0);
    errno = ENOENT;
    const tr_status status = tr_file_begin(NULL, scratch_in("first"), TR_FILE_REPLACE, 0, &writer);
    const int descriptor = writer.descriptor;
    if (status == TR_OK) tr_file_abandon(&writer);
    const bool closed = fcntl(0, F_GETFD) < 0;
    const tr_status written = tr_file_write_atomic(NULL, scratch_in("first"), "text", 4);
    const tr_status read = tr_file_read(scratch_in("first"), 4, &content);
    if (kept >= 0) dup2(kept, 0);
    close(kept);
    assert_int_equal(status, TR_OK);
    assert_int_equal(descriptor, 0);
    assert_true(closed);
    assert_int_equal(written, TR_OK);
    assert_int_equal(read, TR_OK);
    assert_string_equal(content.data, "text");
    tr_file_content_free(&content);
}

/* A signal that waited before is not taken for the one of the limit, and the caller's mask stays. */
static void a_signal_of_others_is_left_alone(void **state)
{
    (void)state;
    const char *path = scratch_in("limited");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char data[10000];
        sigset_t limit, now;
        sigemptyset(&limit);
        sigaddset(&limit, SIGXFSZ);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}) != 0) _exit(1);
        if (tr_file_write_atomic(NULL, path, data, sizeof data) != TR_EIO) _exit(2);
        if (sigprocmask(SIG_BLOCK, NULL, &now) != 0 || sigismember(&now, SIGXFSZ)) _exit(3);
        if (sigprocmask(SIG_BLOCK, &limit, NULL) != 0 || raise(SIGXFSZ) != 0) _exit(4);
        if (tr_file_write_atomic(NULL, path, data, sizeof data) != TR_EIO) _exit(5);
        if (sigpending(&now) != 0 || !sigismember(&now, SIGXFSZ)) _exit(6);
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* ---- directories ---- */

static void an_existing_directory_need_not_sync(void **state)
{
    (void)state;
    struct fault_files fault;
    for (int there = 0; there < 2; there++) {
        fault_files_init(&fault, FAULT_ERROR, EIO, 2, false); /* it is made, then its parent is synced */
        assert_int_equal(tr_file_make_directories(&fault.system, scratch_in("made")), there ? TR_OK : TR_EIO);
        assert_int_equal(fault.calls, 2);
    }
    assert_message_has("make directory");
    fault_files_init(&fault, FAULT_ERROR, EACCES, 1, false);
    assert_int_equal(tr_file_make_directories(&fault.system, scratch_in("not made/inside")), TR_EIO);
    assert_message_has("inside\": Permission denied; check the permissions");
    assert_int_equal(fault.calls, 1);
    assert_false(tr_file_exists(scratch_in("not made")));
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("made")), TR_EIO);
    assert_message_has("File exists");
}

/* Removing goes on behind a failure, which is the one that is told. */
static void as_much_as_possible_is_removed(void **state)
{
    (void)state;
    struct fault_files fault;
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("full")), TR_OK);
    for (char name[] = "full/a"; name[5] <= 'c'; name[5]++) scratch_write_text(name, "x");
    /* The directory is tried as a file, then listed, then its files go. */
    fault_files_init(&fault, FAULT_ERROR, EROFS, 3, false);
    assert_int_equal(tr_file_remove(&fault.system, scratch_in("full")), TR_EIO);
    assert_message_has("full/a\": Read-only file system; check the permissions");
    assert_true(tr_file_exists(scratch_in("full/a")));
    assert_false(tr_file_exists(scratch_in("full/b")));
    assert_false(tr_file_exists(scratch_in("full/c")));
    fault_files_init(&fault, FAULT_ERROR, EROFS, 4, false);
    tr_fail(TR_EINVAL, "kept");
    tr_file_discard(&fault.system, scratch_in("full"));
    assert_string_equal(tr_error_message(), "kept");
    assert_int_equal(tr_file_remove(NULL, scratch_in("full")), TR_OK);
    assert_int_equal(tr_file_remove(NULL, scratch_in("full")), TR_OK);
}

/* A loop of mounts, say, must not be followed for ever. */
static void trees_are_removed_to_a_depth(void **state)
{
    (void)state;
    char name[64] = "d";
    for (int deep = 0; deep < 2; deep++) {
        strcpy(name, "d");
        for (int i = 1; i < 8 + deep; i++) strcat(name, "/d");
        assert_int_equal(tr_file_make_directories(NULL, scratch_in(name)), TR_OK);
        strcat(name, "/file");
        scratch_write_text(name, "x");
        assert_int_equal(tr_file_remove(NULL, scratch_in("d")), deep ? TR_EIO : TR_OK);
        assert_int_equal(tr_file_exists(scratch_in(name)), deep);
    }
    assert_message_has("d/d/d\": Is a directory");
    assert_int_equal(tr_file_remove(NULL, scratch_in("d/d")), TR_OK);
}

static void a_list_is_whole_or_empty(void **state)
{
    (void)state;
    struct tr_file_names names = {NULL, 7};
    assert_int_equal(tr_file_list(NULL, scratch_in("missing"), &names), TR_EIO);
    assert_message_has("list \"");
    assert_message_has("missing\": No such file or directory; check the path");
    assert_null(names.name);
    assert_int_equal(names.count, 0);
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("listed")), TR_OK);
    for (char name[] = "listed/a"; name[7] <= 'c'; name[7]++) scratch_write_text(name, "x");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_file_list(NULL, scratch_in("listed"), &names);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_message_has("listed\": out of memory");
        assert_int_equal(names.count, done ? 3 : 0);
        tr_file_names_free(&names);
        assert_null(names.name);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* ---- links ---- */

static void expect_link(const char *name, const char *text)
{
    char got[SCRATCH_PATH] = "?";
    assert_int_equal(tr_file_read_link(NULL, scratch_in(name), got, sizeof got), TR_OK);
    assert_string_equal(got, text);
}

static void links_are_pointed_elsewhere(void **state)
{
    (void)state;
    char text[8];
    assert_int_equal(tr_file_point(NULL, scratch_in("link"), "first"), TR_OK);
    expect_link("link", "first");
    scratch_write_text("link.tmp", "left by a killed process");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_file_point(NULL, scratch_in("link"), "second");
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        expect_link("link", done ? "second" : "first");
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_false(tr_file_exists(scratch_in("link.tmp")));
    expect_link("missing", "");
    scratch_write_text("plain", "x");
    expect_link("plain", "");
    expect_link("plain/below", "");
    assert_int_equal(tr_file_read_link(NULL, scratch_in("link"), text, 7), TR_OK);
    assert_string_equal(text, "second");
    assert_int_equal(tr_file_read_link(NULL, scratch_in("link"), text, 6), TR_EIO);
    assert_message_has("link\": File name too long");
    assert_string_equal(text, "");
    assert_int_equal(tr_file_point(NULL, scratch_in("missing/link"), "first"), TR_EIO);
    assert_message_has("link \"");
    assert_message_has("missing/link.tmp\": No such file or directory");
    /* What cannot be replaced stays, and nothing is left beside it. */
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("folder")), TR_OK);
    assert_int_equal(tr_file_point(NULL, scratch_in("folder"), "plain"), TR_EIO);
    assert_message_has("rename \"");
    assert_message_has("folder\": Is a directory");
    expect_link("folder.tmp", "");
    assert_true(tr_file_is_directory(scratch_in("folder")));
}

/* What lies below a directory that is held open is found wherever it was moved, and only that. */
static void an_anchor_holds_its_directory(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], text[SCRATCH_PATH];
    struct tr_file_names names;
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("held")), TR_OK);
    snprintf(path, sizeof path, "%s//", scratch_in("held"));
    struct tr_file_anchor anchor = {path, open(path, O_RDONLY | O_DIRECTORY)};
    const tr_file_system files = {&tr_file_ops_posix, &anchor};
    assert_int_equal(tr_file_rename(NULL, scratch_in("held"), scratch_in("moved")), TR_OK);
    assert_int_equal(tr_file_write_atomic(&files, scratch_in("held/file"), "x", 1), TR_OK);
    assert_int_equal(tr_file_write_atomic(&files, scratch_in("held-not"), "x", 1), TR_OK);
    assert_true(tr_file_exists(scratch_in("moved/file")));
    assert_true(tr_file_exists(scratch_in("held-not")));
    assert_int_equal(tr_file_make_directory(&files, scratch_in("held//deep")), TR_OK);
    assert_int_equal(tr_file_point(&files, scratch_in("held/link"), "file"), TR_OK);
    assert_int_equal(tr_file_read_link(&files, scratch_in("held/link"), text, sizeof text), TR_OK);
    assert_string_equal(text, "file");
    assert_int_equal(tr_file_list(&files, scratch_in("held"), &names), TR_OK);
    assert_int_equal(names.count, 3);
    tr_file_names_free(&names);
    assert_int_equal(tr_file_sync_directory(&files, scratch_in("held")), TR_OK);
    assert_int_equal(tr_file_remove(&files, scratch_in("held/deep")), TR_OK);
    assert_false(tr_file_exists(scratch_in("moved/deep")));
    assert_false(tr_file_exists(scratch_in("held")));
    close(anchor.descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_have_their_advice),
        cmocka_unit_test(writes_go_on_until_all_is_there),
        cmocka_unit_test(a_file_is_closed_once),
        cmocka_unit_test(any_descriptor_is_one),
        cmocka_unit_test(a_signal_of_others_is_left_alone),
        cmocka_unit_test(an_existing_directory_need_not_sync),
        cmocka_unit_test(as_much_as_possible_is_removed),
        cmocka_unit_test(trees_are_removed_to_a_depth),
        cmocka_unit_test(a_list_is_whole_or_empty),
        cmocka_unit_test(links_are_pointed_elsewhere),
        cmocka_unit_test(an_anchor_holds_its_directory),
    };
    return cmocka_run_group_tests_name("base.ops", tests, scratch_place_make, scratch_place_remove);
}
