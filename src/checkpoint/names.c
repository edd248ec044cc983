#include "checkpoint/names.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX    "checkpoint-"
#define NAME_SIZE 64

static void write_name(struct tr_checkpoint_name name, char text[NAME_SIZE])
{
    int length = snprintf(text, NAME_SIZE, PREFIX "%08" PRId64, name.step);
    if (name.edition > 1) snprintf(text + length, NAME_SIZE - (size_t)length, "-%" PRId64, name.edition);
}

bool tr_checkpoint_parse_name(const char *name, struct tr_checkpoint_name *out)
{
    char copy[NAME_SIZE], canonical[NAME_SIZE];
    size_t length = strlen(name);
    if (length >= sizeof copy || strncmp(name, PREFIX, strlen(PREFIX)) != 0) return false;
    memcpy(copy, name, length + 1);
    char *step = copy + strlen(PREFIX), *edition = strchr(step, '-');
    if (edition) *edition++ = '\0';
    out->edition = 1;
    if (tr_text_int64(step, &out->step)) return false; /* no minus is left in it */
    if (edition && (tr_text_int64(edition, &out->edition) || out->edition < 2)) return false;
    write_name(*out, canonical);
    return strcmp(name, canonical) == 0;
}

char *tr_checkpoint_make_path(const char *run, struct tr_checkpoint_name name, const char *suffix)
{
    char text[NAME_SIZE];
    write_name(name, text);
    char *path = tr_path_join(run, text);
    if (!path || !suffix[0]) return path;
    char *longer = tr_format("%s%s", path, suffix);
    tr_free(path);
    return longer;
}

static int ascending(const void *a, const void *b)
{
    const struct tr_checkpoint_name *left = a, *right = b;
    if (left->step != right->step) return left->step < right->step ? -1 : 1;
    return (left->edition > right->edition) - (left->edition < right->edition);
}

tr_status tr_checkpoint_scan(const tr_file_system *files, const char *run, struct tr_checkpoint_scan *out)
{
    *out = (struct tr_checkpoint_scan){0};
    tr_status status = tr_file_list(files, run, &out->names);
    if (status != TR_OK) return status;
    out->found = tr_alloc((size_t)out->names.count, sizeof *out->found);
    if (!out->found) {
        tr_checkpoint_scan_free(out);
        return TR_ENOMEM;
    }
    for (int64_t i = 0; i < out->names.count; i++)
        if (tr_checkpoint_parse_name(out->names.name[i], &out->found[out->count])) out->count++;
    if (out->count > 1) qsort(out->found, (size_t)out->count, sizeof *out->found, ascending);
    return TR_OK;
}

void tr_checkpoint_scan_free(struct tr_checkpoint_scan *scan)
{
    tr_free(scan->found);
    tr_file_names_free(&scan->names);
    *scan = (struct tr_checkpoint_scan){0};
}
