/* The formats that exist, and opening a source by description. */
#include "data/source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/file.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/folder.h"
#include "data/idx.h"
#include "data/npy_source.h"
#include "data/text_source.h"
#include "data/tfrecord.h"

#include <string.h>

#define FORMATS_MAX 32

const struct tr_source_format *const tr_source_formats[] = {
    &tr_source_format_cifar, &tr_source_format_csv,  &tr_source_format_folder,   &tr_source_format_idx,
    &tr_source_format_npy,   &tr_source_format_text, &tr_source_format_tfrecord, NULL,
};

/* The format called `name`, or NULL with a message that names the nearest one. */
static const struct tr_source_format *find_format(const tr_config *node, const char *name)
{
    const char *names[FORMATS_MAX];
    int32_t count = 0;
    for (; tr_source_formats[count]; count++) {
        names[count] = tr_source_formats[count]->name;
        if (strcmp(names[count], name) == 0) return tr_source_formats[count];
    }
    struct tr_text known = TR_TEXT_INIT;
    for (int32_t i = 0; i < count; i++) {
        tr_text_add(&known, i > 0 ? ", " : "");
        tr_text_add(&known, names[i]);
    }
    const char *nearest = tr_text_nearest(name, names, count);
    tr_config_fail(TR_EINVAL, node, "no data format is called \"%s\"%s%s%s; there are %s", name,
                   nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "",
                   known.bytes ? known.bytes : "");
    tr_text_release(&known);
    return NULL;
}

tr_status tr_source_open_config(const tr_config *node, const char *directory, const char *state,
                                tr_source **out)
{
    if (tr_config_kind(node) != TR_CONFIG_MAPPING || tr_config_count(node) != 1) {
        return tr_config_fail(
            TR_EINVAL, node,
            "%s with %d keys; a source is a mapping with the format as its only key, for instance "
            "{idx: {images: PATH, labels: PATH}}",
            tr_config_kind_name(node), (int)tr_config_count(node));
    }
    const struct tr_source_format *format = find_format(node, tr_config_key(node, 0));
    if (!format) return TR_EINVAL;
    void *options = tr_alloc_zero(1, format->options_size);
    if (!options) return TR_ENOMEM;
    tr_status status;
    TR_TRY_GOTO(tr_options_defaults(format->options, format->option_count, options), out);
    TR_TRY_GOTO(
        tr_options_read(format->options, format->option_count, tr_config_at(node, 0), format->name, options),
        out);
    status = format->open(options, directory, state, out);
out:
    tr_options_release(format->options, format->option_count, options);
    tr_free(options);
    return status;
}

tr_status tr_source_open(const char *description, const char *directory, const char *state, tr_source **out)
{
    tr_config *node;
    TR_TRY(tr_config_parse(description, strlen(description), "data description", &node));
    tr_status status = tr_source_open_config(node, directory, state, out);
    tr_config_destroy(&node);
    return status;
}

char *tr_source_path(const char *directory, const char *path)
{
    return directory && path[0] != '/' ? tr_path_join(directory, path) : tr_strdup(path);
}
