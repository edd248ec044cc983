/* Who is missing: the judgement about a wait that takes long. */
#include "comm/operation.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>

#define WHY_SIZE 512
/* Between two looks at the ranks; a wait shorter than this never looks. */
#define LOOK_SECONDS 0.02
/* A rank that is gone may have sent what it owed us just before. */
#define GRACE_SECONDS 0.2

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

static bool is_pending(const tr_ticket *ticket, int rank)
{
    for (int i = 0; i < ticket->transfers; i++)
        if (!ticket->transfer[i].done && ticket->transfer[i].peer == rank) return true;
    return false;
}

/* "rank 2 on host b" */
static void add_rank(struct tr_text *text, const tr_comm *comm, int rank)
{
    tr_text_addf(text, "rank %d on host %s", rank, comm->place[rank].host);
}

/* Describes the pending messages, at most some: "nothing came from rank 2 on host b, rank 3 on host b". */
static void add_pending(struct tr_text *text, const tr_comm *comm, const tr_ticket *ticket)
{
    enum { MOST = 8 };
    int named = 0;
    for (int rank = 0; rank < comm->size; rank++) {
        if (!is_pending(ticket, rank)) continue;
        if (named == MOST) {
            tr_text_add(text, " and more");
            break;
        }
        tr_text_add(text, named++ ? ", " : "");
        add_rank(text, comm, rank);
    }
}

/* Finds a rank that is lost. The lowest such rank is named, those who merely gave up because of it last, so
   that all survivors name the same culprit. */
static int find_lost(tr_comm *comm, const tr_ticket *ticket, enum tr_comm_life *life, double *silence,
                     char *why)
{
    int lost = -1;
    for (int rank = 0; rank < comm->size; rank++) {
        bool pending = is_pending(ticket, rank);
        if (rank == comm->rank || (!pending && !ticket->collective)) continue;
        char said[WHY_SIZE] = "";
        double silent = 0;
        enum tr_comm_life now = comm->class->life(comm, rank, &silent, said, sizeof said);
        if (now == TR_COMM_ALIVE && silent > comm->settings.timeout) now = TR_COMM_SILENT;
        /* Whoever left had finished all collectives, unless we wait for it in this very one. */
        if (now == TR_COMM_ALIVE || (now == TR_COMM_LEFT && !pending)) continue;
        if (lost >= 0 && !(*life == TR_COMM_GAVE_UP && now != TR_COMM_GAVE_UP)) continue;
        lost = rank;
        *life = now;
        *silence = silent;
        snprintf(why, WHY_SIZE, "%s", said);
    }
    return lost;
}

static tr_status fail_lost(const tr_comm *comm, int rank, enum tr_comm_life life, double silence,
                           const char *why)
{
    const char *host = comm->place[rank].host;
    if (life == TR_COMM_GAVE_UP) return tr_fail(TR_EPEER, "rank %d on host %s gave up: %s", rank, host, why);
    if (life == TR_COMM_SILENT)
        return tr_fail(
            TR_EPEER,
            "rank %d on host %s has not been heard of for %.3g s (time-out %g s): it hangs, or its host or "
            "network is down; restart the job from its last checkpoint",
            rank, host, silence, comm->settings.timeout);
    return tr_fail(TR_EPEER, "rank %d on host %s %s; restart the job from its last checkpoint", rank, host,
                   life == TR_COMM_LEFT ? "has left without taking part" : "died");
}

static tr_status fail_impatient(const tr_comm *comm, const tr_ticket *ticket, double waited)
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

static void warn(const tr_comm *comm, const tr_ticket *ticket, double waited)
{
    struct tr_text text = TR_TEXT_INIT;
    add_pending(&text, comm, ticket);
    tr_log_line(TR_LOG_WARNING, "%s%s%s: rank %d has been waiting for %.3g s; slow, but alive: %s",
                ticket->kind, ticket->name ? " " : "", ticket->name ? ticket->name : "", comm->rank, waited,
                text.bytes ? text.bytes : "some rank");
    tr_text_release(&text);
}

tr_status tr_comm_judge(tr_comm *comm, const tr_ticket *ticket, double now, struct tr_patience *patience)
{
    double waited = now - patience->began;
    if (patience->next == 0) patience->next = now + LOOK_SECONDS;
    if (now < patience->next) return TR_OK;
    patience->next = now + LOOK_SECONDS;
    char why[WHY_SIZE];
    enum tr_comm_life life = TR_COMM_ALIVE;
    double silence = 0;
    int lost = find_lost(comm, ticket, &life, &silence, why);
    if (lost < 0) {
        patience->troubled = 0;
    } else if (patience->troubled == 0) {
        patience->troubled = now;
    } else if (now - patience->troubled > GRACE_SECONDS) {
        return fail_lost(comm, lost, life, silence, why);
    }
    if (waited > comm->settings.patience) return fail_impatient(comm, ticket, waited);
    if (waited > comm->settings.timeout && !patience->warned) {
        patience->warned = true;
        warn(comm, ticket, waited);
    }
    return TR_OK;
}
