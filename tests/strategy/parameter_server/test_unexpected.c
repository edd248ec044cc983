/* Ranks that run other programs: what an asynchronous server and its workers do not expect of each other ends
 * the run with a message, wherever they wait for one.
 */
#include "support/ranks.h"

#include "strategy/parameter_server/parameter_server.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROOT, WORKER, SERVER, SIZE };

/* One rank is real, another is played by the test: it sends a word where the real one waits for another. */
struct scene {
    int real, played;
    tr_status (*act)(struct ps *self); /* of the real rank */
    int asks, asked;                   /* kind of its word, unless it is a server: expected, and heard */
    struct ps_down down;               /* what a played server answers */
    int up;                            /* kind of a played worker's word */
    tr_status status;
    const char *says;
};

static tr_status step(struct ps *self)
{
    struct tr_step_figures figures;
    return ps_root_step(self, 0, &figures);
}

static tr_status work(struct ps *self)
{
    atomic_int stop = 0;
    return ps_worker_run(self, &stop, 0);
}

static tr_status serve(struct ps *self)
{
    atomic_int stop = 0;
    return ps_server_run(self, &stop, 0);
}

static tr_status evaluate(struct ps *self)
{
    struct tr_shared_evaluation evaluation = {.count = 1, .piece = 1, .bytes = sizeof(float)};
    return ps_root_evaluate(self, &evaluation);
}

static void play_server(tr_comm *comm, struct scene *scene)
{
    tr_ticket *ticket = NULL;
    struct ps_up up;
    must_train(tr_comm_receive(comm, scene->real, PS_TAG_UP, &up, sizeof up, "word", &ticket));
    must_train(tr_comm_wait(comm, &ticket));
    scene->asked = up.kind;
    must_train(
        tr_comm_send(comm, scene->real, PS_TAG_DOWN, &scene->down, sizeof scene->down, "word", &ticket));
    must_train(tr_comm_wait(comm, &ticket));
}

static void play_worker(tr_comm *comm, struct scene *scene)
{
    tr_ticket *ticket = NULL;
    struct ps_up up = {.kind = scene->up};
    must_train(tr_comm_send(comm, scene->real, PS_TAG_UP, &up, sizeof up, "word", &ticket));
    must_train(tr_comm_wait(comm, &ticket));
}

/* Others stay until the real one has finished, or it would find them lost. */
static void *act(void *user)
{
    struct rank *rank = user;
    struct scene *scene = rank->user;
    tr_trainer *trainer = NULL;
    int me = tr_comm_rank(rank->comm);
    char done = 0;
    tr_ticket *ticket = NULL;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    if (me == scene->played) (me == SERVER ? play_server : play_worker)(rank->comm, scene);
    if (me == scene->real) {
        rank->outcome.status = scene->act(ps_of(trainer_strategy(trainer)));
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    }
    must_train(tr_comm_broadcast(rank->comm, scene->real, &done, sizeof done, "end", &ticket));
    must_train(tr_comm_wait(rank->comm, &ticket));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void play(struct scene *scene)
{
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], family_place);
    job.settings.set = job.set;
    job.settings.strategy = "parameter-server,mode=async";
    memset(ranks, 0, sizeof ranks);
    for (int r = 0; r < SIZE; r++) ranks[r].user = scene;
    run_ranks_by(act, &job.settings, SIZE, 0, ranks);
    const struct outcome *outcome = &ranks[scene->real].outcome;
    if (scene->real != SERVER) assert_int_equal(scene->asked, scene->asks);
    if (outcome->status != scene->status || !strstr(outcome->message, scene->says))
        fail_msg("rank %d, on the word %d: %s, \"%s\"", scene->real,
                 scene->real == SERVER ? scene->up : scene->down.kind, tr_status_name(outcome->status),
                 outcome->message);
}

static const struct {
    int rank;
    tr_status (*act)(struct ps *self);
    int asks;
    int refused; /* a word that exists, but does not answer this one */
} waits[] = {
    {ROOT, step, PS_ASK, PS_ENDED},
    {ROOT, ps_root_drain, PS_DRAIN, PS_GATHERED},
    {ROOT, ps_root_gather, PS_GATHER, PS_DRAINED},
    {ROOT, evaluate, PS_EVALUATE, PS_NEWS},
    {ROOT, ps_root_end, PS_END, PS_NEWS},
    {WORKER, work, PS_ASK, PS_NEWS},
};

