/* A coordinator, whose root and worker the test plays: what it answers to each word, what it notes of
 * updates, and how it hands out an evaluation. */
#include "strategy/parameter_server/scene.h"

#include "base/alloc.h"
#include "comm/class.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ROOT, WORKER, SERVER, SIZE };

static void serve(struct ps *self, struct scene *scene)
{
    atomic_int stop = 0;
    (void)scene;
    must_train(ps_server_run(self, &stop, 0));
    assert_false(self->head.comm->dissolved); /* nobody was lost */
}

static void say(struct ps *self, enum ps_up_kind kind)
{
    const struct ps_up up = {.kind = (int32_t)kind, .done = {.compute_seconds = 1.5}};
    scene_send(self, SERVER, PS_TAG_UP, &up, sizeof up);
}

static struct ps_down hear(struct ps *self, enum ps_down_kind kind)
{
    struct ps_down down;
    scene_receive(self, SERVER, PS_TAG_DOWN, &down, sizeof down);
    assert_int_equal(down.kind, kind);
    return down;
}

/* The records that come with a word to the root. */
static void expect_records(struct ps *self, const struct ps_down *down, const struct tr_update *expected,
                           int count)
{
    struct tr_update records[4] = {{0}};
    assert_int_equal(down->updates, count);
    scene_receive(self, SERVER, PS_TAG_UPDATES, records, (size_t)count * sizeof *records);
    for (int i = 0; i < count; i++) assert_memory_equal(&records[i], &expected[i], sizeof records[i]);
}

/* The root and its worker go one after the other: each waits for the other's sign. */
static void give_sign(struct ps *self, int to)
{
    char sign = 1;
    scene_send(self, to, PS_TAG_FOUND, &sign, sizeof sign);
}

static void wait_for_sign(struct ps *self, int from)
{
    char sign = 0;
    scene_receive(self, from, PS_TAG_FOUND, &sign, sizeof sign);
}

/* ---- steps ---- */

/* A gradient of the root, one of a worker that misses it, and the words in between. */
static void lead(struct ps *self, struct scene *scene)
{
    static const struct tr_update first[] = {{0, 0, 0, TR_UPDATE_APPLIED, 0}, {1, 0, 0, TR_UPDATE_TOLD, 0}},
                                  second[] = {{1, 1, 1, TR_UPDATE_APPLIED, 0},
                                              {2, 0, 0, TR_UPDATE_DRAINED, 0}},
                                  third[] = {{2, 0, 0, TR_UPDATE_GATHERED, 0}};
    const struct ps_up push = {.kind = PS_PUSH, .examples = 20, .loss = 2.5F, .correct = 7, .request = 4};
    struct ps_down down;
    (void)scene;
    memset(ps_gradient_of(self, ROOT), 0, self->slot_bytes);
    say(self, PS_ASK);
    down = hear(self, PS_WORK);
    assert_int_equal(down.number, 0);
    assert_int_equal(down.version, 0);
    assert_int_equal(down.updates, 0);
    assert_false(down.granted);
    give_sign(self, WORKER); /* which now asks */
    wait_for_sign(self, WORKER);
    scene_send(self, SERVER, PS_TAG_UP, &push, sizeof push);
    down = hear(self, PS_NEWS);
    assert_int_equal(down.version, 1);
    assert_int_equal(down.news.steps, 1);
    assert_int_equal(down.news.examples, 20);
    assert_true(down.news.loss == 2.5 && down.news.correct == 7);
    assert_int_equal(down.news.request, 4);
    assert_int_equal(down.news.measured + down.news.skipped + down.news.bad_loss + down.news.poisoned, 0);
    expect_records(self, &down, first, 2);
    say(self, PS_DRAIN); /* ends when the worker has pushed */
    struct ps_table table;
    struct tr_rank_statistics rank[SIZE];
    say(self, PS_STATISTICS); /* whose answer shows that the word before was heard */
    scene_receive(self, SERVER, PS_TAG_TABLE, &table, sizeof table);
    scene_receive(self, SERVER, PS_TAG_TABLE, rank, sizeof rank);
    assert_int_equal(table.staleness[0], 1);
    assert_int_equal(table.staleness[1], 0);
    assert_int_equal(rank[WORKER].contributions, 0);
    give_sign(self, WORKER);
    down = hear(self, PS_DRAINED);
    assert_int_equal(down.version, 2);
    assert_int_equal(down.news.steps, 1);
    expect_records(self, &down, second, 2);

    size_t bytes = (size_t)self->shard[1] * sizeof(float);
    float *state = tr_alloc(bytes, 1);
    assert_non_null(state);
    say(self, PS_GATHER);
    down = hear(self, PS_GATHERED);
    assert_int_equal(down.version, 2);
    assert_int_equal(down.news.steps, 0); /* told before */
    expect_records(self, &down, third, 1);
    scene_receive(self, SERVER, PS_TAG_STATE, state, bytes);
    tr_free(state);

    say(self, PS_STATISTICS);
    scene_receive(self, SERVER, PS_TAG_TABLE, &table, sizeof table);
    scene_receive(self, SERVER, PS_TAG_TABLE, rank, sizeof rank);
    assert_int_equal(table.staleness[0], 1);
    assert_int_equal(table.staleness[1], 1);
    assert_int_equal(table.staleness[2], 0);
    assert_int_equal(table.dropped, 0);
    assert_int_equal(rank[ROOT].contributions, 1);
    assert_int_equal(rank[WORKER].contributions, 1);
    assert_int_equal(rank[SERVER].contributions, 0);
    assert_true(rank[ROOT].compute_seconds == 1.5 && rank[WORKER].compute_seconds == 0.25);
    assert_true(rank[SERVER].bytes_sent > 0);
    say(self, PS_END);
    down = hear(self, PS_ENDED);
    assert_int_equal(down.lost, 0);
}

