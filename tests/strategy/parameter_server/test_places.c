/* Where workers and servers are: who shares memory with whom, for whom servers keep room, who must not be
 * lost, what each has of the variables, and what a server computes with. */
#include "strategy/parameter_server/coordinator.h"
#include "strategy/parameter_server/scene.h"

#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* ---- who is far from whom ---- */

struct place {
    int workers, servers, buffers;
    bool distant[RANKS];
    int distants;
    /* For each rank, the ranks whose memory it can access. */
    const char *near[RANKS];
};

static void expect_place(struct ps *self, struct scene *scene)
{
    const struct place *place = scene->user;
    int me = self->head.rank, credits = place->distants < place->buffers ? place->distants : place->buffers;
    assert_int_equal(self->workers, place->workers);
    assert_int_equal(self->servers, place->servers);
    assert_int_equal(self->distants, place->distants);
    assert_int_equal(self->credits, credits);
    assert_int_equal(ps_is_roomy(self), place->distants <= place->buffers);
    for (int w = 0; w < self->workers; w++) assert_int_equal(self->distant[w], place->distant[w]);
    for (int r = 0; r < self->head.size; r++)
        assert_int_equal(ps_is_near(self, r), strchr(place->near[me], '0' + r) != NULL);
    for (int s = 0; s < self->servers; s++) assert_int_equal(ps_server_rank(self, s), self->workers + s);
    /* The root and the servers. */
    assert_int_equal(self->watch.count, 1 + self->servers);
    assert_int_equal(self->watch.ranks[0], 0);
    for (int s = 0; s < self->servers; s++) assert_int_equal(self->watch.ranks[1 + s], self->workers + s);
    if (!self->server) return;
    int far = 0;
    for (int w = 0; w < self->workers; w++) {
        bool near = ps_is_near(self, w);
        assert_int_equal(self->server->peer[w].near, near);
        assert_int_equal(self->server->peer[w].gradient != NULL, near);
        far += !near;
    }
    assert_int_equal(self->server->rooms, far < credits ? far : credits);
    assert_int_equal(self->server->coordinator != NULL, me == self->workers);
    if (!self->server->coordinator) return;
    assert_int_equal(ps_credits_free(self->server->coordinator->incoming), credits);
    assert_int_equal(ps_credits_free(self->server->coordinator->outgoing), credits);
}

static void play(const char *strategy, int apart, const struct place *place)
{
    struct scene scene = {.strategy = strategy, .size = place->workers + place->servers, .apart = apart};
    struct place own = *place;
    scene.user = &own;
    for (int r = 0; r < scene.size; r++) scene.part[r] = expect_place;
    scene_play(&scene);
}

static void who_is_far_needs_room(void **state)
{
    (void)state;
    play("parameter-server,mode=async,servers=2", 0,
         &(struct place){3, 2, 4, {false}, 0, {"01234", "01234", "01234", "01234", "01234"}});
    play("parameter-server,mode=async,servers=2", 1,
         &(struct place){3, 2, 4, {true, true, true}, 3, {"0", "1", "2", "3", "4"}});
    play("parameter-server,mode=async,servers=2,buffers=3", 1,
         &(struct place){3, 2, 3, {true, true, true}, 3, {"0", "1", "2", "3", "4"}});
    play("parameter-server,mode=async,servers=2,buffers=2", 1,
         &(struct place){3, 2, 2, {true, true, true}, 3, {"0", "1", "2", "3", "4"}});
    /* Two ranks on each host: worker 2 shares memory with the first of two servers, so it is far from one. */
    play("parameter-server,mode=bounded,servers=2,buffers=2", 2,
         &(struct place){3, 2, 2, {true, true, true}, 3, {"01", "01", "23", "23", "4"}});
    /* And with the only one. */
    play("parameter-server,mode=backup,buffers=1", 2,
         &(struct place){3, 1, 1, {true, true, false}, 2, {"01", "01", "23", "23"}});
}

/* ---- what each has ---- */

