#include "data/files/lines.h"

#include "base/alloc.h"
#include "base/encoding.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"
#include "data/files/data_set.h"
#include "data/files/inflate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tr_status tr_line_check(void *user, const uint8_t *piece, size_t size)
{
    struct tr_line_check *arrival = user;
    const char *at = (const char *)piece, *end = at + size;
    if (arrival->number == 0) {
        TR_TRY(tr_encoding_check(arrival->path, at, size));
        arrival->number = 1;
    }
    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        arrival->length += (size_t)((feed ? feed : end) - at);
        if (arrival->length > TR_LINE_MAX)
            return tr_fail(TR_EFORMAT, "%s:%" PRId64 ": a line of more than %zu MiB; write an example a line",
                           arrival->path, arrival->number, TR_LINE_MAX >> 20);
        if (!feed) break;
        arrival->number++;
        arrival->length = 0;
        at = feed + 1;
    }
    return TR_OK;
}

static tr_status load(const char *path, tr_inflate_check *check, void *user, struct tr_load *out)
{
    struct tr_file_map map;
    TR_TRY(tr_data_map(path, &map));
    tr_status status;
    tr_inflate *inflate = NULL;
    enum tr_packing packing = tr_packing_of(map.data, map.size);
    if (packing != TR_PACKING_GZIP) packing = TR_PACKING_NONE;
    TR_TRY_GOTO(tr_inflate_create(path, map.data, map.size, packing, &inflate), out);
    status = tr_inflate_all(inflate, TR_UNPACKED_MAX, check, user, &out->data, &out->size);
out:
    tr_inflate_destroy(&inflate);
    tr_file_unmap(&map);
    return status;
}

tr_status tr_load_file(const char *path, struct tr_load *out)
{
    return load(path, NULL, NULL, out);
}

tr_status tr_load_lines(const char *path, struct tr_load *out)
{
    struct tr_line_check arrival = {.path = path};
    return load(path, tr_line_check, &arrival, out);
}

struct tr_lines tr_lines_of(const char *path, const char *text, size_t size)
{
    return (struct tr_lines){.path = path, .at = text + tr_encoding_mark(text, size), .end = text + size};
}

bool tr_lines_next(struct tr_lines *lines)
{
    if (lines->at == lines->end) return false;
    const char *feed = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    const char *stop = feed ? feed : lines->end;
    lines->line = lines->at;
    lines->length = (size_t)(stop - lines->at);
    if (feed && lines->length > 0 && stop[-1] == '\r') lines->length--;
    lines->at = feed ? feed + 1 : stop;
    lines->number++;
    return true;
}

tr_status tr_lines_fail(const struct tr_lines *lines, const char *at, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tr_fail(TR_EFORMAT, "%s:%" PRId64 ":%td: %s", lines->path, lines->number, at - lines->line + 1,
                   text);
}

const struct tr_choice tr_bad_actions[] = {
    {.name = "stop", .value = TR_BAD_STOP},
    {.name = "skip", .value = TR_BAD_SKIP},
    {.name = NULL},
};

tr_status tr_bad_record(struct tr_bad *bad, tr_status status)
{
    if (bad->action != TR_BAD_SKIP || (status != TR_EFORMAT && status != TR_ECORRUPT)) return status;
    bad->bad++;
    if (bad->bad <= 10) tr_log_line(TR_LOG_WARNING, "skipped a bad record: %s", tr_error_message());
    return TR_OK;
}

tr_status tr_bad_finish(const struct tr_bad *bad, const char *path)
{
    if (bad->bad > 0 && (double)bad->bad > bad->most * (double)bad->records) {
        return tr_fail(TR_EFORMAT,
                       "%s: %" PRId64 " of %" PRId64
                       " records are bad, more than max_bad: %g; the last one: %s",
                       path, bad->bad, bad->records, bad->most, tr_error_message());
    }
    if (bad->records == bad->bad) return tr_fail(TR_EFORMAT, "%s: the set is empty", path);
    if (bad->bad > 0) {
        tr_log_line(TR_LOG_WARNING, "%s: skipped %" PRId64 " bad records of %" PRId64, path, bad->bad,
                    bad->records);
    }
    return TR_OK;
}
