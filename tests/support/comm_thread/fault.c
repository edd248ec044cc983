/* Faults on demand. */
#include "support/comm_thread/thread.h"

#include "support/comm_thread/group.h"

#include "base/threads/clock.h"

void tr_comm_thread_kill(tr_comm *comm)
{
    struct group *group = ((struct thread_comm *)comm)->group;
    pthread_mutex_lock(&group->lock);
    group->member[comm->rank].killed = true;
    for (int rank = 0; rank < group->size; rank++) group_wake(group, rank);
    pthread_mutex_unlock(&group->lock);
}

void tr_comm_thread_freeze(tr_comm *comm)
{
    struct group *group = ((struct thread_comm *)comm)->group;
    pthread_mutex_lock(&group->lock);
    group->member[comm->rank].frozen = tr_clock_seconds();
    pthread_mutex_unlock(&group->lock);
}

void tr_comm_thread_delay(tr_comm *comm, int to, int64_t nth, double seconds)
{
    struct group *group = ((struct thread_comm *)comm)->group;
    pthread_mutex_lock(&group->lock);
    group->member[comm->rank].fault = (struct group_fault){.to = to, .left = nth, .seconds = seconds};
    pthread_mutex_unlock(&group->lock);
}
