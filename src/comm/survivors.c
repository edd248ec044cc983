/* Agreement on the living ranks, for jobs that continue after ranks died.
 *
 * The lowest living rank leads. Every other rank sends it JOIN and waits for its DECISION; the leader
 * waits until every rank has joined or is dead, decides, and sends the decision to all that joined. If the
 * leader dies meanwhile, ranks without a decision turn to the next one. Ranks that have the decision find
 * in their new subgroup that its leader is dead, and begin again here, where the next leader waits for
 * them.
 *
 * Invariants: a dead rank stays dead for all ranks, so they turn to leaders in the same order. A decision
 * gives the subgroup a number that no rank that joined has used, so messages of two subgroups never mix.
 */
#include "comm/class.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/text/log.h"

#include <string.h>

#define TAG_JOIN     TR_COMM_TAG_MOST
#define TAG_DECISION (TR_COMM_TAG_MOST - 1)
#define NAP_SECONDS  0.05

/* The state of one rank's search for the others. */
struct census {
    tr_comm *comm;
    uint32_t *bits; /* [size] numbers of subgroups that each rank has used, from its JOIN; also this rank's
                       own */
    tr_ticket **coming; /* [size] */
    bool *joined;       /* [size] */
    int32_t *decision;  /* [size + 1]: the number of the subgroup, then whether each rank is in it */
    double began;
    bool warned;
};

/* Whether a rank is lost for good. TR_EPEER for one that lives but cannot join. */
static tr_status look(const struct census *census, int rank, bool *gone)
{
    char why[512];
    enum tr_comm_life life = tr_comm_life(census->comm, rank, why, sizeof why);
    *gone = life == TR_COMM_DEAD || life == TR_COMM_LEFT;
    if (*gone || life == TR_COMM_ALIVE) return TR_OK;
    return tr_fail(TR_EPEER, "rank %d on host %s %s; restart the job from its last checkpoint", rank,
                   tr_comm_host(census->comm, rank), why);
}

static tr_status find_leader(const struct census *census, int *leader)
{
    bool gone = true;
    for (*leader = 0; *leader < census->comm->rank; ++*leader) {
        TR_TRY(look(census, *leader, &gone));
        if (!gone) return TR_OK;
    }
    return TR_OK;
}

/* Sleeps until something may have changed. TR_EPEER after the patience. */
static tr_status pause_for(struct census *census, int awaited)
{
    const struct tr_comm_settings *settings = &census->comm->settings;
    double waited = tr_clock_seconds() - census->began;
    if (waited > settings->patience)
        return tr_fail(TR_EPEER, "rank %d on host %s lives, but did not come to go on within %g s", awaited,
                       tr_comm_host(census->comm, awaited), settings->patience);
    if (waited > settings->timeout && !census->warned) {
        census->warned = true;
        tr_log_line(TR_LOG_WARNING, "rank %d has been waiting for rank %d to go on for %.3g s",
                    census->comm->rank, awaited, waited);
    }
    tr_comm_idle(census->comm, NAP_SECONDS);
    return tr_comm_progress(census->comm);
}

/* ---- the leader ---- */

/* Whether every rank has joined or is lost; else `awaited` is one that is missing. */
static tr_status count(struct census *census, bool *all, int *awaited)
{
    tr_comm *comm = census->comm;
    *all = true;
    for (int r = 0; r < comm->size; r++) {
        bool gone;
        if (r == comm->rank || census->joined[r]) continue;
        census->joined[r] = tr_comm_is_done(comm, &census->coming[r]);
        if (census->joined[r]) continue;
        TR_TRY(look(census, r, &gone));
        if (gone) continue;
        *all = false;
        *awaited = r;
    }
    return TR_OK;
}

static tr_status decide(struct census *census)
{
    tr_comm *comm = census->comm;
    uint32_t used = census->bits[comm->rank];
    int number = 0;
    for (int r = 0; r < comm->size; r++) {
        bool gone = false;
        if (r != comm->rank) TR_TRY(look(census, r, &gone));
        census->decision[r + 1] = !gone && (r == comm->rank || census->joined[r]);
        if (census->joined[r]) used |= census->bits[r];
    }
    while (number < TR_COMM_SUBGROUPS && used >> number & 1) number++;
    if (number == TR_COMM_SUBGROUPS)
        return tr_fail(TR_EINVAL, "ranks were lost %d times; restart the job from its last checkpoint",
                       TR_COMM_SUBGROUPS - 1);
    census->decision[0] = number;
    return TR_OK;
}

static tr_status announce(const struct census *census)
{
    tr_comm *comm = census->comm;
    size_t bytes = ((size_t)comm->size + 1) * sizeof *census->decision;
    for (int r = 0; r < comm->size; r++) {
        tr_ticket *going = NULL;
        bool done = false, gone = false;
        if (r == comm->rank || !census->decision[r + 1]) continue;
        TR_TRY(tr_comm_send(comm, r, TAG_DECISION, census->decision, bytes, "who goes on", &going));
        while (!done && !gone) {
            TR_TRY(tr_comm_test(comm, &going, &done));
            if (!done) TR_TRY(look(census, r, &gone));
            if (!done && !gone) tr_comm_idle(comm, NAP_SECONDS);
        }
        if (!tr_comm_cancel(comm, &going))
            return tr_fail(TR_EPEER, "rank %d died before it received the list of survivors", r);
    }
    return TR_OK;
}

