/* Files that are open: what was opened, where they are now, and what is read of them. */
#include "base/files/file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/mapped.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static void expect_refused(const char *path, tr_status expected, const char *words)
{
    int descriptor = 7;
    uint64_t size = 7;
    const int next = dup(1);
    close(next);
    assert_int_equal(tr_file_open(path, &descriptor, &size), expected);
    assert_message_has(words);
    assert_int_equal(descriptor, -1);
    assert_int_equal(size, 0);
    const int now = dup(1);
    close(now);
    assert_int_equal(now, next); /* nothing stays open */
}

static void what_is_no_file_is_not_opened(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char loop[SCRATCH_PATH], long_name[300];
    scratch_write_text("plain", "x");
    expect_refused(scratch_in("missing"), TR_ENOTFOUND,
                   "missing\": No such file or directory; check the path");
    expect_refused(scratch_in("plain/below"), TR_ENOTFOUND, "Not a directory");
    assert_int_equal(symlink("loop", scratch_join(loop, scratch_place, "loop")), 0);
    expect_refused(loop, TR_EIO, "loop\": Too many levels of symbolic links");
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    expect_refused(scratch_in(long_name), TR_EIO, "File name too long; choose a shorter name");
    expect_refused(scratch_place, TR_EFORMAT, "is a directory; a regular file is needed");
    expect_refused("/dev/null", TR_EFORMAT, "\"/dev/null\": is a device; a regular file is needed");
    /* A socket cannot be opened at all. Its path has a limit of its own. */
    if (strlen(scratch_in("socket")) >= sizeof address.sun_path) return;
    const int socket_descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", scratch_in("socket"));
    assert_int_equal(bind(socket_descriptor, (const struct sockaddr *)&address, sizeof address), 0);
    expect_refused(address.sun_path, TR_EIO, "No such device or address");
    close(socket_descriptor);
}

