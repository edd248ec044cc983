/* Files of lines: each line is written at once, so that readers see only whole ones, also after a crash. */
#include "base/files/file.h"

#include "base/fail.h"

#include <string.h>
#include <unistd.h>

#define FILE_MOST ((uint64_t)1 << 30) /* largest file in which an incomplete line is removed */

/* Whether an existing file ends within a line. */
static tr_status ends_within_line(const char *path, bool *cut)
{
    int descriptor;
    uint64_t size;
    char last = '\n';
    *cut = false;
    TR_TRY(tr_file_open(path, &descriptor, &size));
    tr_status status = size > 0 ? tr_file_read_at(descriptor, path, size - 1, &last, 1) : TR_OK;
    close(descriptor);
    *cut = last != '\n';
    return status;
}

/* Removes the incomplete line that a full disk left at the end. */
static tr_status cut_last_line(const char *path)
{
    struct tr_file_content content;
    TR_TRY(tr_file_read(path, FILE_MOST, &content));
    const char *end = memrchr(content.data, '\n', content.size);
    size_t size = end ? (size_t)(end + 1 - content.data) : 0;
    tr_status status = tr_file_write_atomic(NULL, path, content.data, size);
    tr_file_content_free(&content);
    return status;
}

tr_status tr_file_lines_begin(const char *path, bool goes_on, struct tr_file_writer *writer)
{
    bool cut;
    *writer = (struct tr_file_writer){.descriptor = -1};
    if (goes_on && ends_within_line(path, &cut) == TR_OK && cut) TR_TRY(cut_last_line(path));
    return tr_file_begin(NULL, path, goes_on ? TR_FILE_APPEND : TR_FILE_REPLACE, 0, writer);
}

tr_status tr_file_lines_add(struct tr_file_writer *writer, char *line)
{
    size_t length = strlen(line);
    line[length] = '\n';
    tr_status status = tr_file_write(writer, line, length + 1);
    line[length] = '\0';
    return status;
}
