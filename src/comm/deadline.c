/* Decides which rank is missing when a wait takes long. */
#include "comm/operation.h"

#include "base/fail.h"
#include "base/text/log.h"
#include "base/text/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define WHY_SIZE 512
/* Between two checks of the ranks; a shorter wait never checks. */
#define LOOK_SECONDS 0.02
/* Signs of life are a fifth of the time-out apart, within these limits. */
#define INTERVAL_MOST  2.0
#define INTERVAL_LEAST 0.02

double tr_comm_interval(const struct tr_comm_settings *settings)
{
    double interval = settings->timeout / 5;
    return interval > INTERVAL_MOST ? INTERVAL_MOST : interval < INTERVAL_LEAST ? INTERVAL_LEAST : interval;
}

enum tr_comm_life tr_comm_life(tr_comm *comm, int rank, char *why, size_t size)
{
    assert(rank >= 0 && rank < comm->size);
    char said[WHY_SIZE] = "";
    double silence = 0;
    pthread_mutex_lock(&comm->lock);
    enum tr_comm_life life = rank == comm->rank ? (comm->dead ? TR_COMM_GAVE_UP : TR_COMM_ALIVE)
                                                : comm->class->life(comm, rank, &silence, said, sizeof said);
    pthread_mutex_unlock(&comm->lock);
    if (life == TR_COMM_ALIVE && silence > comm->settings.timeout) life = TR_COMM_SILENT;
    if (size == 0) return life;
    if (life == TR_COMM_SILENT)
        snprintf(why, size, "has not been heard of for %.3g s", silence);
    else if (life == TR_COMM_GAVE_UP)
        snprintf(why, size, "gave up%s%s", said[0] ? ": " : "", said);
    else
        snprintf(why, size, "%s",
                 life == TR_COMM_ALIVE  ? "is alive"
                 : life == TR_COMM_LEFT ? "has left"
                                        : "died: its process is gone");
    return life;
}

/* "rank 2 on host b" */
static void add_rank(struct tr_text *text, const tr_comm *comm, int rank)
{
    tr_text_addf(text, "rank %d on host %s", tr_comm_number(comm, rank), comm->location[rank].host);
}

/* Marks the ranks whose messages the ticket lacks: comm->pending[rank] > 0. */
static void mark_pending(tr_comm *comm, const tr_ticket *ticket)
{
    memset(comm->pending, 0, (size_t)comm->size * sizeof *comm->pending);
    for (int i = 0; i < ticket->transfers; i++)
        comm->pending[ticket->transfer[i].peer] += !ticket->transfer[i].done;
}

/* Describes the pending messages, at most some: "nothing came from rank 2 on host b, rank 3
 * on host b". */
static void add_pending(struct tr_text *text, tr_comm *comm, const tr_ticket *ticket)
{
    enum { MOST = 8 };
    int named = 0;
    mark_pending(comm, ticket);
    for (int rank = 0; rank < comm->size; rank++) {
        if (comm->pending[rank] == 0) continue;
        if (named == MOST) {
            tr_text_add(text, " and more");
            break;
        }
        tr_text_add(text, named++ ? ", " : "");
        add_rank(text, comm, rank);
    }
}

/* A rank that is lost. */
struct loss {
    int rank; /* -1: none */
    enum tr_comm_life life;
    double silence;
    char why[WHY_SIZE];
};

/* Notes a rank if it is lost. The first such rank stays, except if it only gave up, so that all survivors
   name the same cause. A rank that left in good order is lost unless `may_leave`. */
static void look_at(tr_comm *comm, int rank, bool may_leave, struct loss *loss)
{
    struct loss found = {.rank = rank};
    if (rank == comm->rank) return;
    found.life = comm->class->life(comm, rank, &found.silence, found.why, sizeof found.why);
    if (found.life == TR_COMM_ALIVE && found.silence > comm->settings.timeout) found.life = TR_COMM_SILENT;
    if (found.life == TR_COMM_ALIVE || (found.life == TR_COMM_LEFT && may_leave)) return;
    if (loss->rank < 0 || (loss->life == TR_COMM_GAVE_UP && found.life != TR_COMM_GAVE_UP)) *loss = found;
}

/* Finds a lost rank that an operation needs. */
static void find_lost(tr_comm *comm, const tr_ticket *ticket, struct loss *loss)
{
    mark_pending(comm, ticket);
    for (int rank = 0; rank < comm->size; rank++) {
        bool pending = comm->pending[rank] > 0;
        /* A rank that left had finished all collectives, so it is missing only for this very one. In a
           crew, ranks that find a death turn to the survivors, and no wait may be for them here. */
        if (pending || ticket->collective || comm->outlives) look_at(comm, rank, !pending, loss);
    }
}

