#include "checkpoint/content.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

const struct tr_stored_metadata tr_content_note = {"format", "trireme"};

/* The index of the first element that is NaN or infinite, or -1. It tests bits, in blocks that the
 * compiler vectorizes.
 */
static int64_t first_nonfinite(const float *values, int64_t count)
{
    const uint32_t exponent = 0x7f800000;
    enum { BLOCK = 1024 };
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        int64_t end = count - begin < BLOCK ? count : begin + BLOCK;
        uint32_t hit = 0, bits;
        for (int64_t i = begin; i < end; i++) {
            memcpy(&bits, &values[i], sizeof bits);
            hit |= (bits & exponent) == exponent;
        }
        for (int64_t i = begin; hit && i < end; i++) {
            memcpy(&bits, &values[i], sizeof bits);
            if ((bits & exponent) == exponent) return i;
        }
    }
    return -1;
}

tr_status tr_content_check(const struct tr_checkpoint_content *content)
{
    const struct tr_checkpoint_facts *facts = &content->facts;
    assert(facts->step >= 0 && facts->microbatches >= 1);
    assert(facts->model_digest && facts->data_digest && facts->parameter_hash);
    for (int64_t i = 0; i < content->file_count; i++) {
        const struct tr_checkpoint_file *file = &content->files[i];
        if (!tr_manifest_may_name(file->name) || file->size > TR_CHECKPOINT_FILE_MAX)
            return tr_fail(TR_EINVAL, "a checkpoint cannot keep the file \"%s\" of %zu bytes", file->name,
                           file->size);
    }
    return TR_OK;
}

static tr_status give_checked(void *user, int64_t index, uint64_t at, const void **piece, size_t *bytes)
{
    const struct tr_content_checker *checker = user;
    const struct tr_stored_tensor *tensor = &checker->tensors[index];
    TR_TRY(checker->giver.give(checker->giver.user, index, at, piece, bytes));
    if (tensor->dtype != TR_DTYPE_F32) return TR_OK;
    assert(*bytes % sizeof(float) == 0);
    int64_t bad = first_nonfinite(*piece, (int64_t)(*bytes / sizeof(float)));
    if (bad < 0) return TR_OK;
    return tr_fail(TR_ENONFINITE, "tensor \"%s\" holds %g at element %" PRIu64 "; the state is not saved",
                   tensor->name, (double)((const float *)*piece)[bad], at / sizeof(float) + (uint64_t)bad);
}

struct tr_stored_giver tr_content_giver(const struct tr_checkpoint_content *content, int group,
                                        struct tr_content_checker *checker)
{
    const struct tr_stored_tensor *tensors = content->group[group].tensors;
    *checker = (struct tr_content_checker){tensors, {tr_stored_give, (void *)(uintptr_t)tensors}};
    if (content->group[group].giver) checker->giver = *content->group[group].giver;
    return (struct tr_stored_giver){give_checked, checker};
}

tr_status tr_content_make_sums(const struct tr_checkpoint_content *content, struct tr_manifest_sums *sums,
                               void **memory)
{
    size_t count = (size_t)content->file_count;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) count += (size_t)content->group[g].count;
    uint32_t *next = *memory = tr_alloc(count, sizeof *next);
    if (!next) return TR_ENOMEM;
    for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++) {
        sums->tensor_crc[g] = next;
        next += content->group[g].count;
    }
    sums->file_crc = next;
    return TR_OK;
}
