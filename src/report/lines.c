#include "report/lines.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <string.h>

static tr_status take(struct tr_json_lines *lines, const char *text, size_t length, const char *where)
{
    if (!tr_grow(&lines->line, lines->count, sizeof *lines->line)) return TR_ENOMEM;
    TR_TRY(tr_json_parse(text, length, where, &lines->line[lines->count]));
    lines->count++;
    return TR_OK;
}

tr_status tr_json_lines_read(const char *path, uint64_t most, struct tr_json_lines *out)
{
    struct tr_file_content content = {0};
    *out = (struct tr_json_lines){0};
    TR_TRY(tr_file_read(path, most, &content));
    const char *at = content.data, *end = content.data + content.size, *feed;
    tr_status status = TR_OK;
    while (status == TR_OK && at < end && (feed = memchr(at, '\n', (size_t)(end - at)))) {
        status = take(out, at, (size_t)(feed - at), path);
        at = feed + 1;
    }
    tr_file_content_free(&content);
    return status == TR_EFORMAT && out->count > 0 ? TR_OK : status;
}

void tr_json_lines_release(struct tr_json_lines *lines)
{
    for (int64_t i = 0; i < lines->count; i++) tr_json_destroy(&lines->line[i]);
    tr_free(lines->line);
    *lines = (struct tr_json_lines){0};
}
