#include "receipt/receipt.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>

void tr_receipt_release(struct tr_receipt *receipt)
{
    tr_free(receipt->program);
    tr_free(receipt->model);
    tr_free(receipt->boundary);
    *receipt = (struct tr_receipt){0};
}

tr_status tr_receipt_add(struct tr_receipt *receipt, const struct tr_receipt_boundary *boundary)
{
    while (receipt->count > 0 && receipt->boundary[receipt->count - 1].step >= boundary->step)
        receipt->count--;
    if (receipt->count >= TR_RECEIPT_BOUNDARIES)
        return tr_fail(TR_EUNSUPPORTED,
                       "a receipt has at most %" PRId64 " boundaries; set train.receipt_every higher",
                       TR_RECEIPT_BOUNDARIES);
    if (!tr_grow(&receipt->boundary, receipt->count, sizeof *receipt->boundary)) return TR_ENOMEM;
    receipt->boundary[receipt->count++] = *boundary;
    receipt->parameters[0] = '\0';
    return TR_OK;
}

const struct tr_receipt_boundary *tr_receipt_find(const struct tr_receipt *receipt, int64_t step)
{
    int64_t low = 0, high = receipt->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (receipt->boundary[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < receipt->count && receipt->boundary[low].step == step ? &receipt->boundary[low] : NULL;
}
