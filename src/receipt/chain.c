#include "receipt/chain.h"

#include "base/fail.h"

#include <math.h>
#include <string.h>

static const uint8_t of_begin = 2, of_link = 3;

tr_status tr_chain_begin(const struct tr_chain_begin *begin, struct tr_sha256_sum *out)
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_sha256_add(hash, &of_begin, 1);
    tr_sha256_add(hash, begin->settings.byte, sizeof begin->settings.byte);
    tr_sha256_add(hash, begin->data.byte, sizeof begin->data.byte);
    tr_sha256_add(hash, begin->root.byte, sizeof begin->root.byte);
    tr_status status = tr_sha256_take(hash, out);
    tr_sha256_destroy(&hash);
    return status;
}

tr_status tr_chain_add(tr_sha256 *hash, const struct tr_chain_link *link, struct tr_sha256_sum *chain)
{
    uint32_t bits = 0x7fc00000;
    uint8_t loss[sizeof bits];
    if (!isnan(link->loss)) memcpy(&bits, &link->loss, sizeof bits);
    for (size_t i = 0; i < sizeof loss; i++) loss[i] = (uint8_t)(bits >> (8 * i));
    tr_sha256_add(hash, &of_link, 1);
    tr_sha256_add(hash, chain->byte, sizeof chain->byte);
    tr_sha256_add_number(hash, link->step);
    tr_sha256_add_number(hash, link->steps);
    tr_sha256_add_number(hash, link->skipped);
    tr_sha256_add(hash, loss, sizeof loss);
    tr_sha256_add(hash, link->batch.byte, sizeof link->batch.byte);
    return tr_sha256_take(hash, chain);
}