/* If a rank gave up, names the first one that did: the others followed it. */
static void find_cause(tr_comm *comm, struct loss *loss)
{
    if (loss->rank < 0 || loss->life != TR_COMM_GAVE_UP || !comm->class->first_to_give_up) return;
    struct loss cause = {.rank = -1};
    int first = comm->class->first_to_give_up(comm);
    if (first >= 0) look_at(comm, first, true, &cause);
    if (cause.rank >= 0) *loss = cause;
}

static tr_status fail_lost(const tr_comm *comm, const struct loss *loss)
{
    int rank = loss->rank;
    const char *host = comm->location[rank].host;
    int number = tr_comm_number(comm, rank);
    if (loss->life == TR_COMM_GAVE_UP)
        return tr_fail(TR_EPEER, "rank %d on host %s gave up: %s", number, host, loss->why);
    if (loss->life == TR_COMM_SILENT)
        return tr_fail(
            TR_EPEER,
            "rank %d on host %s has not been heard of for %.3g s (time-out %g s): it hangs, or its host or "
            "network is down; restart the job from its last checkpoint",
            number, host, loss->silence, comm->settings.timeout);
    return tr_fail(TR_EPEER, "rank %d on host %s %s; restart the job from its last checkpoint", number, host,
                   loss->life == TR_COMM_LEFT ? "has left without taking part" : "died");
}

tr_status tr_comm_check_rank(tr_comm *comm, int rank)
{
    struct loss loss = {.rank = -1};
    look_at(comm, rank, false, &loss);
    return loss.rank < 0 ? TR_OK : fail_lost(comm, &loss);
}

tr_status tr_comm_require(tr_comm *comm, const int *ranks, int count)
{
    struct loss loss = {.rank = -1};
    pthread_mutex_lock(&comm->lock);
    for (int i = 0; i < count; i++) look_at(comm, ranks[i], false, &loss);
    pthread_mutex_unlock(&comm->lock);
    return loss.rank < 0 ? TR_OK : fail_lost(comm, &loss);
}

static tr_status fail_impatient(tr_comm *comm, const tr_ticket *ticket, double waited)
{
    struct tr_text text = TR_TEXT_INIT;
    add_pending(&text, comm, ticket);
    tr_status status =
        tr_fail(TR_EPEER,
                "missing after %.3g s (patience %g s), although alive: %s; all ranks must run the same "
                "program on the same job, or else raise the patience",
                waited, comm->settings.patience, text.bytes ? text.bytes : "some rank");
    tr_text_release(&text);
    return status;
}

static void warn(tr_comm *comm, const tr_ticket *ticket, double waited)
{
    struct tr_text text = TR_TEXT_INIT;
    add_pending(&text, comm, ticket);
    tr_log_line(TR_LOG_WARNING, "%s%s%s: rank %d has been waiting for %.3g s; slow, but alive: %s",
                ticket->kind, ticket->name ? " " : "", ticket->name ? ticket->name : "",
                tr_comm_number(comm, comm->rank), waited, text.bytes ? text.bytes : "some rank");
    tr_text_release(&text);
}

/* Whether to check all ranks: at first, when something has changed or is in doubt, and at intervals, since
   silence is not a change. */
static bool is_to_ask(tr_comm *comm, double now, struct tr_patience *patience)
{
    tr_comm *base = comm->whole ? comm->whole : comm;
    if (!base->class->changes) return true;
    if (comm->whole) pthread_mutex_lock(&base->lock);
    uint64_t changes = base->class->changes(base);
    if (comm->whole) pthread_mutex_unlock(&base->lock);
    if (now < patience->again && changes == patience->changes && patience->troubled == 0) return false;
    patience->changes = changes;
    patience->again = now + tr_comm_interval(&comm->settings);
    return true;
}

tr_status tr_comm_judge(tr_comm *comm, const tr_ticket *ticket, double now, struct tr_patience *patience)
{
    double waited = now - patience->began;
    const tr_comm *top = comm;
    if (patience->next == 0) patience->next = now + LOOK_SECONDS;
    if (now < patience->next) return TR_OK;
    patience->next = now + LOOK_SECONDS;
    while (top->whole) top = top->whole;
    TR_TRY(tr_comm_check_stop(&top->settings));
    struct loss loss = {.rank = -1};
    if (is_to_ask(comm, now, patience)) {
        find_lost(comm, ticket, &loss);
        find_cause(comm, &loss);
    }
    if (loss.rank < 0) {
        patience->troubled = 0;
    } else if (patience->troubled == 0) {
        patience->troubled = now;
    } else if (now - patience->troubled > (comm->whole ? comm->whole : comm)->class->grace) {
        /* It may have sent our message just before. */
        comm->lost_member = comm->outlives && loss.life == TR_COMM_DEAD;
        return fail_lost(comm, &loss);
    }
    if (waited > comm->settings.patience) return fail_impatient(comm, ticket, waited);
    if (waited > comm->settings.timeout && !patience->warned) {
        patience->warned = true;
        warn(comm, ticket, waited);
    }
    return TR_OK;
}
