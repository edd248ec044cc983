/* Reading checks what it opens; writing leaves the old file or the new one, whatever fails. */
#include "base/files/file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file_fault.h"
#include "scratch.h"

#include <sys/mman.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static void assert_content(const char *path, const char *text)
{
    struct tr_file_content content;
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    assert_int_equal(content.size, strlen(text));
    assert_string_equal(content.data, text);
    tr_file_content_free(&content);
}

/* The number of entries of the scratch directory. */
static int64_t entries(void)
{
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, scratch_place, &names), TR_OK);
    int64_t count = names.count;
    tr_file_names_free(&names);
    return count;
}

static void paths_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *path, *parent, *name;
    } cases[] = {
        {"a/b", "a", "b"}, {"a", ".", "a"}, {"/a", "/", "a"}, {"/a/b/c", "/a/b", "c"}, {"a//b", "a", "b"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *parent = tr_path_parent(cases[i].path);
        assert_string_equal(parent, cases[i].parent);
        assert_string_equal(tr_path_name(cases[i].path), cases[i].name);
        tr_free(parent);
    }
    static const char *const joins[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        char *joined = tr_path_join(joins[i][0], joins[i][1]);
        assert_string_equal(joined, joins[i][2]);
        tr_free(joined);
    }
}

static void paths_from_the_root_resolve_links(void **state)
{
    (void)state;
    char link[SCRATCH_PATH], inside[SCRATCH_PATH], target[SCRATCH_PATH];
    assert_int_equal(mkdir(scratch_join(target, scratch_place, "real"), 0700), 0);
    assert_int_equal(symlink("real", scratch_join(link, scratch_place, "link")), 0);
    char *found = tr_path_absolute(scratch_join(inside, scratch_place, "link/.."));
    char *through = tr_path_absolute(link);
    char *missing = tr_path_absolute("missing/as typed");
    assert_string_equal(tr_path_name(through), "real");
    assert_int_equal(strncmp(through, found, strlen(found)), 0); /* "link/.." is the folder of "real" */
    assert_int_equal(through[0], '/');
    assert_string_equal(missing, "missing/as typed");
    tr_free(found);
    tr_free(through);
    tr_free(missing);
}

static void only_regular_files_are_read(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    struct tr_file_content content = {path, 3};
    struct tr_file_map map = {(const uint8_t *)path, 3};
    assert_int_equal(tr_file_read(scratch_join(path, scratch_place, "missing"), 10, &content), TR_ENOTFOUND);
    assert_true(!content.data && content.size == 0);
    assert_message_has(path);
    assert_message_has("No such file");
    assert_int_equal(tr_file_map(path, &map), TR_ENOTFOUND);
    assert_true(!map.data && map.size == 0);
    assert_int_equal(tr_file_read(scratch_place, 10, &content), TR_EFORMAT);
    assert_message_has("a directory");
    assert_int_equal(tr_file_read("/dev/zero", 10, &content), TR_EFORMAT);
    assert_message_has("a device");
    assert_int_equal(mkfifo(scratch_join(path, scratch_place, "pipe"), 0600), 0);
    assert_int_equal(tr_file_read(path, 10, &content), TR_EFORMAT); /* and does not wait for a writer */
    assert_message_has("a pipe");
}

static void sizes_are_limited(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    struct tr_file_map map;
    scratch_join(path, scratch_place, "ten");
    assert_int_equal(tr_file_write_atomic(NULL, path, "0123456789", 10), TR_OK);
    assert_int_equal(tr_file_read(path, 9, &content), TR_EFORMAT);
    assert_message_has("10 bytes, more than the limit of 9");
    assert_content(path, "0123456789");
    assert_int_equal(tr_file_map(path, &map), TR_OK);
    assert_int_equal(map.size, 10);
    assert_memory_equal(map.data, "0123456789", 10);
    void *before = (void *)map.data;
    assert_int_equal(msync(before, 10, MS_ASYNC), 0);
    tr_file_unmap(&map);
    assert_null(map.data);
    assert_int_equal(msync(before, 10, MS_ASYNC), -1); /* nothing is there */
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(tr_file_write_atomic(NULL, path, "", 0), TR_OK);
    assert_content(path, "");
    assert_int_equal(tr_file_map(path, &map), TR_OK);
    assert_int_equal(map.size, 0);
    tr_file_unmap(&map);
    int descriptor;
    uint64_t size;
    char byte;
    assert_int_equal(tr_file_open(path, &descriptor, &size), TR_OK);
    errno = EINTR; /* of an earlier call: the end is none of a signal */
    assert_int_equal(tr_file_read_at(descriptor, path, 0, &byte, 1), TR_EIO);
    assert_message_has("1 bytes early");
    close(descriptor);
}

