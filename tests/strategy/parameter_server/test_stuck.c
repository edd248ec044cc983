/* A worker is lost while the transport uses memory of its messages: what may be read or written still is left
 * alone, and the servers go on with other memory. */
#include "strategy/parameter_server/coordinator.h"
#include "strategy/parameter_server/scene.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ROOT, LOST, OTHER, SERVER, SIZE };
/* Every rank on a host of its own, and room for one gradient and one copy of parameters. */
#define STRATEGY "parameter-server,mode=async,buffers=1"

static tr_status command(struct ps *self, enum ps_command_kind kind, int worker)
{
    const struct ps_command command = {.kind = (int32_t)kind, .worker = worker, .give = -1};
    struct ps_report report = {.kind = -1};
    return ps_server_execute(self, &command, &report);
}

static size_t shard_bytes(const struct ps *self)
{
    return (size_t)(self->shard[1] - self->shard[0]) * sizeof(float);
}

/* ---- gradients and parameters ---- */

static void fill(float *values, int64_t count, float from)
{
    for (int64_t i = 0; i < count; i++) values[i] = from + (float)(i % 1000);
}

static void serve_another(struct ps *self, struct scene *scene)
{
    struct ps_server *server = self->server;
    size_t bytes = shard_bytes(self);
    float *expected = tr_alloc(bytes, 1);
    assert_non_null(expected);
    (void)scene;
    scene_stuck(self->head.comm);
    must_train(command(self, PS_GIVE, LOST));
    must_train(command(self, PS_EXPECT, LOST));
    float *out = server->out[0].arena, *in = server->in[0].arena;
    memcpy(expected, out, bytes);
    must_train(command(self, PS_DROP, LOST));
    assert_true(server->peer[LOST].gone);
    assert_null(server->peer[LOST].gradient);
    assert_null(server->peer[LOST].parameters);
    /* There is room again, elsewhere. */
    must_train(command(self, PS_EXPECT, OTHER));
    assert_false(ps_peer_is_filled(self, OTHER)); /* it sends what it has for the parameters */
    must_train(command(self, PS_GIVE, OTHER));
    assert_ptr_not_equal(server->out[0].arena, out);
    assert_ptr_not_equal(server->in[0].arena, in);
    assert_memory_equal(out, expected, bytes);
    while (!ps_peer_is_filled(self, OTHER)) must_train(tr_comm_progress(self->head.comm));
    fill(expected, self->shard[1], 7);
    assert_memory_equal(server->peer[OTHER].gradient, expected, bytes);
    must_train(command(self, PS_RELEASE, OTHER));
    assert_null(server->peer[OTHER].gradient);
    while (!tr_comm_is_done(self->head.comm, &server->out[0].way[0]))
        must_train(tr_comm_progress(self->head.comm));
    scene_loose(self->head.comm);
    tr_free(expected);
    tr_free(out);
    tr_free(in);
}

static void be_another(struct ps *self, struct scene *scene)
{
    size_t bytes = shard_bytes(self);
    float *values = tr_alloc(bytes, 1);
    assert_non_null(values);
    (void)scene;
    scene_receive(self, SERVER, PS_TAG_PARAMETERS, values, bytes);
    for (int64_t i = 0; i < self->shard[1]; i++) assert_true(values[i] > -100 && values[i] < 100);
    fill(values, self->shard[1], 7);
    for (int i = 0; i < ps_pieces(self, 0); i++) {
        int64_t begin, end;
        ps_piece(self, 0, i, &begin, &end);
        scene_send(self, SERVER, PS_TAG_GRADIENT, values + begin, (size_t)(end - begin) * sizeof *values);
    }
    tr_free(values);
}

static void rooms_of_a_lost_worker_are_replaced(void **state)
{
    (void)state;
    struct scene scene = {.strategy = STRATEGY, .size = SIZE, .apart = 1};
    scene.part[SERVER] = serve_another;
    scene.part[OTHER] = be_another;
    scene_play(&scene);
}

/* ---- snapshots ---- */

