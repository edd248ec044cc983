#include "export/matching.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/log.h"
#include "export/rename.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* Tensors, and layers that may have none: "relu1.". */
static tr_status check_renames(const struct tr_matching *matching)
{
    const struct tr_import_settings *settings = matching->settings;
    const struct tr_model *model = matching->model;
    const int tensors = matching->list.count, count = tensors + model->layer_count;
    char(*layer)[TR_NAME_SIZE + 1] = tr_alloc((size_t)model->layer_count, sizeof *layer);
    const char **names = tr_alloc((size_t)count, sizeof *names);
    tr_status status = layer && names ? TR_OK : TR_ENOMEM;
    for (int i = 0; i < count && status == TR_OK; i++) {
        names[i] = i < tensors ? matching->list.tensor[i].name : layer[i - tensors];
        if (i >= tensors) snprintf(layer[i - tensors], sizeof *layer, "%s.", model->layers[i - tensors].name);
    }
    if (status == TR_OK) status = tr_rename_check(settings->rename, settings->rename_count, names, count);
    tr_free(names);
    tr_free(layer);
    return status;
}

/* A tensor as in a file with rows and columns exchanged; only matrices change. */
static struct tr_stored_tensor exchanged(struct tr_stored_tensor tensor, bool transposed)
{
    if (!transposed || tensor.rank != 2) return tensor;
    const int64_t rows = tensor.shape[0];
    tensor.shape[0] = tensor.shape[1];
    tensor.shape[1] = rows;
    return tensor;
}

/* A tensor of the file, with or without the prefix; NULL where there is none. */
static tr_status find_entry(const struct tr_matching *matching, const char *name,
                            const struct tr_safetensors_entry **out)
{
    const char *prefix = matching->settings->prefix;
    *out = NULL;
    if (prefix) {
        char *full = tr_format("%s%s", prefix, name);
        if (!full) return TR_ENOMEM;
        *out = tr_safetensors_find(matching->file, full);
        tr_free(full);
    }
    if (!*out) *out = tr_safetensors_find(matching->file, name);
    return TR_OK;
}

/* The name of a tensor of the file as renames have it. */
static const char *without_prefix(const struct tr_matching *matching, const char *name)
{
    const char *prefix = matching->settings->prefix;
    const size_t length = prefix ? strlen(prefix) : 0;
    return length > 0 && strncmp(name, prefix, length) == 0 ? name + length : name;
}

/* ---- matching ---- */

/* Adds "; it has "transformer.x": set `prefix` to transformer.", if all names have a prefix. */
static bool hint_prefix(const struct tr_matching *matching, const char *name, char *text, size_t size)
{
    const size_t length = strlen(name);
    for (int64_t i = 0; i < tr_safetensors_count(matching->file); i++) {
        const char *theirs = tr_safetensors_at(matching->file, i)->tensor.name;
        const size_t all = strlen(theirs);
        if (all <= length + 1 || all > 120 || theirs[all - length - 1] != '.' ||
            strcmp(theirs + all - length, name) != 0)
            continue;
        snprintf(text, size, "; it has \"%s\": give `prefix` %.*s", theirs, (int)(all - length), theirs);
        return true;
    }
    return false;
}

/* Adds "; it has "x", F32[3,4]", the nearest name in the file, or nothing. */
static void hint(const struct tr_matching *matching, const char *name, char *text, size_t size)
{
    int64_t count = tr_safetensors_count(matching->file);
    const char **names = tr_alloc((size_t)count, sizeof *names);
    text[0] = '\0';
    if (hint_prefix(matching, name, text, size) || !names || count > INT32_MAX) {
        tr_free(names);
        return;
    }
    for (int64_t i = 0; i < count; i++) names[i] = tr_safetensors_at(matching->file, i)->tensor.name;
    const char *nearest = tr_text_nearest(name, names, (int32_t)count);
    if (nearest) {
        char shape[TR_STORED_TEXT];
        snprintf(text, size, "; it has \"%.120s\", %s", nearest,
                 tr_stored_describe(&tr_safetensors_find(matching->file, nearest)->tensor, shape));
    }
    tr_free(names);
}

