#include "device/cpu/balance.h"

#include "base/alloc.h"
#include "base/threads/clock.h"

#include <math.h>
#include <stdbool.h>

/* Parts that differ by less from equal ones stay equal. */
#define NEGLIGIBLE 0.02
/* A member takes at least and at most so many equal parts. */
#define LEAST 0.25
#define MOST  2.0
/* After so many seconds of work, parts have gone two thirds of the way to the measured ones; one operation
   moves them by at most a quarter. */
#define SETTLING 0.002
#define STEP     0.25

struct member {
    double share;                        /* of all work */
    double begin;                        /* the sum of those before */
    _Alignas(TR_CACHE_LINE) double part; /* of the operation under way, or 0 */
    double seconds;
};

struct cpu_balance {
    int size;
    bool uneven, fixed;
    tr_team_function function; /* under way */
    void *arguments;
    struct member *member; /* [size + 1] */
};

/* Scales the shares to a sum of 1, and determines where parts begin. */
static void add_up(struct cpu_balance *b)
{
    double sum = 0.0;
    for (int i = 0; i < b->size; i++) sum += b->member[i].share;
    double begin = 0.0;
    b->uneven = false;
    for (int i = 0; i < b->size; i++) {
        struct member *member = &b->member[i];
        member->share /= sum;
        member->begin = begin;
        begin += member->share;
        if (fabs(member->share * b->size - 1.0) > NEGLIGIBLE) b->uneven = true;
    }
    b->member[b->size].begin = 1.0;
}

struct cpu_balance *cpu_balance_create(int size)
{
    struct cpu_balance *balance = tr_alloc_zero(1, sizeof *balance);
    struct member *member = tr_alloc_aligned((size_t)size + 1, sizeof *member);
    if (!balance || !member) {
        tr_free(balance);
        tr_free(member);
        return NULL;
    }
    for (int i = 0; i <= size; i++) member[i] = (struct member){.share = 1.0};
    balance->size = size;
    balance->member = member;
    add_up(balance);
    return balance;
}

void cpu_balance_destroy(struct cpu_balance *balance)
{
    if (!balance) return;
    tr_free(balance->member);
    tr_free(balance);
}

static void measured(void *arguments, int member, int size)
{
    struct cpu_balance *b = arguments;
    const double begin = tr_clock_seconds();
    b->function(b->arguments, member, size);
    b->member[member].seconds = tr_clock_seconds() - begin;
}

/* Moves the shares towards the speeds that the members had. */
static void follow(struct cpu_balance *b)
{
    double speeds = 0.0, least = INFINITY;
    for (int i = 0; i < b->size; i++) {
        const struct member *member = &b->member[i];
        if (member->part <= 0.0 || member->seconds <= 0.0) return;
        speeds += member->part / member->seconds;
        least = fmin(least, member->seconds);
    }
    const double step = fmin(STEP, least / (least + SETTLING));
    for (int i = 0; i < b->size; i++) {
        struct member *member = &b->member[i];
        const double speed = member->part / member->seconds / speeds * b->size;
        member->share += step * (fmin(MOST, fmax(LEAST, speed)) / b->size - member->share);
    }
    add_up(b);
}

void cpu_balance_run(struct cpu_balance *b, tr_team *team, tr_team_function function, void *arguments)
{
    if (b->size == 1 || b->fixed) {
        tr_team_run(team, function, arguments);
        return;
    }
    b->function = function;
    b->arguments = arguments;
    for (int i = 0; i < b->size; i++) b->member[i].part = 0.0;
    tr_team_run(team, measured, b);
    follow(b);
}

void cpu_balance_fix(struct cpu_balance *b, const double *share)
{
    for (int i = 0; i < b->size; i++) b->member[i].share = share[i];
    add_up(b);
    b->fixed = true;
}

void cpu_balance_part(const struct cpu_balance *b, int64_t count, int64_t grain, int first, int members,
                      int all_first, int all_members, int64_t *begin, int64_t *end)
{
    if (!b->uneven) {
        tr_team_chunk(count, grain, (first - all_first) / members, all_members / members, begin, end);
        return;
    }
    const double base = b->member[all_first].begin, span = b->member[all_first + all_members].begin - base;
    const double grains = (double)(count / grain + (count % grain != 0));
    const int64_t from = llround(grains * (b->member[first].begin - base) / span) * grain;
    const int64_t to = llround(grains * (b->member[first + members].begin - base) / span) * grain;
    *begin = from < count ? from : count;
    *end = to < count ? to : count;
}

void cpu_balance_note(struct cpu_balance *b, int member, double part)
{
    b->member[member].part = part;
}