static void directories_are_made_and_removed(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], inner[SCRATCH_PATH];
    assert_int_equal(tr_file_make_directories(NULL, scratch_join(path, scratch_place, "a//b/c/")), TR_OK);
    assert_true(tr_file_is_directory(path));
    assert_int_equal(tr_file_make_directories(NULL, path), TR_OK);
    assert_int_equal(tr_file_write_atomic(NULL, scratch_join(inner, path, "file"), "x", 1), TR_OK);
    /* A link is removed, what it points to is not. */
    assert_int_equal(symlink(scratch_place, scratch_join(inner, path, "link")), 0);
    assert_int_equal(tr_file_write_atomic(NULL, scratch_join(inner, scratch_place, "bystander"), "x", 1),
                     TR_OK);
    assert_int_equal(tr_file_remove(NULL, scratch_join(path, scratch_place, "a")), TR_OK);
    assert_false(tr_file_exists(path));
    assert_true(tr_file_exists(inner));
    assert_int_equal(tr_file_remove(NULL, path), TR_OK);
    assert_int_equal(tr_file_make_directories(NULL, scratch_join(path, inner, "below")), TR_EIO);
    assert_message_has("Not a directory");
    char before[SCRATCH_PATH];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_place), 0);
    assert_int_equal(tr_file_make_directories(NULL, "relative/path"), TR_OK);
    assert_int_equal(chdir(before), 0);
    assert_true(tr_file_is_directory(scratch_join(path, scratch_place, "relative/path")));
}

static void names_are_sorted(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%02d", i * 23 % 40);
        assert_int_equal(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, name), "", 0), TR_OK);
    }
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, scratch_place, &names), TR_OK);
    assert_int_equal(names.count, 40);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%02d", i);
        assert_string_equal(names.name[i], name);
    }
    tr_file_names_free(&names);
}

/* Counts faults up until the write succeeds. */
static void a_fault_leaves_the_old_file(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    scratch_join(path, scratch_place, "file");
    static const int errors[] = {ENOSPC, EIO, EFBIG, EDQUOT, EROFS};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        for (int variant = 0; variant < 4; variant++) {
            bool persistent = variant & 1, done = false;
            for (int64_t at = 1; !done; at++) {
                assert_true(at < 50);
                assert_int_equal(tr_file_write_atomic(NULL, path, "old", 3), TR_OK);
                struct fault_files fault;
                fault_files_init(&fault, variant & 2 ? FAULT_SHORT_WRITE : FAULT_ERROR, errors[e], at,
                                 persistent);
                tr_status status = tr_file_write_atomic(&fault.system, path, "new text", 8);
                done = fault.calls < at;
                if (done) {
                    assert_int_equal(status, TR_OK);
                    assert_content(path, "new text");
                    continue;
                }
                assert_int_equal(status, TR_EIO);
                assert_message_has(strerror(errors[e]));
                struct tr_file_content content;
                assert_int_equal(tr_file_read(path, 100, &content), TR_OK);
                assert_true(strcmp(content.data, "old") == 0 || strcmp(content.data, "new text") == 0);
                tr_file_content_free(&content);
                if (!persistent) assert_int_equal(entries(), 1);
                /* What a persistent fault left goes when the disk is well again. */
                scratch_remove(scratch_place);
                assert_int_equal(tr_file_make_directory(NULL, scratch_place), TR_OK);
            }
        }
    }
}

static void a_write_says_how_far_it_came(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    struct fault_files fault;
    fault_files_init(&fault, FAULT_SHORT_WRITE, ENOSPC, 2, false);
    assert_int_equal(
        tr_file_write_atomic(&fault.system, scratch_join(path, scratch_place, "file"), "0123456789", 10),
        TR_EIO);
    assert_message_has("No space left on device after 5 of 10 bytes; free space");
    assert_int_equal(entries(), 0);
}

/* Whoever may read and write is a matter of the process's mask; none may execute data. */
static void new_files_have_the_mode_of_the_mask(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 077};
    char path[SCRATCH_PATH];
    struct stat facts;
    for (int i = 0; i < 3; i++) {
        const mode_t before = umask(masks[i]);
        const tr_status status =
            tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "moded"), "x", 1);
        umask(before);
        assert_int_equal(status, TR_OK);
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_mode & 07777, 0666 & ~masks[i]);
        assert_int_equal(unlink(path), 0);
    }
}

