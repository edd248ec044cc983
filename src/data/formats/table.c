/* The existing formats, and opening a source by its description. */
#include "data/source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "data/formats/cifar.h"
#include "data/text/corpus_source.h"
#include "data/tables/csv.h"
#include "data/images/folder.h"
#include "data/formats/idx.h"
#include "data/tables/join.h"
#include "data/formats/npy_source.h"
#include "data/cache/store.h"
#include "data/memory/format.h"
#include "data/tables/series.h"
#include "data/images/shards.h"
#include "data/text/text_source.h"
#include "data/formats/tfrecord.h"

#include <string.h>

static const struct tr_entry *const entries[] = {
    &tr_source_format_cifar.entry,    &tr_source_format_corpus.entry,
    &tr_source_format_csv.entry,      &tr_source_format_folder.entry,
    &tr_source_format_idx.entry,      &tr_source_format_join.entry,
    &tr_source_format_json.entry,     &tr_source_format_memory.entry,
    &tr_source_format_npy.entry,      &tr_source_format_series.entry,
    &tr_source_format_shards.entry,   &tr_source_format_text.entry,
    &tr_source_format_tfrecord.entry, NULL,
};

const struct tr_registry tr_source_formats = {
    .kind = "data format",
    .form = "a mapping with the format as its only key, for instance {idx: {images: PATH, labels: PATH}}",
    .entries = entries,
};

/* An estimate of the bytes that unpacked examples take. */
static int64_t unpacked_bytes(const tr_source *source)
{
    const struct tr_source_info *info = &source->info;
    int64_t element = info->features == TR_FEATURE_IMAGE ? 1 : 4;
    int64_t bytes = tr_source_files_bytes(&source->files); /* of texts */
    if (source->stream) return ((info->count - 1) * source->stride + source->window + 1) * element;
    if (info->features != TR_FEATURE_TOKENS) bytes = info->count * tr_source_capacity(source) * element;
    return bytes + 4 * info->count * (info->labels == TR_LABEL_VALUES ? info->values : 1);
}

/* Opens the source of a request; it takes the request's files. */
static tr_status open_request(const struct tr_source_request *request, tr_store *store, int slot,
                              tr_source **out)
{
    const struct tr_source_format *format = request->format;
    TR_TRY(format->files(request->options, request->directory, request->files));
    tr_status status;
    /* Missing files are no error here: the format's own message says best what is wrong. */
    bool stamped = tr_source_files_stamp(request->files) == TR_OK;
    struct tr_source_request whole = *request;
    whole.unpacks = !format->unpacks || format->unpacks(request->options, request->files);
    if (format->open_through)
        status = format->open_through(request->options, request->directory, request->state, store, slot, out);
    else if (store && stamped)
        status = tr_store_open(store, &whole, slot, out);
    else
        status = format->open(request->options, request->directory, request->state, out);
    if (status != TR_OK) return status;
    tr_source_files_release(&(*out)->files);
    if (stamped) {
        (*out)->files = *request->files;
        *request->files = (struct tr_source_files){0};
    }
    if (whole.unpacks && !(*out)->filed && !(*out)->spilled) (*out)->unpacked = unpacked_bytes(*out);
    return TR_OK;
}

tr_status tr_source_check_config(const tr_config *node)
{
    const struct tr_entry *entry;
    void *options;
    TR_TRY(tr_registry_read(&tr_source_formats, node, &entry, &options));
    const struct tr_source_format *format = (const struct tr_source_format *)entry;
    tr_status status = format->check ? format->check(options) : TR_OK;
    tr_entry_release(entry, options);
    return status;
}

tr_status tr_source_open_part(const tr_config *node, const char *directory, const char *state,
                              tr_store *store, int slot, tr_source **out)
{
    const struct tr_entry *entry;
    void *options;
    char *text = NULL;
    struct tr_source_files files = {0};
    TR_TRY(tr_registry_read(&tr_source_formats, node, &entry, &options));
    tr_status status = tr_config_dump(node, &text);
    struct tr_source_request request = {
        (const struct tr_source_format *)entry, options, directory, state, text, &files, false};
    if (status == TR_OK) status = open_request(&request, store, slot, out);
    tr_source_files_release(&files);
    tr_free(text);
    tr_entry_release(entry, options);
    return status;
}

tr_status tr_source_outline_config(const tr_config *node, const char *directory, const char *state,
                                   tr_store *store, tr_source **out)
{
    const struct tr_entry *entry;
    void *options;
    TR_TRY(tr_registry_read(&tr_source_formats, node, &entry, &options));
    const struct tr_source_format *format = (const struct tr_source_format *)entry;
    tr_status status = format->outline ? format->outline(options, directory, state, out)
                                       : tr_source_open_config(node, directory, state, store, -1, out);
    tr_entry_release(entry, options);
    return status;
}

tr_status tr_source_open_config(const tr_config *node, const char *directory, const char *state,
                                tr_store *store, int slot, tr_source **out)
{
    TR_TRY(tr_source_open_part(node, directory, state, store, slot, out));
    if (tr_source_capacity(*out) > 0) return TR_OK;
    tr_source_close(out);
    return tr_config_fail(
        TR_EINVAL, node,
        "all columns are labels or left out, which leaves nothing to predict from; leave some "
        "in, or `join` the labels with another source");
}

tr_status tr_source_open_through(tr_store *store, const char *description, const char *directory,
                                 const char *state, tr_source **out)
{
    tr_config *node;
    TR_TRY(tr_config_parse(description, strlen(description), "data description", &node));
    tr_status status = tr_source_open_config(node, directory, state, store, -1, out);
    tr_config_destroy(&node);
    return status;
}

tr_status tr_source_open(const char *description, const char *directory, const char *state, tr_source **out)
{
    return tr_source_open_through(NULL, description, directory, state, out);
}
