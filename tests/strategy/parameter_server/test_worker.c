/* A worker and the root, whose server the test plays: what they say and when, and what they make of the
 * answers. */
#include "strategy/parameter_server/scene.h"

#include "base/alloc.h"
#include "comm/class.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ROOT, WORKER, SERVER, SIZE };

static struct ps_up hear(struct ps *self, int from, enum ps_up_kind kind)
{
    struct ps_up up;
    scene_receive(self, from, PS_TAG_UP, &up, sizeof up);
    assert_int_equal(up.kind, kind);
    return up;
}

static void say(struct ps *self, int to, struct ps_down down)
{
    scene_send(self, to, PS_TAG_DOWN, &down, sizeof down);
}

/* ---- a worker far away ---- */

/* It is given work without room for its gradient, and asks for that once it has it. */
static void give_work(struct ps *self, struct scene *scene)
{
    const int64_t floats = self->shard[1];
    const size_t bytes = (size_t)floats * sizeof(float);
    float *parameters = tr_variables_arena(self->head.replicas->variables, TR_ARENA_PARAMETERS);
    float *gradient = tr_alloc_zero((size_t)floats, sizeof *gradient);
    tr_ticket *piece = NULL;
    assert_non_null(gradient);
    assert_int_equal(ps_pieces(self, 0), 1);
    struct ps_up up = hear(self, WORKER, PS_ASK);
    assert_int_equal(up.request, 0);
    must_train(
        tr_comm_receive(self->head.comm, WORKER, PS_TAG_GRADIENT, gradient, bytes, "gradient", &piece));
    say(self, WORKER, (struct ps_down){.kind = PS_WORK, .number = 2, .version = 5});
    scene_send(self, WORKER, PS_TAG_PARAMETERS, parameters, bytes);
    hear(self, WORKER, PS_GOT);
    hear(self, WORKER, PS_OFFER);
    assert_false(tr_comm_is_done(self->head.comm, &piece));
    if (scene->user) {
        say(self, WORKER, (struct ps_down){.kind = PS_NEWS});
        assert_true(tr_comm_cancel(self->head.comm, &piece));
        tr_free(gradient);
        return;
    }
    say(self, WORKER, (struct ps_down){.kind = PS_GRANTED});
    must_train(tr_comm_wait(self->head.comm, &piece));
    up = hear(self, WORKER, PS_PUSH);
    assert_int_equal(up.request, 9); /* it was asked to stop */
    assert_int_equal(up.examples, self->head.job->train.batch);
    assert_true(up.loss > 0 && isfinite(up.loss));
    assert_int_equal(up.done.contributions, 1);
    assert_true(up.done.bytes_sent >= (int64_t)bytes);
    double sum = 0;
    for (int64_t i = 0; i < floats; i++) sum += fabs((double)gradient[i]);
    assert_true(sum > 0 && isfinite(sum));
    say(self, WORKER, (struct ps_down){.kind = PS_ENDED});
    tr_free(gradient);
}

static void work(struct ps *self, struct scene *scene)
{
    atomic_int stop = 1;
    (void)scene;
    must_train(ps_worker_run(self, &stop, 9));
    assert_int_equal(self->count, 5);
    assert_false(self->head.comm->dissolved);
    assert_true(self->watch.waited > 0);
}

static void work_in_vain(struct ps *self, struct scene *scene)
{
    atomic_int stop = 0;
    (void)scene;
    scene_expect(ps_worker_run(self, &stop, 9), TR_EMISMATCH,
                 "a server sent an unexpected message (kind 3); all ranks must run the same program");
}

static void offers_are_answered_by_room(void **state)
{
    (void)state;
    struct scene scene = {.strategy = "parameter-server,mode=async", .size = SIZE, .apart = 1};
    scene.part[WORKER] = work_in_vain;
    scene.part[SERVER] = give_work;
    scene.user = &scene;
    scene_play(&scene);
}

static void workers_offer_what_they_have(void **state)
{
    (void)state;
    struct scene scene = {.strategy = "parameter-server,mode=async", .size = SIZE, .apart = 1};
    scene.part[WORKER] = work;
    scene.part[SERVER] = give_work;
    scene_play(&scene);
}

/* ---- the root ---- */

static const struct tr_update records[] = {{4, 0, 1, TR_UPDATE_APPLIED, 0}, {7, 0, 0, TR_UPDATE_TOLD, 0}};

