/* What an asynchronous server takes: its share of parameters, moments and averages, and room for a fixed
 * number of gradients and copies, however many workers there are; as it announces, and as it allocates. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "strategy/parameter_server/server.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MEMBERS 36
/* What makes up the memory of the network below. */
#define LARGE ((size_t)64 << 10)

struct member {
    struct crew *crew;
    tr_comm *comm;
    pthread_t thread;
    tr_status status;
    char message[512];
    /* Of a server: */
    int64_t told, arena, shard; /* bytes */
    size_t taken;               /* by its thread, in large blocks */
    int rooms, kept;
    int64_t outside; /* bytes of an arena of it beyond its share that are in memory, at most */
};

struct crew {
    struct tr_train_settings settings;
    int workers, size;
    struct member member[MEMBERS];
};

static _Thread_local size_t taken;

static int count_large(size_t size, void *user)
{
    (void)user;
    if (size >= LARGE) taken += size;
    return 0;
}

/* Bytes of whole pages of floats [begin, end) that are in memory. */
static int64_t resident(const float *arena, int64_t begin, int64_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)(arena + begin) + page - 1) / page * page,
              to = (uintptr_t)(arena + end) / page * page;
    if (begin >= end || from >= to) return 0;
    unsigned char *there = calloc((to - from) / page, 1);
    assert_non_null(there);
    char *first = (char *)(uintptr_t)(arena + begin) + (from - (uintptr_t)(arena + begin));
    assert_int_equal(mincore(first, to - from, there), 0);
    int64_t bytes = 0;
    for (size_t i = 0; i < (to - from) / page; i++) bytes += there[i] & 1 ? (int64_t)page : 0;
    free(there);
    return bytes;
}

static void look_outside(struct member *member, const struct ps *self, const float *arena)
{
    int64_t floats = self->head.job->model->arena_floats;
    if (!arena) return;
    int64_t bytes = resident(arena, 0, self->server->begin) + resident(arena, self->server->end, floats);
    if (bytes > member->outside) member->outside = bytes;
}

/* After the run. */
static void look(struct member *member, const tr_trainer *trainer)
{
    const struct ps *self = ps_of(trainer_strategy(trainer));
    const struct ps_server *server = self->server;
    member->told = (int64_t)tr_strategy_memory(trainer_strategy(trainer));
    member->arena = self->head.job->model->arena_floats * (int64_t)sizeof(float);
    member->shard = (server->end - server->begin) * (int64_t)sizeof(float);
    member->taken = taken;
    member->rooms = server->rooms;
    for (int i = 0; i < server->rooms; i++) {
        member->kept += server->in[i].worker >= 0;
        look_outside(member, self, server->in[i].arena);
        look_outside(member, self, server->out[i].arena);
    }
    for (int i = 0; i < TR_ARENAS; i++)
        look_outside(member, self, tr_variables_arena(trainer_variables(trainer), (enum tr_arena)i));
}

static void *run_member(void *user)
{
    struct member *member = user;
    tr_trainer *trainer = NULL;
    int rank = tr_comm_rank(member->comm);
    taken = 0;
    member->status = trainer_create(&member->crew->settings, member->comm, &trainer);
    if (member->status == TR_OK) member->status = tr_trainer_run(trainer, NULL, NULL);
    snprintf(member->message, sizeof member->message, "%s", tr_error_message());
    if (member->status != TR_OK) tr_comm_abort(member->comm, member->message);
    if (member->status == TR_OK && rank >= member->crew->workers) look(member, trainer);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&member->comm);
    return NULL;
}

/* A run in which every rank is on a host of its own; the servers' figures are in the last members. */
static void run_crew(struct crew *crew, int workers, int servers, const char *units, const char *strategy)
{
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    struct job job;
    tr_comm *comms[MEMBERS];
    int hosts[MEMBERS];
    char layers[160];
    memset(crew, 0, sizeof *crew);
    family_job(&job, &families[0], family_place);
    snprintf(layers, sizeof layers,
             "layers=[{flatten: null}, {dense: {units: %s, activation: relu}}, {dense: 10}]", units);
    job_set(&job, layers);
    job_set(&job, "optimizer={rule: adam, rate: 1e-3, ema: 0.9}");
    job_set(&job, "train.batch=4");
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.evaluate_every=0");
    job.settings.set = job.set;
    job.settings.steps = 2 * workers + 6;
    job.settings.strategy = strategy;
    crew->settings = job.settings;
    crew->workers = workers;
    crew->size = workers + servers;
    for (int r = 0; r < crew->size; r++) hosts[r] = r;
    must_train(tr_comm_thread_create(crew->size, hosts, &patience, comms));
    for (int r = 0; r < crew->size; r++) {
        crew->member[r] = (struct member){.crew = crew, .comm = comms[r]};
        assert_int_equal(pthread_create(&crew->member[r].thread, NULL, run_member, &crew->member[r]), 0);
    }
    for (int r = 0; r < crew->size; r++) pthread_join(crew->member[r].thread, NULL);
    for (int r = 0; r < crew->size; r++)
        if (crew->member[r].status != TR_OK)
            fail_msg("%s, %d workers, rank %d: %s", strategy, workers, r, crew->member[r].message);
}

/* Parameters, two moments and averages, their copies on the way to the root, and two copies for each gradient
   that there is room for. */
static int64_t expected(int64_t shard, int rooms)
{
    return shard * (4 + 4 + 2 * rooms);
}

static void memory_does_not_grow_with_workers(void **state)
{
    (void)state;
    static const int workers[] = {2, 8, 32};
    static struct crew crew;
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        tr_alloc_set_hook(count_large, NULL);
        run_crew(&crew, workers[i], 1, "60", "parameter-server,mode=async,buffers=3");
        tr_alloc_set_hook(NULL, NULL);
        const struct member *server = &crew.member[workers[i]];
        int rooms = workers[i] < 3 ? workers[i] : 3;
        assert_int_equal(server->rooms, rooms);
        assert_int_equal(server->kept, 0);
        assert_int_equal(server->shard, server->arena);
        double told = (double)server->told / (double)expected(server->shard, rooms),
               kept = (double)server->taken / (double)server->told;
        if (told < 0.98 || told > 1.02 || kept < 0.98 || kept > 1.02)
            fail_msg("%d workers: a server announces %lld bytes and takes %zu, where %lld were expected",
                     workers[i], (long long)server->told, server->taken,
                     (long long)expected(server->shard, rooms));
    }
}

/* Large pages and neighbours on a page blur the bounds. */
#define BLUR ((int64_t)5 << 20)

static void a_server_touches_its_share_alone(void **state)
{
    (void)state;
    static struct crew crew;
    run_crew(&crew, 3, 4, "5400", "parameter-server,mode=async,servers=4,buffers=1");
    for (int s = 0; s < 4; s++) {
        const struct member *server = &crew.member[3 + s];
        assert_int_equal(server->rooms, 1);
        assert_true(4 * server->shard < server->arena + 1024);
        double told = (double)server->told / (double)expected(server->shard, 1);
        if (told < 0.98 || told > 1.02)
            fail_msg("server %d announces %lld bytes", s, (long long)server->told);
        if (server->outside > BLUR)
            fail_msg("server %d: %lld bytes beyond its share are in memory", s, (long long)server->outside);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow_with_workers),
        cmocka_unit_test(a_server_touches_its_share_alone),
    };
    return cmocka_run_group_tests_name("strategy.server_memory", tests, family_place_make,
                                       family_place_remove);
}