static const char *const sgd = "optimizer={rule: sgd, rate: 0.1}", *const adam =
                                                                       "optimizer={rule: adam, rate: 0.1}";

static int arenas_of(const struct ps *self)
{
    int count = 0;
    for (int i = 0; i < TR_ARENAS; i++)
        count += tr_variables_arena(self->head.replicas->variables, (enum tr_arena)i) != NULL;
    return count;
}

/* What the lost worker was to evaluate stays as it is, while the root gets other states. */
static void serve_states(struct ps *self, struct scene *scene)
{
    struct ps_server *server = self->server;
    size_t bytes = shard_bytes(self) * (size_t)arenas_of(self);
    float *before = tr_alloc(bytes, 1);
    assert_non_null(before);
    (void)scene;
    must_train(command(self, PS_SNAPSHOT, -1));
    float *stage = server->stage;
    must_train(command(self, PS_SHOW, LOST));
    memcpy(before, stage, bytes);
    scene_stuck(self->head.comm);
    must_train(command(self, PS_DROP, LOST));
    float *parameters = tr_variables_arena(self->head.replicas->variables, TR_ARENA_PARAMETERS);
    for (int i = 0; i < 3; i++) {
        float *last = server->stage;
        parameters[0] = (float)(1 + i);
        must_train(command(self, PS_SNAPSHOT, -1));
        assert_ptr_not_equal(server->stage, stage);
        if (i > 0) assert_ptr_equal(server->stage, last);
        assert_memory_equal(server->stage, parameters, shard_bytes(self));
    }
    assert_memory_equal(stage, before, bytes);
    for (int i = 0; i < TR_ARENAS; i++)
        if (server->staged[i]) must_train(ps_watch_wait(&self->watch, &server->staged[i]));
    scene_loose(self->head.comm);
    tr_free(before);
    tr_free(stage);
}

static void hear_states(struct ps *self, struct scene *scene)
{
    size_t bytes = shard_bytes(self);
    float *values = tr_alloc(bytes, 1);
    assert_non_null(values);
    (void)scene;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < TR_ARENAS; i++) {
            if (!tr_variables_arena(self->head.replicas->variables, (enum tr_arena)i)) continue;
            scene_receive(self, SERVER, PS_TAG_STATE + i, values, bytes);
            if (n > 0 && i == TR_ARENA_PARAMETERS) assert_true(values[0] == (float)n);
        }
    tr_free(values);
}

static void a_stage_that_may_be_read_is_replaced(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene scene = {.strategy = STRATEGY, .set = {i ? adam : sgd}, .size = SIZE, .apart = 1};
        scene.part[SERVER] = serve_states;
        scene.part[ROOT] = hear_states;
        scene_play(&scene);
    }
}

/* ---- the end ---- */

/* Memory that outlives the strategy; its messages end with the communicator. */
struct left {
    int64_t live;
    float *stage, *out, *in;
    struct ps_server *server;
    struct ps_colleague *colleague;
    struct ps_peer *peer;
};

/* Ends with parameters, a gradient and a state under way, and without another snapshot: in use are the
   memories of these. */
static void serve_to_the_end(struct ps *self, struct scene *scene)
{
    struct left *left = scene->user;
    must_train(command(self, PS_SNAPSHOT, -1));
    must_train(command(self, PS_SHOW, LOST));
    must_train(command(self, PS_GIVE, LOST));
    must_train(command(self, PS_EXPECT, LOST));
    left->stage = self->server->stage;
    left->out = self->server->out[0].arena;
    left->in = self->server->in[0].arena;
    scene_stuck(self->head.comm);
}

static void release_what_was_left(tr_comm *comm, struct scene *scene)
{
    struct left *left = scene->user;
    scene_loose(comm);
    left->stage[0] = left->out[0] = left->in[0] = 0; /* it is there */
    tr_free(left->stage);
    tr_free(left->out);
    tr_free(left->in);
}

