/* Commands of the coordinator: what refers to workers that do not exist, to gradients that
 * are not there or to no room is refused by name, and what is carried out is what was said. */
#include "strategy/parameter_server/coordinator.h"
#include "strategy/parameter_server/scene.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tr_status command(struct ps *self, struct ps_command what, struct ps_report *report)
{
    *report = (struct ps_report){.kind = -1};
    return ps_server_execute(self, &what, report);
}

/* Of a command about a worker, which gives parameters to another. */
static void refuse(struct ps *self, int kind, int worker, int give, const char *message)
{
    struct ps_report report;
    scene_expect(command(self, (struct ps_command){.kind = kind, .worker = worker, .give = give}, &report),
                 TR_EMISMATCH, message);
    assert_int_equal(report.kind, -1);
}

static void accept(struct ps *self, int kind, int worker)
{
    struct ps_report report;
    must_train(command(self, (struct ps_command){.kind = kind, .worker = worker, .give = -1}, &report));
}

/* ---- what makes no sense ---- */

/* Two workers, far from their server, which has room for one. */
static void serve_nonsense(struct ps *self, struct scene *scene)
{
    static const int workers_only[] = {PS_GIVE, PS_EXPECT, PS_RELEASE, PS_ADD, PS_SHOW, PS_DROP};
    char message[96];
    (void)scene;
    for (int kind = PS_GIVE; kind <= PS_FINISH; kind++) {
        snprintf(message, sizeof message, "a command of kind %d about worker 2 of 2", kind);
        refuse(self, kind, 2, -1, message);
        snprintf(message, sizeof message, "a command of kind %d about worker 0 of 2", kind);
        refuse(self, kind, 0, 2, message);
    }
    for (size_t i = 0; i < sizeof workers_only / sizeof workers_only[0]; i++) {
        snprintf(message, sizeof message, "a command of kind %d about worker -1 of 2", workers_only[i]);
        refuse(self, workers_only[i], -1, -1, message);
    }
    /* Gradients that are not here. */
    refuse(self, PS_MEASURE, 1, -1, "a command of kind 4 about worker 1 of 2");
    refuse(self, PS_UPDATE, 1, -1, "a command of kind 5 about worker 1 of 2");
    /* Each worker's gradient is a whole one, so there is no sum. */
    refuse(self, PS_MEASURE, -1, -1, "a command of kind 4 about worker -1 of 2");
    refuse(self, PS_UPDATE, -1, -1, "a command of kind 5 about worker -1 of 2");
    accept(self, PS_RELEASE, 1); /* of nothing */
    accept(self, PS_EXPECT, 1);
    refuse(self, PS_ADD, 1, -1, "a command of kind 3 about worker 1 of 2");
    refuse(self, PS_EXPECT, 1, -1,
           "no room for the gradient of worker 1; all ranks must run the same program");
    refuse(self, PS_EXPECT, 0, -1,
           "no room for the gradient of worker 0; all ranks must run the same program");
    accept(self, PS_RELEASE, 1);
    accept(self, PS_EXPECT, 0);
    accept(self, PS_DROP, 0);
    assert_true(self->server->peer[0].gone);
    assert_false(self->server->peer[1].gone);
    accept(self, PS_EXPECT, 1);
    refuse(self, PS_FINISH + 1, 0, -1, "a command of unknown kind 10");
    refuse(self, -1, 0, -1, "a command of unknown kind -1");
    assert_false(self->server->finished);
    struct ps_report report;
    must_train(
        command(self, (struct ps_command){.kind = PS_FINISH, .worker = -1, .give = -1, .lost = 3}, &report));
    assert_true(self->server->finished);
    assert_int_equal(self->server->lost, 3);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct scene scene = {.strategy = "parameter-server,mode=async,buffers=1", .size = 3, .apart = 1};
    scene.part[2] = serve_nonsense;
    scene_play(&scene);
}

/* ---- what is carried out ---- */

static void fill(float *values, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++) values[i] = value;
}

