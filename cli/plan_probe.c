/* The network of one host: two processes that are joined as those of a job are, and send each other messages.
 */
#include "plan.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "comm/transport.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PINGS  2000
#define STREAM ((size_t)32 << 20) /* bytes */
#define ROUNDS 5

/* One message there or back. */
static tr_status move(tr_comm *comm, bool sends, void *data, size_t bytes)
{
    tr_ticket *ticket = NULL;
    TR_TRY(sends ? tr_comm_send(comm, 1 - tr_comm_rank(comm), 0, data, bytes, "probe", &ticket)
                 : tr_comm_receive(comm, 1 - tr_comm_rank(comm), 0, data, bytes, "probe", &ticket));
    return tr_comm_wait(comm, &ticket);
}

/* Seconds of a message there and back. */
static tr_status ping(tr_comm *comm, void *data, size_t bytes, int times, double *seconds)
{
    bool first = tr_comm_rank(comm) == 0;
    *seconds = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double began = tr_clock_seconds();
        for (int i = 0; i < times; i++) {
            TR_TRY(move(comm, first, data, bytes));
            TR_TRY(move(comm, !first, data, bytes));
        }
        double taken = (tr_clock_seconds() - began) / times;
        if (taken < *seconds) *seconds = taken;
    }
    return TR_OK;
}

static tr_status talk(const char *ticket, struct tr_path *out)
{
    const struct tr_comm_settings settings = TR_COMM_SETTINGS_INIT;
    tr_comm *comm = NULL;
    void *data = tr_alloc_zero(STREAM, 1);
    double word = 0, stream = 0;
    tr_status status = data ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = tr_comm_local_create(ticket, &settings, &comm);
    if (status == TR_OK) status = ping(comm, data, 8, PINGS, &word);
    if (status == TR_OK) status = ping(comm, data, STREAM, 1, &stream);
    if (status == TR_OK) {
        /* Half of the time of a word is the processors'. */
        out->overhead = word / 2 / 4;
        out->latency = word / 2 / 2;
        out->rate = (double)STREAM / (stream / 2);
    }
    tr_comm_destroy(&comm);
    tr_free(data);
    return status;
}

/* A process of its own for a rank, which writes what it found to `descriptor`. */
static pid_t start(const char *ticket, int descriptor)
{
    pid_t child = fork();
    if (child != 0) return child;
    struct tr_path found = {0};
    bool well = talk(ticket, &found) == TR_OK && write(descriptor, &found, sizeof found) == sizeof found;
    _exit(!well);
}

static tr_status run_with(const tr_local_group *group, int descriptor[2], struct tr_path *out)
{
    char ticket[2][TR_LOCAL_TICKET_SIZE];
    pid_t child[2] = {-1, -1};
    struct tr_path found;
    for (int rank = 0; rank < 2; rank++)
        TR_TRY(tr_local_group_ticket(group, rank, ticket[rank], sizeof ticket[rank]));
    fflush(NULL);
    for (int rank = 0; rank < 2; rank++) child[rank] = start(ticket[rank], descriptor[1]);
    close(descriptor[1]);
    descriptor[1] = -1;
    bool well = child[0] > 0 && child[1] > 0 && read(descriptor[0], &found, sizeof found) == sizeof found;
    for (int rank = 0; rank < 2; rank++) {
        if (child[rank] <= 0) continue;
        if (!well) kill(child[rank], SIGKILL);
        while (waitpid(child[rank], NULL, 0) < 0) continue;
    }
    if (!well)
        return tr_fail(TR_EUNSUPPORTED, "two processes of this host could not be joined to measure it");
    out->latency = found.latency;
    out->overhead = found.overhead;
    out->rate = found.rate;
    return TR_OK;
}

tr_status cli_plan_probe(struct tr_path *out)
{
    tr_local_group *group;
    int descriptor[2];
    TR_TRY(tr_local_group_create(2, &group));
    tr_status status = pipe(descriptor) == 0 ? TR_OK : tr_fail(TR_EUNSUPPORTED, "the system has no pipe");
    if (status == TR_OK) {
        status = run_with(group, descriptor, out);
        if (descriptor[1] >= 0) close(descriptor[1]);
        close(descriptor[0]);
    }
    tr_local_group_destroy(&group);
    return status;
}