static void devices_are_not_replaced(void **state)
{
    (void)state;
    assert_int_equal(tr_file_write_atomic(NULL, "/dev/full", "x", 1), TR_EIO);
    assert_message_has("write \"/dev/full\": No space left on device after 0 of 1 bytes");
    assert_int_equal(tr_file_write_atomic(NULL, "/dev/null", "x", 1), TR_OK);
    struct stat facts;
    assert_int_equal(stat("/dev/null", &facts), 0);
    assert_true(S_ISCHR(facts.st_mode));
    /* Nor through a link, in whichever way it is written. */
    char path[SCRATCH_PATH];
    struct tr_file_replacement file;
    assert_int_equal(symlink("/dev/full", scratch_join(path, scratch_place, "full")), 0);
    assert_int_equal(tr_file_replace_begin(NULL, path, 0, &file), TR_OK);
    assert_int_equal(tr_file_write(&file.writer, "x", 1), TR_EIO);
    tr_file_replace_abandon(&file);
    assert_int_equal(stat(path, &facts), 0);
    assert_true(S_ISCHR(facts.st_mode));
    assert_int_equal(tr_file_write_atomic(NULL, scratch_place, "x", 1), TR_EIO);
    assert_message_has("Is a directory");
}

/* What somebody else may have put in the place of a file of ours is neither written to nor waited for. */
static void only_regular_files_are_written(void **state)
{
    (void)state;
    static const enum tr_file_create ways[] = {TR_FILE_REPLACE, TR_FILE_APPEND};
    char target[SCRATCH_PATH], link[SCRATCH_PATH], pipe[SCRATCH_PATH], directory[SCRATCH_PATH];
    struct tr_file_writer writer;
    assert_int_equal(tr_file_write_atomic(NULL, scratch_join(target, scratch_place, "target"), "old", 3),
                     TR_OK);
    assert_int_equal(symlink(target, scratch_join(link, scratch_place, "link")), 0);
    assert_int_equal(mkfifo(scratch_join(pipe, scratch_place, "unread"), 0600), 0);
    assert_int_equal(mkdir(scratch_join(directory, scratch_place, "folder"), 0700), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tr_file_begin(NULL, link, ways[i], 0, &writer), TR_EIO);
        assert_message_has("a symbolic link is not followed here");
        assert_int_equal(tr_file_begin(NULL, pipe, ways[i], 0, &writer), TR_EIO);
        assert_message_has("a regular file is needed");
        int reader = open(pipe, O_RDONLY | O_NONBLOCK);
        assert_int_equal(tr_file_begin(NULL, pipe, ways[i], 0, &writer), TR_EIO);
        assert_message_has("a regular file is needed");
        close(reader);
        assert_int_equal(tr_file_begin(NULL, directory, ways[i], 0, &writer), TR_EIO);
        assert_int_equal(tr_file_begin(NULL, "/dev/null", ways[i], 0, &writer), TR_EIO);
    }
    assert_content(target, "old");
    assert_int_equal(tr_file_begin(NULL, target, TR_FILE_APPEND, 0, &writer), TR_OK);
    assert_int_equal(tr_file_write(&writer, "er", 2), TR_OK);
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
    assert_content(target, "older");
    assert_int_equal(tr_file_begin(NULL, target, TR_FILE_REPLACE, 0, &writer), TR_OK);
    assert_int_equal(tr_file_finish(&writer, false), TR_OK);
    assert_content(target, "");
}

/* Lines go on behind the last whole one. */
static void half_a_line_is_cut(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"", "new\n", "new\n"},
                                           {"a\nb\n", "a\nb\nnew\n", "new\n"},
                                           {"a\nhal", "a\nnew\n", "new\n"},
                                           {"hal", "new\n", "new\n"}};
    char path[SCRATCH_PATH], line[] = "new";
    scratch_join(path, scratch_place, "lines");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int anew = 0; anew < 2; anew++) {
            struct tr_file_writer writer;
            assert_int_equal(tr_file_write_atomic(NULL, path, cases[i][0], strlen(cases[i][0])), TR_OK);
            assert_int_equal(tr_file_lines_begin(path, !anew, &writer), TR_OK);
            assert_int_equal(tr_file_lines_add(&writer, line), TR_OK);
            assert_int_equal(tr_file_finish(&writer, false), TR_OK);
            assert_string_equal(line, "new");
            assert_content(path, cases[i][1 + anew]);
        }
}

