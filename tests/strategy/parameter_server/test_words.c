/* What servers and workers say to each other: reports, commands and words that make no sense end a server
 * with a message, and a server says what it has. */
#include "strategy/parameter_server/scene.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- between servers ---- */

enum { ROOT, WORKER, COORDINATOR, COLLEAGUE, SIZE };

struct exchange {
    struct ps_command command;
    struct ps_report report;
    struct ps_up up[2]; /* of the worker, the second if it has work */
    bool works, apart;
    const char *message;
    int32_t request;
};

static void serve(struct ps *self, struct scene *scene)
{
    const struct exchange *exchange = scene->user;
    atomic_int stop = exchange->request;
    tr_status status = ps_server_run(self, &stop, exchange->request);
    if (!exchange->message)
        must_train(status);
    else
        scene_expect(status, TR_EMISMATCH, exchange->message);
}

static void send_report(struct ps *self, struct scene *scene)
{
    const struct exchange *exchange = scene->user;
    scene_send(self, COORDINATOR, PS_TAG_REPORT, &exchange->report, sizeof exchange->report);
}

static void reports_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        int kind, worker;
    } reports[] = {{PS_HAVE, -1}, {PS_HAVE, 2}, {PS_REQUEST + 1, 0}, {-1, 1}};
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        char message[96];
        struct exchange exchange = {.report = {.kind = reports[i].kind, .worker = reports[i].worker},
                                    .message = message};
        struct scene scene = {
            .strategy = "parameter-server,mode=async,servers=2", .size = SIZE, .user = &exchange};
        snprintf(message, sizeof message, "a report of unknown kind %d about worker %d", reports[i].kind,
                 reports[i].worker);
        scene.part[COORDINATOR] = serve;
        scene.part[COLLEAGUE] = send_report;
        scene_play(&scene);
    }
}

static void send_command(struct ps *self, struct scene *scene)
{
    const struct exchange *exchange = scene->user;
    scene_send(self, COLLEAGUE, PS_TAG_COMMAND, &exchange->command, sizeof exchange->command);
}

static void commands_of_a_coordinator_are_checked(void **state)
{
    (void)state;
    struct exchange exchange = {.command = {.kind = PS_GIVE, .worker = 2, .give = -1},
                                .message = "a command of kind 0 about worker 2 of 2"};
    struct scene scene = {
        .strategy = "parameter-server,mode=async,servers=2", .size = SIZE, .user = &exchange};
    scene.part[COORDINATOR] = send_command;
    scene.part[COLLEAGUE] = serve;
    scene_play(&scene);
}

/* A server reports the request for an end once, then a worker's gradient, then what it measures of it, and
   goes when it is told to. */
static void command_and_hear(struct ps *self, struct scene *scene)
{
    struct ps_report report;
    struct ps_command order = {.kind = PS_MEASURE, .worker = WORKER, .give = -1};
    (void)scene;
    scene_receive(self, COLLEAGUE, PS_TAG_REPORT, &report, sizeof report);
    assert_int_equal(report.kind, PS_REQUEST);
    assert_int_equal(report.request, 5);
    scene_send(self, WORKER, PS_TAG_DOWN, &report, sizeof report);
    scene_receive(self, COLLEAGUE, PS_TAG_REPORT, &report, sizeof report);
    assert_int_equal(report.kind, PS_HAVE);
    assert_int_equal(report.worker, WORKER);
    scene_send(self, COLLEAGUE, PS_TAG_COMMAND, &order, sizeof order);
    scene_receive(self, COLLEAGUE, PS_TAG_REPORT, &report, sizeof report);
    assert_int_equal(report.kind, PS_MEASURED);
    double expected = 0;
    for (int64_t i = self->shard[1]; i < self->shard[2]; i++) expected += 4;
    assert_true(report.squares > 0 && report.squares <= expected);
    assert_true(report.done.bytes_sent > 0);
    order = (struct ps_command){.kind = PS_FINISH, .worker = -1, .give = -1};
    scene_send(self, COLLEAGUE, PS_TAG_COMMAND, &order, sizeof order);
}