static tr_status lead(struct census *census)
{
    tr_comm *comm = census->comm;
    for (int r = 0; r < comm->size; r++) {
        bool gone = true;
        if (r == comm->rank) continue;
        TR_TRY(look(census, r, &gone));
        if (gone) continue;
        TR_TRY(tr_comm_receive(comm, r, TAG_JOIN, &census->bits[r], sizeof census->bits[r], "who goes on",
                               &census->coming[r]));
    }
    for (bool all = false; !all;) {
        int awaited = comm->rank;
        TR_TRY(count(census, &all, &awaited));
        if (!all) TR_TRY(pause_for(census, awaited));
    }
    TR_TRY(decide(census));
    return announce(census);
}

/* ---- other ranks ---- */

/* *decided: the leader has decided; else it is dead. */
static tr_status follow(struct census *census, int leader, bool *decided)
{
    tr_comm *comm = census->comm;
    tr_ticket *going = NULL;
    bool gone = false;
    *decided = false;
    TR_TRY(tr_comm_receive(comm, leader, TAG_DECISION, census->decision,
                           ((size_t)comm->size + 1) * sizeof *census->decision, "who goes on",
                           &census->coming[leader]));
    TR_TRY(tr_comm_send(comm, leader, TAG_JOIN, &census->bits[comm->rank], sizeof census->bits[0],
                        "who goes on", &going));
    for (;;) {
        *decided = tr_comm_is_done(comm, &census->coming[leader]);
        if (*decided || gone) break;
        TR_TRY(pause_for(census, leader));
        TR_TRY(look(census, leader, &gone)); /* its earlier messages are checked once more */
    }
    bool back = tr_comm_cancel(comm, &going);
    if (tr_comm_cancel(comm, &census->coming[leader]) && back) return TR_OK;
    return tr_fail(TR_EPEER, "rank %d died while it sent the list of survivors", leader);
}

static tr_status hold_census(struct census *census)
{
    for (bool decided = false; !decided;) {
        int leader;
        TR_TRY(find_leader(census, &leader));
        decided = leader == census->comm->rank;
        TR_TRY(decided ? lead(census) : follow(census, leader, &decided));
    }
    return TR_OK;
}

static tr_status make(struct census *census, tr_comm **out)
{
    tr_comm *comm = census->comm;
    int size = 0, *member = tr_alloc((size_t)comm->size, sizeof *member);
    if (!member) return TR_ENOMEM;
    for (int r = 0; r < comm->size; r++)
        if (census->decision[r + 1]) member[size++] = r;
    tr_status status = TR_EPEER;
    if (census->decision[0] < 0 || census->decision[0] >= TR_COMM_SUBGROUPS ||
        !census->decision[comm->rank + 1])
        tr_fail(status, "the others went on without rank %d", comm->rank);
    else
        status = tr_subgroup_make(comm, member, size, census->decision[0], out);
    if (status == TR_OK) (*out)->outlives = true;
    tr_free(member);
    return status;
}

static tr_status prepare(tr_comm *comm, struct census *census)
{
    size_t size = (size_t)comm->size;
    *census = (struct census){.comm = comm, .began = tr_clock_seconds()};
    census->bits = tr_alloc_zero(size, sizeof *census->bits);
    census->coming = tr_alloc_zero(size, sizeof *census->coming);
    census->joined = tr_alloc_zero(size, sizeof *census->joined);
    census->decision = tr_alloc_zero(size + 1, sizeof *census->decision);
    if (!census->bits || !census->coming || !census->joined || !census->decision) return TR_ENOMEM;
    pthread_mutex_lock(&comm->lock);
    census->bits[comm->rank] = comm->subgroup_bits;
    pthread_mutex_unlock(&comm->lock);
    return TR_OK;
}

/* Memory in which a message may still arrive is not freed. */
static void release(struct census *census)
{
    bool back = true;
    for (int r = 0; census->coming && r < census->comm->size; r++)
        back = tr_comm_cancel(census->comm, &census->coming[r]) && back;
    if (back) {
        tr_free(census->bits);
        tr_free(census->decision);
    }
    tr_free(census->coming);
    tr_free(census->joined);
}

tr_status tr_comm_survivors(tr_comm *comm, tr_comm **out)
{
    struct census census;
    *out = NULL;
    tr_comm_tolerate(comm);
    tr_status status = prepare(comm, &census);
    if (status == TR_OK) status = hold_census(&census);
    if (status == TR_OK) status = make(&census, out);
    if (status != TR_OK) tr_comm_abort(comm, tr_error_message()); /* the others rely on this rank */
    release(&census);
    return status;
}