static void a_replacement_can_be_tried_before(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    struct tr_file_names names;
    scratch_join(path, scratch_place, "new/file");
    assert_int_equal(tr_file_replace_check(path), TR_ENOTFOUND);
    assert_message_has("there is no directory");
    assert_int_equal(tr_file_replace_check(scratch_place), TR_EIO);
    assert_int_equal(tr_file_replace_check("/dev/full"), TR_OK); /* nobody knows */
    scratch_join(path, scratch_place, "new");
    assert_int_equal(tr_file_make_directory(NULL, path), TR_OK);
    scratch_join(path, scratch_place, "new/file");
    assert_int_equal(tr_file_replace_check(path), TR_OK);
    assert_false(tr_file_exists(path));
    assert_int_equal(tr_file_write_atomic(NULL, path, "abc", 3), TR_OK);
    assert_int_equal(tr_file_replace_check(path), TR_OK);
    assert_int_equal(tr_file_read(path, 10, &content), TR_OK);
    assert_string_equal(content.data, "abc");
    tr_file_content_free(&content);
    scratch_join(path, scratch_place, "new");
    assert_int_equal(tr_file_list(NULL, path, &names), TR_OK);
    assert_int_equal(names.count, 1);
    tr_file_names_free(&names);
}

/* In a child, since a limit cannot be raised again by everyone. The signal that the limit sends would end it.
 */
static void a_file_size_limit_is_an_error_not_a_signal(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    scratch_join(path, scratch_place, "file");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {4096, 4096};
        static char data[10000];
        signal(SIGXFSZ, SIG_DFL);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
        if (tr_file_write_atomic(NULL, path, data, sizeof data) != TR_EIO) _exit(2);
        if (!strstr(tr_error_message(), "File too large after 4096 of 10000 bytes; raise")) _exit(3);
        sigset_t pending;
        sigpending(&pending);
        _exit(sigismember(&pending, SIGXFSZ) ? 4 : 0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(entries(), 0);
}

static void a_directory_is_taken_once(void **state)
{
    (void)state;
    int first, second;
    char path[SCRATCH_PATH];
    assert_int_equal(tr_file_lock(scratch_place, &first), TR_OK);
    assert_true(first >= 0);
    assert_int_equal(tr_file_lock(scratch_place, &second), TR_EIO);
    assert_int_equal(second, -1);
    assert_message_has("in use by another process");
    close(first);
    /* A kill lets go. */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(tr_file_lock(scratch_place, &first) == TR_OK ? 0 : 1);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(tr_file_lock(scratch_place, &second), TR_OK);
    close(second);
    assert_int_equal(tr_file_lock(scratch_join(path, scratch_place, "missing"), &second), TR_EIO);
    assert_int_equal(second, -1);
}

static int refuse(size_t size, void *user)
{
    (void)size;
    int64_t *left = user;
    return (*left)-- == 0;
}

/* Every allocation of every function fails once. */
static void failing_allocations_are_survived(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], directories[SCRATCH_PATH];
    scratch_join(path, scratch_place, "file");
    scratch_join(directories, scratch_place, "d/e/f");
    int64_t live = tr_alloc_live();
    for (int64_t at = 0, done = 0; !done; at++) {
        assert_true(at < 100);
        int64_t left = at;
        struct tr_file_content content = {0};
        struct tr_file_names names = {0};
        tr_alloc_set_hook(refuse, &left);
        tr_status status = tr_file_make_directories(NULL, directories);
        if (status == TR_OK) status = tr_file_write_atomic(NULL, path, "text", 4);
        if (status == TR_OK) status = tr_file_read(path, 100, &content);
        if (status == TR_OK) status = tr_file_list(NULL, scratch_place, &names);
        if (status == TR_OK) status = tr_file_remove(NULL, directories);
        tr_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_file_content_free(&content);
        tr_file_names_free(&names);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_taken_apart),
        cmocka_unit_test_setup_teardown(paths_from_the_root_resolve_links, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(only_regular_files_are_read, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(sizes_are_limited, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(directories_are_made_and_removed, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(names_are_sorted, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_fault_leaves_the_old_file, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_write_says_how_far_it_came, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(new_files_have_the_mode_of_the_mask, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(devices_are_not_replaced, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(only_regular_files_are_written, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(half_a_line_is_cut, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_replacement_can_be_tried_before, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_file_size_limit_is_an_error_not_a_signal, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(a_directory_is_taken_once, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(failing_allocations_are_survived, scratch_place_make,
                                        scratch_place_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