static void answer(struct ps *self, struct scene *scene)
{
    struct ps_down down = {.kind = PS_NEWS, .version = 7, .updates = 2};
    const int64_t floats = self->shard[1];
    float *values = tr_alloc((size_t)floats, sizeof *values);
    struct ps_table table = {.staleness = {3, 1}, .dropped = 2};
    struct tr_rank_statistics rank[SIZE] = {{.contributions = 4}, {.contributions = 5}, {.bytes_shared = 6}};
    (void)scene;
    assert_non_null(values);
    struct ps_up up = hear(self, ROOT, PS_ASK);
    assert_int_equal(up.request, 3);
    down.news = (struct ps_news){
        .steps = 2, .examples = 40, .loss = 1.5, .correct = 30, .norms = 8, .measured = 2, .request = 4};
    say(self, ROOT, down);
    scene_send(self, ROOT, PS_TAG_UPDATES, records, sizeof records);

    hear(self, ROOT, PS_DRAIN);
    say(self, ROOT, (struct ps_down){.kind = PS_DRAINED, .version = 9, .news = {.steps = 2}});
    hear(self, ROOT, PS_GATHER);
    say(self, ROOT, (struct ps_down){.kind = PS_GATHERED, .version = 10, .news = {.steps = 1}});
    for (int i = 0; i < TR_ARENAS; i++) {
        if (!tr_variables_arena(self->head.replicas->variables, (enum tr_arena)i)) continue;
        for (int64_t k = 0; k < floats; k++) values[k] = (float)(1000 * i + k % 100);
        scene_send(self, ROOT, PS_TAG_STATE + i, values, (size_t)floats * sizeof *values);
    }
    hear(self, ROOT, PS_STATISTICS);
    scene_send(self, ROOT, PS_TAG_TABLE, &table, sizeof table);
    scene_send(self, ROOT, PS_TAG_TABLE, rank, sizeof rank);
    hear(self, ROOT, PS_END);
    say(self, ROOT, (struct ps_down){.kind = PS_ENDED});
    tr_free(values);
}

static void lead(struct ps *self, struct scene *scene)
{
    struct tr_step_figures figures = {.norm = NAN};
    struct tr_rank_statistics rank[SIZE];
    struct tr_strategy_statistics statistics = {.ranks = SIZE, .rank = rank};
    struct tr_update_log *log = tr_strategy_updates(&self->head);
    (void)scene;
    tr_update_log_clear(log);
    must_train(ps_root_step(self, 3, &figures));
    assert_int_equal(self->count, 7);
    assert_int_equal(figures.steps, 2);
    assert_int_equal(figures.examples, 40);
    assert_int_equal(figures.request, 4);
    assert_true(figures.loss == 1.5F && figures.correct == 30 && figures.norm == 4);
    assert_int_equal(log->records, 2);
    assert_memory_equal(log->record, records, sizeof records);
    assert_int_equal(tr_strategy_take_ahead(&self->head), 0);
    must_train(ps_root_drain(self));
    assert_int_equal(self->count, 9);
    assert_int_equal(log->records, 2);
    must_train(ps_root_gather(self));
    assert_int_equal(self->count, 10);
    assert_int_equal(tr_strategy_take_ahead(&self->head), 3);
    for (int i = 0; i < TR_ARENAS; i++) {
        const float *arena = tr_variables_arena(self->head.replicas->variables, (enum tr_arena)i);
        for (int64_t k = 0; arena && k < self->shard[1]; k++)
            assert_true(arena[k] == (float)(1000 * i + k % 100));
    }
    must_train(ps_root_statistics(self, &statistics));
    assert_true(statistics.asynchronous);
    assert_int_equal(statistics.dropped, 2);
    assert_int_equal(statistics.staleness[0], 3);
    assert_int_equal(statistics.staleness[1], 1);
    assert_int_equal(statistics.staleness[2], 0);
    assert_int_equal(rank[ROOT].contributions, 4);
    assert_int_equal(rank[WORKER].contributions, 5);
    assert_int_equal(rank[SERVER].bytes_shared, 6);
    must_train(ps_root_end(self));
    assert_false(self->head.comm->dissolved);
}

static void the_root_takes_what_it_is_told(void **state)
{
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        struct scene scene = {.strategy = "parameter-server,mode=async",
                              .set = {"optimizer={rule: adam, rate: 0.1, ema: 0.5}"},
                              .size = SIZE,
                              .apart = apart};
        scene.part[ROOT] = lead;
        scene.part[SERVER] = answer;
        scene_play(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_offer_what_they_have),
        cmocka_unit_test(offers_are_answered_by_room),
        cmocka_unit_test(the_root_takes_what_it_is_told),
    };
    return cmocka_run_group_tests_name("strategy.worker", tests, family_place_make, family_place_remove);
}
