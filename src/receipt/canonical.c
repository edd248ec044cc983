#include "receipt/canonical.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_name[TR_CHECKPOINT_GROUPS] = {"parameters", "optimizer"};

/* ---- the head ---- */

static int by_metric(const void *a, const void *b)
{
    return strcmp(((const struct tr_checkpoint_metric *)a)->name,
                  ((const struct tr_checkpoint_metric *)b)->name);
}

/* Checkpoints keep values that are not finite as "not a number", and so do canonical bytes. */
static uint64_t bits_of(double value)
{
    uint64_t bits = 0x7ff8000000000000;
    if (isfinite(value)) memcpy(&bits, &value, sizeof bits);
    return bits;
}

static tr_status add_metrics(struct tr_text *text, const struct tr_checkpoint_facts *facts)
{
    size_t count = (size_t)facts->metric_count;
    struct tr_checkpoint_metric *sorted = tr_alloc(count + 1, sizeof *sorted);
    if (!sorted) return TR_ENOMEM;
    if (count > 0) memcpy(sorted, facts->metrics, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_metric);
    for (size_t i = 0; i < count; i++)
        tr_text_addf(text, "%s %016" PRIx64 "\n", sorted[i].name, bits_of(sorted[i].value));
    tr_free(sorted);
    return TR_OK;
}

static tr_status add_state(struct tr_text *text, const struct tr_checkpoint_content *content,
                           const char *state)
{
    char hex[TR_SHA256_TEXT];
    for (int64_t i = 0; state && i < content->file_count; i++) {
        const struct tr_checkpoint_file *file = &content->files[i];
        if (strcmp(file->name, state) != 0) continue;
        TR_TRY(tr_sha256_of(file->data, file->size, hex));
        tr_text_addf(text, "%s %s\n", file->name, hex);
    }
    return TR_OK;
}

static void add_tensor(struct tr_text *text, const struct tr_canonical_tensor *tensor,
                       const struct tr_stored_tensor *stored)
{
    tr_text_addf(text, "%s/%s %s", group_name[tensor->group], tensor->name, tr_dtype_name(stored->dtype));
    for (int i = 0; i < stored->rank; i++) tr_text_addf(text, "%c%" PRId64, i ? 'x' : ' ', stored->shape[i]);
    tr_text_add(text, "\n");
}

static tr_status write_head(const struct tr_checkpoint_content *content, const char *state,
                            struct tr_canonical *out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "trireme state 1\nstep %" PRId64 "\n", content->facts.step);
    tr_status status = add_metrics(&text, &content->facts);
    if (status == TR_OK) status = add_state(&text, content, state);
    for (int64_t i = 0; i < out->count; i++)
        add_tensor(&text, &out->tensor[i],
                   &content->group[out->tensor[i].group].tensors[out->tensor[i].index]);
    out->head_bytes = text.length;
    if (status == TR_OK) return tr_text_finish(&text, &out->head);
    tr_text_release(&text);
    return status;
}

/* ---- leaves ---- */

static int64_t leaves_of(uint64_t bytes)
{
    return (int64_t)((bytes + TR_LEAF_BYTES - 1) / TR_LEAF_BYTES);
}

/* By group and name, in the order of their full names. */
static int by_name(const void *a_, const void *b_)
{
    const struct tr_canonical_tensor *a = a_, *b = b_;
    int order = strcmp(group_name[a->group], group_name[b->group]);
    return order ? order : strcmp(a->name, b->name);
}

static tr_status list_tensors(const struct tr_checkpoint_content *content, struct tr_canonical *out)
{
    size_t count = 0;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) count += (size_t)content->group[g].count;
    out->tensor = tr_alloc(count + 1, sizeof *out->tensor);
    if (!out->tensor) return TR_ENOMEM;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        for (int64_t i = 0; i < content->group[g].count; i++) {
            const struct tr_stored_tensor *stored = &content->group[g].tensors[i];
            struct tr_canonical_tensor *tensor = &out->tensor[out->count++];
            *tensor = (struct tr_canonical_tensor){(enum tr_checkpoint_group)g, i, stored->name, 0, 0, 0};
            TR_TRY(tr_stored_bytes(stored, &tensor->bytes));
        }
    }
    qsort(out->tensor, count, sizeof *out->tensor, by_name);
    return TR_OK;
}

tr_status tr_canonical_make(const struct tr_checkpoint_content *content, const char *state,
                            struct tr_canonical *out)
{
    *out = (struct tr_canonical){0};
    TR_TRY(list_tensors(content, out));
    TR_TRY(write_head(content, state, out));
    out->leaves = out->head_leaves = leaves_of(out->head_bytes);
    for (int64_t i = 0; i < out->count; i++) {
        out->tensor[i].first_leaf = out->leaves;
        out->tensor[i].end_leaf = out->leaves += leaves_of(out->tensor[i].bytes);
    }
    return TR_OK;
}

void tr_canonical_release(struct tr_canonical *canonical)
{
    tr_free(canonical->head);
    tr_free(canonical->tensor);
    *canonical = (struct tr_canonical){0};
}

struct tr_canonical_leaf tr_canonical_leaf_at(const struct tr_canonical *canonical, int64_t leaf)
{
    const struct tr_canonical_tensor *tensor = NULL;
    uint64_t size = canonical->head_bytes;
    int64_t first = 0;
    if (leaf >= canonical->head_leaves) {
        int64_t low = 0, high = canonical->count - 1;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (canonical->tensor[middle].end_leaf > leaf)
                high = middle;
            else
                low = middle + 1;
        }
        tensor = &canonical->tensor[low];
        first = tensor->first_leaf;
        size = tensor->bytes;
    }
    uint64_t at = (uint64_t)(leaf - first) * TR_LEAF_BYTES, left = size - at;
    return (struct tr_canonical_leaf){tensor, at, left < TR_LEAF_BYTES ? (size_t)left : TR_LEAF_BYTES};
}