static void hear_one_state(struct ps *self, struct scene *scene)
{
    size_t bytes = shard_bytes(self);
    float *values = tr_alloc(bytes, 1);
    assert_non_null(values);
    (void)scene;
    scene_receive(self, SERVER, PS_TAG_STATE, values, bytes);
    tr_free(values);
}

static void what_is_under_way_outlives_the_strategy(void **state)
{
    (void)state;
    struct left left = {.live = tr_alloc_live()};
    struct scene scene = {.strategy = STRATEGY, .set = {sgd}, .size = SIZE, .apart = 1, .user = &left};
    scene.part[SERVER] = serve_to_the_end;
    scene.late[SERVER] = release_what_was_left;
    scene.part[ROOT] = hear_one_state;
    scene_play(&scene);
    assert_int_equal(tr_alloc_live(), left.live);
}

/* A coordinator that fails, while it waits for words of workers and of another server. */
static void coordinate_and_fail(struct ps *self, struct scene *scene)
{
    struct left *left = scene->user;
    atomic_int stop = 0;
    scene_expect(ps_server_run(self, &stop, 0), TR_EMISMATCH,
                 "worker 1 sent an unexpected message (kind 2); all ranks must run the same program");
    left->server = self->server;
    left->peer = self->server->peer;
    left->colleague = self->server->coordinator->colleague;
    scene_stuck(self->head.comm);
}

static void release_listeners(tr_comm *comm, struct scene *scene)
{
    struct left *left = scene->user;
    scene_loose(comm);
    memset(left->server, 0, sizeof *left->server); /* they are there */
    memset(left->peer, 0, sizeof *left->peer);
    memset(left->colleague, 0, sizeof *left->colleague);
    tr_free(left->server);
    tr_free(left->peer);
    tr_free(left->colleague);
}

static void offer(struct ps *self, struct scene *scene)
{
    const struct ps_up up = {.kind = PS_OFFER};
    (void)scene;
    scene_send(self, OTHER, PS_TAG_UP, &up, sizeof up);
}

static void what_listens_outlives_the_strategy(void **state)
{
    (void)state;
    struct left left = {.live = tr_alloc_live()};
    struct scene scene = {
        .strategy = "parameter-server,mode=async,servers=2", .size = SIZE, .apart = 1, .user = &left};
    scene.part[OTHER] = coordinate_and_fail;
    scene.late[OTHER] = release_listeners;
    scene.part[LOST] = offer;
    scene_play(&scene);
    assert_int_equal(tr_alloc_live(), left.live);
}

/* A worker whose memory is in use keeps all of it, but reads no further ahead. */
static void end_with_a_message(struct ps *self, struct scene *scene)
{
    tr_strategy *strategy = &self->head;
    struct tr_replica *replica = strategy->replicas;
    tr_gradient *gradient = replica->gradient;
    tr_comm *comm = strategy->comm;
    (void)scene;
    self->found = tr_alloc(8, 1);
    assert_non_null(self->found);
    must_train(tr_comm_receive(comm, OTHER, PS_TAG_FOUND, self->found, 8, "results", &self->finding));
    scene_stuck(comm);
    tr_strategy_destroy(&strategy);
    assert_null(strategy);
    assert_null(replica->gradient);
    assert_non_null(replica->variables);
    assert_non_null(self->worker);
    assert_non_null(self->shard);
    scene_loose(comm);
    replica->gradient = gradient; /* which ends with the trainer */
}

static void a_worker_that_is_read_from_stays(void **state)
{
    (void)state;
    int64_t live = tr_alloc_live();
    struct scene scene = {.strategy = STRATEGY, .size = SIZE, .apart = 1};
    scene.part[LOST] = end_with_a_message;
    scene_play(&scene);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rooms_of_a_lost_worker_are_replaced),
        cmocka_unit_test(a_stage_that_may_be_read_is_replaced),
        cmocka_unit_test(what_is_under_way_outlives_the_strategy),
        cmocka_unit_test(what_listens_outlives_the_strategy),
        cmocka_unit_test(a_worker_that_is_read_from_stays),
    };
    return cmocka_run_group_tests_name("strategy.stuck", tests, family_place_make, family_place_remove);
}
