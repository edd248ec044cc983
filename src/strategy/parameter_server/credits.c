#include "strategy/parameter_server/credits.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdint.h>

enum standing { AWAY, WAITS, HAS };

struct claim {
    enum standing standing;
    int64_t turn; /* when it requested */
};

struct ps_credits {
    int workers, free;
    int64_t turns;
    struct claim claim[]; /* [workers] */
};

tr_status ps_credits_create(int workers, int count, ps_credits **out)
{
    ps_credits *credits = tr_alloc_zero(1, sizeof *credits + (size_t)workers * sizeof credits->claim[0]);
    *out = credits;
    if (!credits) return TR_ENOMEM;
    credits->workers = workers;
    credits->free = count;
    return TR_OK;
}

void ps_credits_destroy(ps_credits **credits)
{
    tr_free(*credits);
    *credits = NULL;
}

int ps_credits_free(const ps_credits *credits)
{
    return credits->free;
}

bool ps_credits_has(const ps_credits *credits, int worker)
{
    return credits->claim[worker].standing == HAS;
}

void ps_credits_take(ps_credits *credits, int worker)
{
    assert(credits->claim[worker].standing == AWAY && credits->free > 0);
    credits->claim[worker].standing = HAS;
    credits->free--;
}

void ps_credits_ask(ps_credits *credits, int worker)
{
    assert(credits->claim[worker].standing == AWAY);
    credits->claim[worker] = (struct claim){WAITS, credits->turns++};
}

bool ps_credits_next(ps_credits *credits, int *worker)
{
    int first = -1;
    if (credits->free == 0) return false;
    for (int w = 0; w < credits->workers; w++) {
        const struct claim *claim = &credits->claim[w];
        if (claim->standing == WAITS && (first < 0 || claim->turn < credits->claim[first].turn)) first = w;
    }
    if (first < 0) return false;
    credits->claim[first].standing = HAS;
    credits->free--;
    *worker = first;
    return true;
}

void ps_credits_leave(ps_credits *credits, int worker)
{
    credits->free += credits->claim[worker].standing == HAS;
    credits->claim[worker].standing = AWAY;
}
