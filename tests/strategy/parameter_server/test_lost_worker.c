/* What a worker that is lost held of an asynchronous server's room is there for others again. */
#include "support/ranks.h"

#include "base/text/log.h"
#include "strategy/parameter_server/coordinator.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { ROOT, VICTIM, SERVER, SIZE };

/* Seconds that the others are given to come to the end of a run that takes one. */
#define PATIENCE 120

static atomic_bool warned;
static char warning[1024];

static void keep_warning(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    if (level != TR_LOG_WARNING || !strstr(message, "worker")) return;
    snprintf(warning, sizeof warning, "%s", message);
    atomic_store(&warned, true);
}

struct member {
    const struct tr_train_settings *settings;
    tr_comm *comm;
    pthread_barrier_t *ready;
    pthread_t thread;
    bool stops;
    tr_status status;
    char message[1024];
    /* Of the server, after the run: workers that were lost, room in all, and what of it is free for gradients
       and for parameters. */
    int lost, credits, incoming, outgoing;
};

static void look(struct member *member, const tr_trainer *trainer)
{
    const struct ps *self = ps_of(trainer_strategy(trainer));
    const struct ps_coordinator *coordinator = self->server->coordinator;
    member->lost = coordinator->lost;
    member->credits = self->credits;
    member->incoming = ps_credits_free(coordinator->incoming);
    member->outgoing = ps_credits_free(coordinator->outgoing);
}

/* A long run ends once the loss was found out. */
static int stop_when_warned(void *trainer, const struct tr_train_event *event)
{
    (void)event;
    if (atomic_load(&warned)) tr_trainer_stop(trainer);
    return 0;
}

static void *run_member(void *user)
{
    struct member *member = user;
    tr_trainer *trainer = NULL;
    int rank = tr_comm_rank(member->comm);
    member->status = trainer_create(member->settings, member->comm, &trainer);
    pthread_barrier_wait(member->ready);
    if (member->status == TR_OK)
        member->status =
            tr_trainer_run(trainer, rank == ROOT && member->stops ? stop_when_warned : NULL, trainer);
    if (rank == ROOT && member->stops && member->status == TR_EINTERRUPTED) member->status = TR_OK;
    if (member->status == TR_OK && rank == SERVER) look(member, trainer);
    if (member->status != TR_OK) {
        snprintf(member->message, sizeof member->message, "%s", tr_error_message());
        tr_comm_abort(member->comm, member->message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&member->comm);
    return NULL;
}

/* Waits for the others' end, which does not come where one of them waits for room, or for an answer, that the
   lost worker took along. */
static void join(const struct member *member)
{
    struct timespec deadline;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &deadline), 0);
    deadline.tv_sec += PATIENCE;
    for (int r = 0; r < SIZE; r++) {
        if (r == VICTIM || pthread_timedjoin_np(member[r].thread, NULL, &deadline) == 0) continue;
        fail_msg("the %s does not come to its end after the loss of a worker: room or an answer is lost",
                 r == SERVER ? "server" : "root");
    }
}

/* All of it is free after the run. */
static void expect_room(const char *what, int free, int all)
{
    if (free != all)
        fail_msg("room for %s: %d of %d is free after the run, the rest left with the lost worker", what,
                 free, all);
}

/* This thread plays a worker, which dies before it asks for work, or as soon as it is given some: then it has
   room for parameters, which it has not said to have, and for the gradient that it was to compute. It asks
   before the others begin, so that work is left. There is room for two, so a run that gives too little back
   still comes to its end. */
static void lose_worker(bool works)
{
    static const int hosts[SIZE] = {0, 1, 2};
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    static struct member member[SIZE]; /* outlives the test where they do not end */
    static struct job job;
    tr_comm *comms[SIZE];
    static pthread_barrier_t ready;
    tr_trainer *trainer;
    tr_ticket *asked, *given;
    struct ps_up ask = {.kind = PS_ASK};
    struct ps_down work;
    char batch[64] = "";
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.log_every=1");
    job.settings.set = job.set;
    job.settings.steps = works ? 30 : 100000000;
    job.settings.strategy = "parameter-server,mode=async,buffers=4";
    must_train(tr_comm_thread_create(SIZE, hosts, &patience, comms));
    pthread_barrier_init(&ready, NULL, SIZE);
    for (int r = 0; r < SIZE; r++) {
        member[r] =
            (struct member){.settings = &job.settings, .comm = comms[r], .ready = &ready, .stops = !works};
        if (r != VICTIM) assert_int_equal(pthread_create(&member[r].thread, NULL, run_member, &member[r]), 0);
    }

    tr_comm *comm = comms[VICTIM];
    must_train(trainer_create(&job.settings, comm, &trainer));
    if (works) {
        must_train(tr_comm_send(comm, SERVER, PS_TAG_UP, &ask, sizeof ask, "word", &asked));
        must_train(tr_comm_receive(comm, SERVER, PS_TAG_DOWN, &work, sizeof work, "work", &given));
    }
    warning[0] = '\0';
    atomic_store(&warned, false);
    tr_log_set_sink(keep_warning, NULL, TR_LOG_WARNING);
    pthread_barrier_wait(&ready);
    if (works) {
        must_train(tr_comm_wait(comm, &asked));
        must_train(tr_comm_wait(comm, &given));
        assert_int_equal(work.kind, PS_WORK);
        snprintf(batch, sizeof batch, "; batch %d is computed by another", (int)work.number);
        assert_true(work.granted);
    }
    tr_comm_thread_kill(comm);
    join(member);
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&comm);
    pthread_barrier_destroy(&ready);

    for (int r = 0; r < SIZE; r++)
        if (r != VICTIM && member[r].status != TR_OK) fail_msg("rank %d: %s", r, member[r].message);
    assert_int_equal(member[SERVER].lost, 1);
    assert_int_equal(member[SERVER].credits, 2);
    expect_room("gradients", member[SERVER].incoming, 2);
    expect_room("parameters", member[SERVER].outgoing, 2);
    static const char end[] = "going on without it";
    const char *said = strstr(warning, end);
    if (!said || strncmp(warning, "after step ", 11) != 0 ||
        !strstr(warning, ": worker 1 on host thread-host-1 died") ||
        strcmp(said + sizeof end - 1, batch) != 0)
        fail_msg("the server says: %s", warning);
}

static void its_room_is_given_back(void **state)
{
    (void)state;
    lose_worker(true);
}

static void who_never_asked_is_missed(void **state)
{
    (void)state;
    lose_worker(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_room_is_given_back),
        cmocka_unit_test(who_never_asked_is_missed),
    };
    return cmocka_run_group_tests_name("strategy.lost_worker", tests, family_place_make, family_place_remove);
}