static void workers_refuse_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        char says[64];
        struct scene scene = {.real = waits[i].rank,
                              .played = SERVER,
                              .act = waits[i].act,
                              .asks = waits[i].asks,
                              .status = TR_EMISMATCH};
        scene.down.kind = waits[i].refused;
        scene.says = says;
        snprintf(says, sizeof says, "unexpected message (kind %d)", waits[i].refused);
        play(&scene);
        scene.down.kind = 77;
        scene.says = "unexpected message (kind 77)";
        play(&scene);
        scene.down.kind = PS_FENCED;
        scene.status = TR_EPEER;
        scene.says = waits[i].rank == ROOT ? "rank 0 was not heard of for too long"
                                           : "rank 1 was not heard of for too long";
        play(&scene);
    }
}

/* More records of updates than any server sends, and less than none. */
static void the_root_refuses_impossible_logs(void **state)
{
    (void)state;
    static const int64_t counts[] = {-1, INT64_MAX};
    for (size_t i = 0; i < 2; i++) {
        char says[64];
        struct scene scene = {.real = ROOT,
                              .played = SERVER,
                              .act = ps_root_drain,
                              .asks = PS_DRAIN,
                              .down = {.kind = PS_DRAINED, .updates = counts[i]},
                              .status = TR_EMISMATCH,
                              .says = says};
        snprintf(says, sizeof says, "sends %lld records of updates", (long long)counts[i]);
        play(&scene);
    }
}

/* Pieces that an evaluation does not have, for a worker; and results of ranks that evaluate nothing, or of
   such pieces, for the root. */
static void nobody_evaluates_what_is_not_there(void **state)
{
    (void)state;
    static const struct ps_down pieces[] = {
        {.number = -1, .evaluation = {.count = 4, .piece = 2, .bytes = 4}},
        {.number = 2, .evaluation = {.count = 4, .piece = 2, .bytes = 4}},
        {.number = 2, .evaluation = {.count = 3, .piece = 2, .bytes = 4}},
        {.number = 0, .evaluation = {.count = 0, .piece = 2, .bytes = 4}},
        {.number = 0, .evaluation = {.count = 4, .piece = 0, .bytes = 4}},
        {.number = 0, .evaluation = {.count = 4, .piece = -2, .bytes = 4}},
        {.number = 0, .evaluation = {.count = 4, .piece = 2, .bytes = 0}},
    };
    static const struct ps_down results[] = {
        {.number = -1, .worker = 1}, {.number = 1, .worker = 1}, {.worker = ROOT}, {.worker = SERVER}};
    char says[64];
    struct scene scene = {.played = SERVER, .status = TR_EMISMATCH, .says = says};
    scene.real = WORKER;
    scene.act = work;
    scene.asks = PS_ASK;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        scene.down = pieces[i];
        scene.down.kind = PS_PIECE;
        snprintf(says, sizeof says, "an evaluation has no piece %lld", (long long)pieces[i].number);
        play(&scene);
    }
    scene.real = ROOT;
    scene.act = evaluate;
    scene.asks = PS_EVALUATE;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        scene.down = results[i];
        scene.down.kind = PS_FOUND;
        if (i < 2)
            snprintf(says, sizeof says, "an evaluation has no piece %lld", (long long)results[i].number);
        else
            snprintf(says, sizeof says, "unexpected message (kind %d)", PS_FOUND);
        play(&scene);
    }
}

/* Gradients, and requests of room for them, by workers that have no work; and words that do not exist. */
static void a_server_refuses_words(void **state)
{
    (void)state;
    static const int kinds[] = {PS_OFFER, PS_PUSH, PS_END + 1, -1};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int worker = ROOT; worker <= WORKER; worker++) {
            char says[64];
            struct scene scene = {.real = SERVER,
                                  .played = worker,
                                  .act = serve,
                                  .up = kinds[i],
                                  .status = TR_EMISMATCH,
                                  .says = says};
            snprintf(says, sizeof says, "worker %d sent an unexpected message (kind %d)", worker, kinds[i]);
            play(&scene);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_refuse_words),
        cmocka_unit_test(the_root_refuses_impossible_logs),
        cmocka_unit_test(nobody_evaluates_what_is_not_there),
        cmocka_unit_test(a_server_refuses_words),
    };
    return cmocka_run_group_tests_name("strategy.unexpected", tests, family_place_make, family_place_remove);
}