static void files_are_read_in_parts(void **state)
{
    (void)state;
    char part[8] = "";
    int descriptor;
    uint64_t size;
    struct tr_file_content content;
    scratch_write_text("ten", "0123456789");
    assert_int_equal(tr_file_open(scratch_in("ten"), &descriptor, &size), TR_OK);
    assert_int_equal(size, 10);
    assert_true(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(tr_file_read_at(descriptor, "ten", 4, part, 3), TR_OK);
    assert_string_equal(part, "456");
    assert_int_equal(tr_file_read_at(descriptor, "ten", 10, part, 0), TR_OK);
    assert_int_equal(tr_file_read_at(descriptor, "ten", 7, part, 3), TR_OK);
    assert_string_equal(part, "789");
    assert_int_equal(tr_file_read_at(descriptor, "ten", 8, part, 5), TR_EIO);
    assert_string_equal(tr_error_message(),
                        "read \"ten\": ends at offset 10, 3 bytes early; is it being written?");
    close(descriptor);
    assert_int_equal(tr_file_read_at(descriptor, "ten", 6, part, 3), TR_EIO);
    assert_string_equal(tr_error_message(),
                        "read \"ten\": Bad file descriptor at offset 6; check the disk and the system log");
    assert_int_equal(tr_file_read(scratch_in("ten"), 10, &content), TR_OK);
    assert_int_equal(content.size, 10);
    assert_int_equal(content.data[10], '\0');
    tr_file_content_free(&content);
    assert_null(content.data);
    assert_int_equal(tr_file_read(scratch_in("ten"), 9, &content), TR_EFORMAT);
    assert_null(content.data);
    for (int64_t at = 0, done = 0; !done; at++) {
        refuse_begin(at);
        const tr_status status = tr_file_read(scratch_in("ten"), 10, &content);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_message_has("ten\": out of memory: 11 bytes wanted");
        tr_file_content_free(&content);
    }
}

/* A part of a file is mapped, stays when the file is closed, and can leave memory without being lost. */
static void files_are_mapped_in_parts(void **state)
{
    (void)state;
    struct tr_file_map map;
    int descriptor;
    uint64_t size;
    scratch_write_text("mapped", "0123456789");
    assert_int_equal(tr_file_open(scratch_in("mapped"), &descriptor, &size), TR_OK);
    assert_int_equal(tr_file_map_open(descriptor, "the part", 4, &map), TR_OK);
    close(descriptor);
    assert_int_equal(map.size, 4);
    tr_file_map_leave(&map);
    assert_memory_equal(map.data, "0123", 4);
    assert_string_equal(tr_mapped_at(map.data + 3), "the part");
    assert_null(tr_mapped_at(map.data + 4));
    tr_file_unmap(&map);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    tr_file_map_leave(&map); /* nothing is there */
    tr_file_unmap(&map);
    assert_int_equal(tr_file_map_open(descriptor, "the part", 4, &map), TR_EIO);
    assert_string_equal(tr_error_message(), "map \"the part\": Bad file descriptor");
    assert_int_equal(tr_file_map_open(descriptor, "the part", (uint64_t)PTRDIFF_MAX + 1, &map), TR_EIO);
    assert_message_has("map \"the part\": File too large; raise");
    assert_null(map.data);
    assert_int_equal(tr_file_map_open(descriptor, "the part", 0, &map),
                     TR_OK); /* of nothing nothing is mapped */
    assert_null(map.data);
}

static void open_files_are_found(void **state)
{
    (void)state;
    int descriptor;
    uint64_t size;
    scratch_write_text("here", "x");
    assert_int_equal(tr_file_open(scratch_in("here"), &descriptor, &size), TR_OK);
    assert_int_equal(tr_file_find(descriptor, scratch_in("here")), TR_FILE_THERE);
    assert_int_equal(tr_file_rename(NULL, scratch_in("here"), scratch_in("there")), TR_OK);
    assert_int_equal(tr_file_find(descriptor, scratch_in("here")), TR_FILE_MOVED);
    assert_int_equal(tr_file_find(descriptor, scratch_in("there")), TR_FILE_THERE);
    scratch_write_text("here", "another");
    assert_int_equal(tr_file_find(descriptor, scratch_in("here")), TR_FILE_MOVED);
    char *path = tr_file_descriptor_path(descriptor);
    assert_non_null(path);
    assert_int_equal(tr_file_find(descriptor, path), TR_FILE_THERE);
    assert_string_equal(tr_path_name(path), "there");
    tr_free(path);
    refuse_begin(0);
    path = tr_file_descriptor_path(descriptor);
    assert_false(refuse_end());
    assert_null(path);
    assert_int_equal(tr_file_remove(NULL, scratch_in("there")), TR_OK);
    assert_int_equal(tr_file_find(descriptor, scratch_in("there")), TR_FILE_REMOVED);
    assert_int_equal(tr_file_find(descriptor, scratch_in("here")), TR_FILE_REMOVED);
    close(descriptor);
    assert_int_equal(tr_file_find(descriptor, scratch_in("here")), TR_FILE_REMOVED);
    assert_null(tr_file_descriptor_path(descriptor));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_null(tr_file_descriptor_path(ends[0])); /* no path leads to a pipe */
    close(ends[0]);
    close(ends[1]);
}

/* Where half a line cannot be cut, the file is neither opened nor changed. */
static void lines_go_on_or_stay(void **state)
{
    (void)state;
    struct tr_file_writer writer;
    struct tr_file_content content;
    scratch_write_text("lines", "one\ntw");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_file_lines_begin(scratch_in("lines"), true, &writer);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_int_equal(writer.descriptor, -1);
        tr_file_abandon(&writer);
        assert_int_equal(tr_alloc_live(), live);
        assert_int_equal(tr_file_read(scratch_in("lines"), 100, &content), TR_OK);
        assert_string_equal(content.data, done ? "one\n" : "one\ntw");
        tr_file_content_free(&content);
    }
    assert_int_equal(tr_file_lines_begin(scratch_in("new lines"), true, &writer), TR_OK);
    char line[] = "first";
    assert_int_equal(tr_file_lines_add(&writer, line), TR_OK);
    assert_int_equal(tr_file_finish(&writer, true), TR_OK);
    assert_int_equal(tr_file_read(scratch_in("new lines"), 100, &content), TR_OK);
    assert_string_equal(content.data, "first\n");
    tr_file_content_free(&content);
    assert_int_equal(tr_file_lines_begin(scratch_in("none/lines"), true, &writer), TR_EIO);
    assert_message_has("create \"");
    assert_message_has("none/lines\": No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_file_is_not_opened), cmocka_unit_test(files_are_read_in_parts),
        cmocka_unit_test(files_are_mapped_in_parts),     cmocka_unit_test(open_files_are_found),
        cmocka_unit_test(lines_go_on_or_stay),
    };
    return cmocka_run_group_tests_name("base.open_files", tests, scratch_place_make, scratch_place_remove);
}