static void follow(struct ps *self, struct scene *scene)
{
    const struct ps_up ask = {.kind = PS_ASK},
                       push = {.kind = PS_PUSH, .examples = 20, .loss = 1, .done = {.compute_seconds = 0.25}};
    (void)scene;
    memset(ps_gradient_of(self, WORKER), 0, self->slot_bytes);
    wait_for_sign(self, ROOT);
    scene_send(self, SERVER, PS_TAG_UP, &ask, sizeof ask);
    struct ps_down down = hear(self, PS_WORK);
    assert_int_equal(down.number, 1);
    assert_int_equal(down.version, 0);
    give_sign(self, ROOT);
    wait_for_sign(self, ROOT);
    scene_send(self, SERVER, PS_TAG_UP, &push, sizeof push);
    hear(self, PS_ENDED); /* while the root drains, and after, there is no work */
}

static void play(void (*root)(struct ps *self, struct scene *scene),
                 void (*worker)(struct ps *self, struct scene *scene))
{
    struct scene scene = {
        .strategy = "parameter-server,mode=async", .set = {"optimizer={rule: sgd, rate: 0.1}"}, .size = SIZE};
    scene.part[ROOT] = root;
    scene.part[WORKER] = worker;
    scene.part[SERVER] = serve;
    scene_play(&scene);
}

static void words_are_answered(void **state)
{
    (void)state;
    play(lead, follow);
}

/* ---- evaluations ---- */

static const struct tr_shared_evaluation five = {.set = 1, .count = 5, .piece = 2, .bytes = 8};

static void expect_piece(const struct ps_down *down, int64_t number, bool fresh)
{
    assert_int_equal(down->number, number);
    assert_int_equal(down->fresh, fresh);
    assert_memory_equal(&down->evaluation, &five, sizeof five);
}

static void lead_evaluation(struct ps *self, struct scene *scene)
{
    struct ps_up up = {.kind = PS_EVALUATE, .evaluation = five};
    struct ps_down down;
    int64_t found = 0;
    (void)scene;
    scene_send(self, SERVER, PS_TAG_UP, &up, sizeof up);
    down = hear(self, PS_PIECE);
    expect_piece(&down, 0, false); /* it has what is evaluated */
    give_sign(self, WORKER);
    wait_for_sign(self, WORKER); /* which has done the rest */
    for (int i = 0; i < 2; i++) {
        say(self, PS_EVALUATED);
        down = hear(self, PS_FOUND);
        assert_int_equal(down.worker, WORKER);
        found += down.number;
    }
    assert_int_equal(found, 1 + 2);
    say(self, PS_EVALUATED);
    hear(self, PS_EVALUATED_ALL);
    give_sign(self, WORKER);
    say(self, PS_END);
    hear(self, PS_ENDED);
}

static void follow_evaluation(struct ps *self, struct scene *scene)
{
    const struct ps_up push = {.kind = PS_PUSH, .examples = 1};
    struct ps_down down;
    (void)scene;
    memset(ps_gradient_of(self, WORKER), 0, self->slot_bytes);
    wait_for_sign(self, ROOT);
    say(self, PS_ASK);
    down = hear(self, PS_PIECE);
    expect_piece(&down, 1, true);
    say(self, PS_EVALUATED);
    down = hear(self, PS_PIECE);
    expect_piece(&down, 2, false); /* it has it by now */
    say(self, PS_EVALUATED);
    down = hear(self, PS_WORK); /* nothing is left to evaluate */
    assert_int_equal(down.number, 0);
    give_sign(self, ROOT);
    wait_for_sign(self, ROOT);
    scene_send(self, SERVER, PS_TAG_UP, &push, sizeof push);
    down.kind = PS_WORK;
    /* More work may come before the root's word that it is over. */
    while (down.kind == PS_WORK) {
        scene_receive(self, SERVER, PS_TAG_DOWN, &down, sizeof down);
        if (down.kind == PS_WORK) scene_send(self, SERVER, PS_TAG_UP, &push, sizeof push);
    }
    assert_int_equal(down.kind, PS_ENDED);
}

static void pieces_are_handed_out(void **state)
{
    (void)state;
    play(lead_evaluation, follow_evaluation);
}

/* Of no examples nobody is asked. */
static void evaluate_nothing(struct ps *self, struct scene *scene)
{
    const struct tr_shared_evaluation none = {.piece = 2, .bytes = 8};
    (void)scene;
    must_train(ps_root_evaluate(self, &none));
    say(self, PS_END);
    hear(self, PS_ENDED);
}

static void wait_for_the_end(struct ps *self, struct scene *scene)
{
    (void)scene;
    hear(self, PS_ENDED);
}

static void nothing_is_evaluated_at_once(void **state)
{
    (void)state;
    play(evaluate_nothing, wait_for_the_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_answered),
        cmocka_unit_test(pieces_are_handed_out),
        cmocka_unit_test(nothing_is_evaluated_at_once),
    };
    return cmocka_run_group_tests_name("strategy.coordinator", tests, family_place_make, family_place_remove);
}