static void push(struct ps *self, struct scene *scene)
{
    struct ps_up up = {.kind = PS_PUSH};
    struct ps_report requested;
    float *gradient = ps_gradient_of(self, WORKER);
    (void)scene;
    scene_receive(self, COORDINATOR, PS_TAG_DOWN, &requested, sizeof requested);
    for (int64_t i = 0; i < self->head.job->model->arena_floats; i++) gradient[i] = 2;
    scene_send(self, COLLEAGUE, PS_TAG_UP, &up, sizeof up);
}

static void servers_report_what_they_have(void **state)
{
    (void)state;
    struct exchange exchange = {.request = 5};
    struct scene scene = {
        .strategy = "parameter-server,mode=async,servers=2", .size = SIZE, .user = &exchange};
    scene.part[COORDINATOR] = command_and_hear;
    scene.part[COLLEAGUE] = serve;
    scene.part[WORKER] = push;
    scene_play(&scene);
}

/* ---- words of workers ---- */

static void speak(struct ps *self, struct scene *scene)
{
    const struct exchange *exchange = scene->user;
    int me = self->head.rank, server = self->head.size - 1;
    if (me == ROOT) {
        scene_send(self, server, PS_TAG_UP, &exchange->up[0], sizeof exchange->up[0]);
        return;
    }
    struct ps_up ask = {.kind = PS_ASK};
    struct ps_down work;
    float *parameters = tr_alloc((size_t)self->shard[1], sizeof *parameters);
    assert_non_null(parameters);
    scene_send(self, server, PS_TAG_UP, &ask, sizeof ask);
    if (exchange->apart)
        scene_receive(self, server, PS_TAG_PARAMETERS, parameters,
                      (size_t)self->shard[1] * sizeof *parameters);
    scene_receive(self, server, PS_TAG_DOWN, &work, sizeof work);
    assert_int_equal(work.kind, PS_WORK);
    assert_int_equal(work.granted, exchange->apart);
    assert_int_equal(work.number, 0);
    assert_int_equal(work.version, 0);
    scene_send(self, server, PS_TAG_UP, &exchange->up[1], sizeof exchange->up[1]);
    tr_free(parameters);
}

static void refuse_words(int speaker, bool apart, struct ps_up up, const char *message)
{
    struct exchange exchange = {.up = {up, up}, .apart = apart, .message = message};
    struct scene scene = {
        .strategy = "parameter-server,mode=async", .size = 3, .apart = apart, .user = &exchange};
    scene.part[2] = serve;
    scene.part[speaker] = speak;
    scene_play(&scene);
}

static void words_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char offers[] =
        "worker 1 sent an unexpected message (kind 2); all ranks must run the same program";
    /* Requests of room by a worker that needs none, or has it. */
    refuse_words(WORKER, false, (struct ps_up){.kind = PS_OFFER}, offers);
    refuse_words(WORKER, true, (struct ps_up){.kind = PS_OFFER}, offers);
    /* Evaluations of nothing, in pieces of nothing. */
    refuse_words(ROOT, false, (struct ps_up){.kind = PS_EVALUATE, .evaluation = {.count = 0, .piece = 3}},
                 "an evaluation of 0 examples, 3 at a time");
    refuse_words(ROOT, false, (struct ps_up){.kind = PS_EVALUATE, .evaluation = {.count = 7, .piece = 0}},
                 "an evaluation of 7 examples, 0 at a time");
    refuse_words(ROOT, false, (struct ps_up){.kind = PS_EVALUATE, .evaluation = {.count = -1, .piece = -1}},
                 "an evaluation of -1 examples, -1 at a time");
    /* Results of what nobody evaluates. */
    refuse_words(ROOT, false, (struct ps_up){.kind = PS_EVALUATED},
                 "worker 0 has evaluated what it was not given");
    refuse_words(WORKER, false, (struct ps_up){.kind = PS_EVALUATED},
                 "worker 1 has evaluated what it was not given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_that_make_no_sense_are_refused),
        cmocka_unit_test(commands_of_a_coordinator_are_checked),
        cmocka_unit_test(servers_report_what_they_have),
        cmocka_unit_test(words_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests_name("strategy.words", tests, family_place_make, family_place_remove);
}