static tr_status find_tensor(struct tr_matching *matching, const struct tr_layout_tensor *tensor,
                             const struct tr_safetensors_entry **entry, bool *transposed)
{
    const struct tr_import_settings *settings = matching->settings;
    const char *path = matching->name;
    char want[TR_STORED_TEXT], have[TR_STORED_TEXT], nearest[512];
    char *name = tr_rename_find(settings->rename, settings->rename_count, tensor->name, transposed);
    const struct tr_stored_tensor wanted = exchanged(tr_layout_stored(tensor, NULL), *transposed);
    tr_status status = TR_OK;
    if (!name) return TR_ENOMEM;
    status = find_entry(matching, name, entry);
    if (status != TR_OK) {
        tr_free(name);
        return status;
    }
    if (matching->settings->partial && tensor->role != TR_LAYOUT_STEPS &&
        !(*entry && tr_stored_alike(&(*entry)->tensor, &wanted))) {
        tr_text_addf(&matching->others, "%s%s %s", matching->other_count++ ? ", " : "", name,
                     tr_stored_describe(&wanted, want));
        if (*entry)
            tr_text_addf(&matching->others, " (there %s)", tr_stored_describe(&(*entry)->tensor, have));
        *entry = NULL;
    } else if (*entry && !tr_stored_alike(&(*entry)->tensor, &wanted)) {
        status = tr_fail(TR_EMISMATCH, "\"%s\": tensor \"%s\" is %s, the network wants %s", path, name,
                         tr_stored_describe(&(*entry)->tensor, have), tr_stored_describe(&wanted, want));
    } else if (!*entry && tensor->role != TR_LAYOUT_STEPS) {
        hint(matching, name, nearest, sizeof nearest);
        status = tr_fail(
            TR_EMISMATCH,
            "\"%s\" has no tensor \"%s\", of which the network wants %s%s; name layers as the file does, "
            "or map its names by `rename`",
            path, name, tr_stored_describe(&wanted, want), nearest);
    }
    tr_free(name);
    return status;
}

static tr_status refuse_surplus(const struct tr_matching *matching)
{
    for (int64_t e = 0; e < tr_safetensors_count(matching->file); e++) {
        const struct tr_safetensors_entry *entry = tr_safetensors_at(matching->file, e);
        int i = 0;
        while (i < matching->list.count && matching->entry[i] != entry) i++;
        if (i < matching->list.count) continue;
        if (tr_rename_passes(matching->settings->rename, matching->settings->rename_count,
                             without_prefix(matching, entry->tensor.name)))
            continue;
        char have[TR_STORED_TEXT];
        return tr_fail(
            TR_EMISMATCH,
            "\"%s\" has a tensor \"%.200s\", %s, for which the network has no place; it is of another "
            "network or layout",
            matching->name, entry->tensor.name, tr_stored_describe(&entry->tensor, have));
    }
    return TR_OK;
}

static tr_status layout_of_file(const struct tr_matching *matching, enum tr_layout *layout)
{
    const char *named = tr_safetensors_metadata(matching->file, TR_LAYOUT_KEY);
    *layout = matching->settings->layout;
    if (*layout != TR_LAYOUT_AUTO) return TR_OK;
    *layout = TR_LAYOUT_TORCH;
    if (!named || strcmp(named, tr_layout_name(TR_LAYOUT_TORCH)) == 0) return TR_OK;
    *layout = TR_LAYOUT_TRIREME;
    if (strcmp(named, tr_layout_name(TR_LAYOUT_TRIREME)) == 0) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED, "\"%s\": its header says layout \"%.60s\"; known are torch and trireme",
                   matching->name, named);
}

/* For a partial import: how much of the network the file has. */
static tr_status tell_others(const struct tr_matching *matching)
{
    const char *path = matching->name, *others = matching->others.bytes;
    int taken = 0;
    if (matching->others.failed) return TR_ENOMEM;
    for (int i = 0; i < matching->list.count; i++) taken += matching->entry[i] != NULL;
    if (taken == 0)
        return tr_fail(TR_EMISMATCH,
                       "\"%s\" has nothing that the network could take, which has %s; map the names of "
                       "layers by `rename`",
                       path, others ? others : "no parameters");
    if (others) tr_log_line(TR_LOG_WARNING, "not in \"%s\", so as the model file says: %s", path, others);
    return TR_OK;
}

tr_status tr_matching_find(struct tr_matching *matching)
{
    enum tr_layout layout;
    TR_TRY(layout_of_file(matching, &layout));
    TR_TRY(tr_layout_list_make(matching->model, layout, &matching->list));
    TR_TRY(check_renames(matching));
    matching->entry = tr_alloc_zero((size_t)matching->list.count, sizeof *matching->entry);
    matching->transposed = tr_alloc_zero((size_t)matching->list.count, sizeof *matching->transposed);
    if (!matching->entry || !matching->transposed) return TR_ENOMEM;
    for (int i = 0; i < matching->list.count; i++)
        TR_TRY(
            find_tensor(matching, &matching->list.tensor[i], &matching->entry[i], &matching->transposed[i]));
    return matching->settings->partial ? tell_others(matching) : refuse_surplus(matching);
}

void tr_matching_release(struct tr_matching *matching)
{
    tr_free(matching->entry);
    tr_free(matching->transposed);
    tr_text_release(&matching->others);
    tr_layout_list_free(&matching->list);
    tr_safetensors_close(&matching->file);
}
