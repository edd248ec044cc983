#include "train/receipt/batches.h"

#include "base/fail.h"
#include "train/loop/internal.h"

static tr_status digest_batch(struct tr_order_reader *order, tr_sha256 *hash, struct tr_chain_link *link)
{
    enum { BLOCK = 512 };
    int64_t index[BLOCK];
    for (int64_t step = link->step - link->steps; step < link->step; step++) {
        const struct tr_order_step at = tr_order_at(&order->order, step);
        for (int64_t row = 0, count; row < at.rows; row += count) {
            count = at.rows - row < BLOCK ? at.rows - row : BLOCK;
            tr_order_read(order, at.epoch, at.first + row, count, index);
            tr_sha256_add(hash, index, (size_t)count * sizeof *index);
        }
    }
    return tr_sha256_take(hash, &link->batch);
}

/* Kept between boundaries: its table costs as much as some batches. */
static tr_status make_order(tr_trainer *trainer)
{
    struct tr_order order;
    if (trainer->receipt.order.order.count > 0) return TR_OK;
    TR_TRY(tr_job_order(trainer->job, &order));
    struct tr_order_reader *own = &trainer->receipt.order;
    tr_status status = tr_order_reader_make(&order, own);
    if (status == TR_OK) return TR_OK;
    tr_order_reader_release(own);
    *own = (struct tr_order_reader){0}; /* the next boundary makes it anew */
    return status;
}

tr_status trainer_digest_batches(tr_trainer *trainer, struct tr_chain_link *link, int64_t count)
{
    tr_sha256 *hash;
    TR_TRY(make_order(trainer));
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < count; i++)
        status = digest_batch(&trainer->receipt.order, hash, &link[i]);
    tr_sha256_destroy(&hash);
    return status;
}
