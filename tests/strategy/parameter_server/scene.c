#include "strategy/parameter_server/scene.h"

#include "comm/operation.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void *act(void *user)
{
    struct rank *rank = user;
    struct scene *scene = rank->user;
    int me = tr_comm_rank(rank->comm);
    tr_trainer *trainer = NULL;
    tr_ticket *ticket = NULL;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    if (scene->part[me]) scene->part[me](ps_of(trainer_strategy(trainer)), scene);
    must_train(tr_comm_barrier(rank->comm, &ticket));
    must_train(tr_comm_wait(rank->comm, &ticket));
    tr_trainer_destroy(&trainer);
    if (scene->late[me]) scene->late[me](rank->comm, scene);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

void scene_play(struct scene *scene)
{
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.microbatches=4");
    for (int i = 0; i < 4 && scene->set[i]; i++) job_set(&job, scene->set[i]);
    job.settings.set = job.set;
    job.settings.strategy = scene->strategy;
    memset(ranks, 0, sizeof ranks);
    for (int r = 0; r < scene->size; r++) ranks[r].user = scene;
    run_ranks_by(act, &job.settings, scene->size, scene->apart, ranks);
}

void scene_send(struct ps *self, int to, int tag, const void *data, size_t bytes)
{
    tr_ticket *ticket = NULL;
    must_train(tr_comm_send(self->head.comm, to, tag, data, bytes, "scene", &ticket));
    must_train(tr_comm_wait(self->head.comm, &ticket));
}

void scene_receive(struct ps *self, int from, int tag, void *data, size_t bytes)
{
    tr_ticket *ticket = NULL;
    must_train(tr_comm_receive(self->head.comm, from, tag, data, bytes, "scene", &ticket));
    must_train(tr_comm_wait(self->head.comm, &ticket));
}

void scene_expect(tr_status status, tr_status expected, const char *message)
{
    if (status != expected || strcmp(tr_error_message(), message) != 0)
        fail_msg("%s, \"%s\", where \"%s\" was expected", tr_status_name(status), tr_error_message(),
                 message);
}

/* ---- messages that cannot be cancelled ---- */

enum { STUCK_MOST = 64 };

static struct {
    tr_comm *comm;
    const struct tr_comm_class *class;
    struct tr_comm_class stuck;
    tr_ticket *ticket[STUCK_MOST];
    int count;
} stuck;

static bool keep(tr_comm *comm, struct tr_transfer *transfer)
{
    tr_ticket *ticket = comm->active;
    while (ticket && ticket->transfer != transfer) ticket = ticket->next;
    assert_true(ticket && stuck.count < STUCK_MOST);
    stuck.ticket[stuck.count++] = ticket;
    return false;
}

void scene_stuck(tr_comm *comm)
{
    assert_null(stuck.comm);
    stuck.comm = comm;
    stuck.class = comm->class;
    stuck.stuck = *comm->class;
    stuck.stuck.withdraw = keep;
    stuck.count = 0;
    comm->class = &stuck.stuck;
}

void scene_loose(tr_comm *comm)
{
    assert_ptr_equal(stuck.comm, comm);
    comm->class = stuck.class;
    pthread_mutex_lock(&comm->lock);
    for (int i = 0; i < stuck.count; i++) {
        struct tr_transfer *transfer = stuck.ticket[i]->transfer;
        /* The other side may have done its part meanwhile. */
        if (!transfer->done) must_train(comm->class->test(comm, transfer));
        if (!transfer->done) assert_true(comm->class->withdraw(comm, transfer));
        tr_ticket_drop(comm, stuck.ticket[i]);
    }
    pthread_mutex_unlock(&comm->lock);
    stuck.comm = NULL;
}