/* The numbers that are learned; gaps stay 0. */
static double learned(const struct ps *self)
{
    const struct tr_model *model = self->head.job->model;
    double count = 0;
    for (int i = 0; i < model->parameter_count; i++) count += (double)model->parameters[i].count;
    return count;
}

/* Two workers on the server's host, whose gradients are added to an update; this rank writes them, too. */
static void serve_sums(struct ps *self, struct scene *scene)
{
    const struct ps_peer *peer = self->server->peer;
    int64_t floats = self->head.job->model->arena_floats, bytes = floats * (int64_t)sizeof(float);
    const float *parameters = tr_variables_arena(self->head.replicas->variables, TR_ARENA_PARAMETERS);
    float before = parameters[0];
    struct ps_report report;
    (void)scene;
    fill(peer[0].gradient, floats, 1);
    fill(peer[1].gradient, floats, 2);
    must_train(command(self,
                       (struct ps_command){.kind = PS_ADD, .worker = 0, .give = -1, .first = 1, .factor = 3},
                       &report));
    must_train(
        command(self, (struct ps_command){.kind = PS_ADD, .worker = 1, .give = -1, .factor = 5}, &report));
    assert_int_equal(report.kind, -1);
    assert_int_equal(self->shared, 2 * bytes);
    must_train(command(
        self, (struct ps_command){.kind = PS_MEASURE, .worker = -1, .give = -1, .factor = 0.5F}, &report));
    assert_int_equal(report.kind, PS_MEASURED);
    assert_true(report.squares == learned(self) * 6.5 * 6.5);
    assert_int_equal(self->shared, 2 * bytes);
    fill(peer[0].parameters, floats, 99);
    fill(peer[1].parameters, floats, 99);
    must_train(command(self,
                       (struct ps_command){
                           .kind = PS_UPDATE, .worker = -1, .give = 1, .chosen = 1, .clip = 0.5F, .count = 6},
                       &report));
    assert_int_equal(report.kind, -1);
    assert_int_equal(self->count, 7);
    assert_int_equal(self->shared, 3 * bytes);
    assert_true(parameters[0] == before - 0.5F * 3.25F);
    assert_memory_equal(peer[1].parameters, parameters, (size_t)bytes);
    assert_true(peer[0].parameters[0] == 99);

    /* A worker's gradient, measured and then not; nobody gets the parameters. */
    before = parameters[0];
    fill(peer[0].gradient, floats, 1);
    fill(peer[1].gradient, floats, 2);
    must_train(command(self, (struct ps_command){.kind = PS_MEASURE, .worker = 1, .give = -1}, &report));
    assert_true(report.squares == learned(self) * 4);
    fill(peer[1].parameters, floats, 99);
    must_train(
        command(self, (struct ps_command){.kind = PS_UPDATE, .worker = 0, .give = -1, .clip = 1}, &report));
    assert_int_equal(self->count, 1);
    assert_int_equal(self->shared, 4 * bytes);
    assert_true(parameters[0] == before - 0.5F);
    assert_true(peer[1].parameters[0] == 99);
    must_train(command(self, (struct ps_command){.kind = PS_GIVE, .worker = 0, .give = -1}, &report));
    assert_memory_equal(peer[0].parameters, parameters, (size_t)bytes);
    assert_true(peer[1].parameters[0] == 99);
    assert_int_equal(self->shared, 5 * bytes);

    fill(peer[0].gradient, floats, INFINITY);
    must_train(
        command(self, (struct ps_command){.kind = PS_UPDATE, .worker = 0, .give = 1, .clip = 1}, &report));
    assert_int_equal(report.kind, PS_POISONED);
    assert_int_equal(self->shared, 7 * bytes);
    assert_true(isinf(peer[1].parameters[0]));
}

static void commands_are_carried_out(void **state)
{
    (void)state;
    struct scene scene = {
        .strategy = "parameter-server,mode=backup,backup=0",
        .set = {"optimizer={rule: sgd, rate: 0.5, clip_norm: 1000}"},
        .size = 3,
    };
    scene.part[2] = serve_sums;
    scene_play(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(commands_are_carried_out),
    };
    return cmocka_run_group_tests_name("strategy.commands", tests, family_place_make, family_place_remove);
}