/* The root has all, other workers the parameters, and servers a shard of everything. */
static void expect_variables(struct ps *self, struct scene *scene)
{
    const tr_variables *variables = self->head.replicas->variables;
    int64_t floats = self->head.job->model->arena_floats, half = self->shard[1];
    int rank = self->head.rank;
    (void)scene;
    assert_true(half > 0 && half < floats);
    for (int i = 0; i < TR_ARENAS; i++) {
        enum tr_arena arena = (enum tr_arena)i;
        if (!tr_variables_arena(variables, arena)) continue;
        bool parameters = arena == TR_ARENA_PARAMETERS;
        bool first = rank == 0 || rank == 2 || (rank == 1 && parameters),
             second = rank == 0 || rank == 3 || (rank == 1 && parameters);
        assert_int_equal(tr_variables_keep(variables, arena, 0, half), first);
        assert_int_equal(tr_variables_keep(variables, arena, half, floats), second);
        assert_int_equal(tr_variables_keep(variables, arena, half - 1, half), first);
        assert_int_equal(tr_variables_keep(variables, arena, half, half + 1), second);
    }
    assert_int_equal(self->shard[0], 0);
    assert_int_equal(self->shard[2], floats);
    assert_int_equal(self->head.replicas->gradient != NULL, rank < 2);
}

static void each_has_its_part(void **state)
{
    (void)state;
    struct scene scene = {.strategy = "parameter-server,mode=async,servers=2",
                          .set = {"optimizer={rule: adam, rate: 1e-3, ema: 0.9}"},
                          .size = 4};
    for (int r = 0; r < 4; r++) scene.part[r] = expect_variables;
    scene_play(&scene);
}

/* ---- threads of servers that wait while workers compute, and the other way round ---- */

struct threads {
    int workers, servers, expected;
    bool other_holder;
};

static void *expect_threads(void *user)
{
    struct rank *rank = user;
    const struct threads *threads = rank->user;
    tr_trainer *trainer = NULL;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    const tr_strategy *strategy = trainer_strategy(trainer);
    bool server = strategy->rank >= threads->workers;
    assert_int_equal(strategy->device->threads, server ? threads->expected : rank->settings->threads);
    if (!threads->other_holder) assert_ptr_equal(strategy->holder, strategy->device);
    if (threads->other_holder) assert_string_equal(strategy->holder->class->name, "ref");
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void synchronous_servers_take_the_cores_of_workers(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *holder;
        int threads, apart;
        struct threads expected;
    } cases[] = {
        {"parameter-server", NULL, 1, 0, {3, 1, 3, false}},
        {"parameter-server", NULL, 2, 0, {3, 1, 6, false}},
        {"parameter-server,servers=2", NULL, 1, 0, {3, 2, 1, false}}, /* one and a half */
        {"parameter-server,servers=2", NULL, 2, 0, {3, 2, 3, false}},
        {"parameter-server,servers=2", NULL, 1, 0, {4, 2, 2, false}},
        {"parameter-server,servers=3", NULL, 2, 0, {2, 3, 2, false}}, /* never fewer than its own */
        {"parameter-server", NULL, 1, 1, {3, 1, 1, false}},           /* nobody else is there */
        {"parameter-server", NULL, 1, 2, {3, 1, 1, false}},           /* one worker */
        {"parameter-server,servers=2", NULL, 1, 2, {4, 2, 1, false}}, /* two servers alone */
        {"parameter-server", "ref", 1, 0, {3, 1, 3, true}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct rank ranks[RANKS];
        struct threads expected = cases[i].expected;
        family_job(&job, &families[0], family_place);
        job_set(&job, "train.microbatches=4");
        job.settings.set = job.set;
        job.settings.strategy = cases[i].strategy;
        job.settings.threads = cases[i].threads;
        job.settings.parameters_on = cases[i].holder;
        memset(ranks, 0, sizeof ranks);
        for (int r = 0; r < RANKS; r++) ranks[r].user = &expected;
        run_ranks_by(expect_threads, &job.settings, expected.workers + expected.servers, cases[i].apart,
                     ranks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_far_needs_room),
        cmocka_unit_test(each_has_its_part),
        cmocka_unit_test(synchronous_servers_take_the_cores_of_workers),
    };
    return cmocka_run_group_tests_name("strategy.places", tests, family_place_make, family_place_remove);
}
