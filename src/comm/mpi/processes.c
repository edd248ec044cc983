#include "comm/mpi/processes.h"

#include "base/alloc.h"
#include "comm/location.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

/* Most processes that a rank watches. Each is watched by as many ranks, so that simultaneous ends are
   hardly missed. A small part of the descriptors that a process may have. */
#define WATCHED_MOST  64
#define WATCHED_SHARE 8

struct tr_processes {
    int members; /* of the host, at the last check */
    int count;
    int rank[WATCHED_MOST];
    bool gone[WATCHED_MOST];
    struct pollfd end[WATCHED_MOST]; /* without a descriptor, the process is polled */
};

struct tr_processes *tr_processes_create(void)
{
    return tr_alloc_zero(1, sizeof(struct tr_processes));
}

static void close_all(struct tr_processes *processes)
{
    for (int i = 0; i < processes->count; i++)
        if (processes->end[i].fd >= 0) close(processes->end[i].fd);
    processes->count = 0;
}

void tr_processes_destroy(struct tr_processes **handle)
{
    if (!*handle) return;
    close_all(*handle);
    tr_free(*handle);
    *handle = NULL;
}

/* Ranks learn their hosts only some time after they have joined. */
static void find(struct tr_processes *processes, const tr_comm *comm, int members)
{
    const int *member = comm->hosts.member + comm->hosts.start[comm->hosts.of[comm->rank]];
    struct rlimit limit;
    int most = WATCHED_MOST, index = comm->hosts.index[comm->rank];
    close_all(processes);
    processes->members = members;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / WATCHED_SHARE < WATCHED_MOST)
        most = (int)(limit.rlim_cur / WATCHED_SHARE);
    for (int i = 1; i < members && i <= most; i++) {
        int at = processes->count++, rank = member[(index + i) % members];
        processes->rank[at] = rank;
        processes->gone[at] = false;
        processes->end[at] =
            (struct pollfd){.fd = tr_location_watch(&comm->location[rank]), .events = POLLIN};
        /* A new process with the same id is another one. */
        if (processes->end[at].fd >= 0 && !tr_location_runs(&comm->location[rank])) {
            close(processes->end[at].fd);
            processes->end[at].fd = -1;
        }
    }
}

int tr_processes_next_gone(struct tr_processes *processes, const tr_comm *comm)
{
    int members = tr_island_size(&comm->hosts, comm->hosts.of[comm->rank]);
    if (members != processes->members) find(processes, comm, members);
    if (processes->count > 0) poll(processes->end, (nfds_t)processes->count, 0);
    for (int i = 0; i < processes->count; i++) {
        struct pollfd *end = &processes->end[i];
        if (processes->gone[i]) continue;
        if (end->fd >= 0 ? !end->revents : tr_location_runs(&comm->location[processes->rank[i]])) continue;
        if (end->fd >= 0) close(end->fd);
        end->fd = -1;
        processes->gone[i] = true;
        return processes->rank[i];
    }
    return -1;
}
