/* The checks of the conformance suite with faults: memory that is refused, and ranks that die. */
#include "strategy/conformance/conformance.h"

#include "base/alloc.h"
#include "train/setup/rank_info.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* A run with a fault, in memory that its ranks share. They wait for each other where it begins and ends. */
struct fault {
    pthread_barrier_t begin, end;
    tr_alloc_hook hook; /* while they run, or NULL; its user is the fault */
    int victim;         /* that dies, or -1 */
    atomic_llong left;  /* allocations that are still allowed */
    atomic_llong taken; /* bytes of large allocations */
    tr_status status[RANKS];
    char message[RANKS][1024], hash[RANKS][65];
    int64_t memory;         /* announced by all ranks */
    int64_t step;           /* of rank 0 in the end */
    atomic_llong forgotten; /* blocks that ranks did not release */
};

/* A rank's part, and what its observer has seen. */
struct part {
    struct fault *fault;
    tr_comm *comm;
    int layers;
};

static struct fault *fault_create(tr_alloc_hook hook, int victim)
{
    struct fault *fault = ranks_shared(sizeof *fault);
    fault->hook = hook;
    fault->victim = victim;
    return fault;
}

static void fault_destroy(struct fault *fault)
{
    ranks_unshare(fault, sizeof *fault);
}

static tr_status die(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    struct part *part = user;
    (void)layer, (void)output, (void)count;
    if (++part->layers == 3) ranks_die(part->comm);
    return TR_OK;
}

static void work(struct rank *rank, struct part *part, tr_trainer **trainer)
{
    struct fault *fault = part->fault;
    int number = tr_comm_rank(rank->comm);
    fault->status[number] = trainer_create(rank->settings, rank->comm, trainer);
    if (fault->status[number] != TR_OK) {
        snprintf(fault->message[number], sizeof fault->message[number], "%s", tr_error_message());
        tr_comm_abort(rank->comm, fault->message[number]);
        return;
    }
    if (number == fault->victim)
        tr_strategy_observe(trainer_strategy(*trainer), TR_OBSERVER_PROBE,
                            (struct tr_strategy_observer){.layer = die, .user = part});
    fault->status[number] = tr_trainer_run(*trainer, NULL, NULL);
    if (fault->status[number] == TR_OK)
        fault->status[number] = tr_trainer_hash(*trainer, fault->hash[number]);
    snprintf(fault->message[number], sizeof fault->message[number], "%s", tr_error_message());
}

/* The hook is there from when all have come until all are done; threads have one in common. */
static void begin_together(struct fault *fault, bool root)
{
    pthread_barrier_wait(&fault->begin);
    if (root || ranks_are_processes()) tr_alloc_set_hook(fault->hook, fault);
    pthread_barrier_wait(&fault->begin);
}

static void end_together(struct fault *fault, bool root)
{
    /* Nobody waits for a process that dies, and one that is to die may come to its end before. */
    if (fault->victim >= 0 && ranks_are_processes()) return;
    pthread_barrier_wait(&fault->end);
    if (root || ranks_are_processes()) tr_alloc_set_hook(NULL, NULL);
    pthread_barrier_wait(&fault->end);
}

static void *run_part(void *user)
{
    struct rank *rank = user;
    struct part part = {.fault = rank->user, .comm = rank->comm};
    tr_trainer *trainer = NULL;
    bool root = tr_comm_rank(rank->comm) == 0;
    int64_t live = tr_alloc_live();
    begin_together(part.fault, root);
    work(rank, &part, &trainer);
    if (root && trainer) part.fault->step = trainer_steps_done(trainer);
    tr_trainer_destroy(&trainer);
    end_together(part.fault, root);
    tr_comm_destroy(&rank->comm);
    if (ranks_are_processes() && tr_alloc_live() > live)
        atomic_fetch_add(&part.fault->forgotten, tr_alloc_live() - live);
    return NULL;
}

static void run_faulty(void *(*run)(void *), const struct order *order, struct fault *fault)
{
    struct rank rank[RANKS];
    struct job job;
    pthread_barrierattr_t shared;
    order_job(order, &job);
    assert_int_equal(pthread_barrierattr_init(&shared), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_barrier_init(&fault->begin, &shared, (unsigned)order->ranks), 0);
    assert_int_equal(pthread_barrier_init(&fault->end, &shared, (unsigned)order->ranks), 0);
    for (int r = 0; r < order->ranks; r++) rank[r].user = fault;
    run_ranks_by(run, &job.settings, order->ranks, order->apart, rank);
    pthread_barrier_destroy(&fault->begin);
    pthread_barrier_destroy(&fault->end);
    pthread_barrierattr_destroy(&shared);
}

static int fewest_ranks(const struct candidate *candidate)
{
    int ranks = 2;
    while (ranks < CONFORMANCE_RANKS && !candidate->legal[ranks]) ranks++;
    return ranks;
}

/* ---- refused memory ---- */

static int refuse_one(size_t size, void *user)
{
    struct fault *fault = user;
    (void)size;
    return atomic_fetch_sub(&fault->left, 1) == 0;
}

/* What the library can do without, such as memory that ranks share, may be missing: then all goes well, to
   the same end. */
static bool goes_on_without(const struct candidate *candidate, const struct fault *fault,
                            const struct fault *undisturbed, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        bool same = candidate->asynchronous || strcmp(fault->hash[r], undisturbed->hash[r]) == 0;
        if (fault->status[r] != TR_OK || !same) return false;
    }
    return true;
}

/* A rank without memory says so, and ends the others, who say why, unless they were done before. */
static bool expect_refusal(struct candidate *candidate, const struct fault *fault,
                           const struct fault *undisturbed, int ranks, long long at)
{
    bool told = false;
    if (goes_on_without(candidate, fault, undisturbed, ranks)) return true;
    for (int r = 0; r < ranks; r++) {
        bool own = fault->status[r] == TR_ENOMEM;
        told |= own;
        if (!own && fault->status[r] != TR_EPEER && fault->status[r] != TR_OK)
            return complain(candidate, "allocation %lld refused, rank %d of %d: %s (%s)", at, r, ranks,
                            tr_status_name(fault->status[r]), fault->message[r]);
    }
    return told || complain(candidate, "allocation %lld refused: no rank says so, but %s (%s) and %s (%s)",
                            at, tr_status_name(fault->status[0]), fault->message[0],
                            tr_status_name(fault->status[1]), fault->message[1]);
}

/* Refuses one allocation; *refused: whether there were so many. */
static bool refuse_at(struct candidate *candidate, struct order *order, const struct fault *undisturbed,
                      long long at, bool *refused)
{
    struct fault *fault = fault_create(refuse_one, -1);
    int64_t live = tr_alloc_live();
    bool well = true;
    atomic_store(&fault->left, at);
    run_faulty(run_part, order, fault);
    *refused = atomic_load(&fault->left) < 0;
    if (*refused)
        well = expect_refusal(candidate, fault, undisturbed, order->ranks, at);
    else if (fault->status[0] != TR_OK)
        well = complain(candidate, "with memory enough: %s", fault->message[0]);
    long long forgotten = tr_alloc_live() - live + atomic_load(&fault->forgotten);
    if (well && forgotten != 0)
        well = complain(candidate, "allocation %lld refused: leaves %lld blocks behind", at, forgotten);
    fault_destroy(fault);
    return well;
}

/* Refuses allocation `first`, and every `stride`th behind it, until none is left to refuse. */
static bool refuse_in_turn(struct candidate *candidate, long long first, long long stride)
{
    struct order order = {
        .strategy = candidate->strategy, .ranks = fewest_ranks(candidate), .steps = 2, .stopper = -1};
    struct fault *undisturbed = fault_create(NULL, -1);
    bool refused = true, well = true;
    run_faulty(run_part, &order, undisturbed);
    for (long long at = first; refused && well; at += stride) {
        order.apart = at / stride % 2;
        well = refuse_at(candidate, &order, undisturbed, at, &refused);
    }
    fault_destroy(undisturbed);
    return well;
}

/* The others look a moment for what a rank that gave up may have sent before, so every run takes that long,
   asleep: many processes share them. */
#define CHILDREN 96

bool survives_failing_allocations(struct candidate *candidate)
{
    int ends[CHILDREN], children = conformance.children;
    pid_t child[CHILDREN];
    bool well = true;
    assert_in_range(children, 1, CHILDREN);
    for (int i = 0; i < children; i++) {
        int pipe_ends[2];
        assert_int_equal(pipe(pipe_ends), 0);
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is ended leaves nobody behind */
            bool right = refuse_in_turn(candidate, (long long)i * conformance.every,
                                        (long long)children * conformance.every);
            ssize_t told = right ? 0 : write(pipe_ends[1], candidate->complaint, sizeof candidate->complaint);
            _exit(right || told < 0 ? !right : 1);
        }
        close(pipe_ends[1]);
        ends[i] = pipe_ends[0];
    }
    for (int i = 0; i < children; i++) {
        char complaint[sizeof candidate->complaint] = "a process that refuses memory died";
        int status;
        ssize_t got = read(ends[i], complaint, sizeof complaint);
        close(ends[i]);
        while (waitpid(child[i], &status, 0) < 0) continue;
        if (got <= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        well = false;
        memcpy(candidate->complaint, complaint, sizeof complaint);
    }
    return well;
}

/* ---- memory as announced ---- */

#define LARGE ((size_t)100 << 10) /* what makes up the memory of the network below */

static int count_large(size_t size, void *user)
{
    struct fault *fault = user;
    if (size >= LARGE) atomic_fetch_add(&fault->taken, (long long)size);
    return 0;
}

static struct fault *counting; /* whose ranks' memory is counted, or NULL */

void conformance_took(size_t bytes)
{
    if (counting) count_large(bytes, counting);
}

static void *step_and_tell(void *user)
{
    struct rank *rank = user;
    struct fault *fault = rank->user;
    tr_trainer *trainer;
    bool root = tr_comm_rank(rank->comm) == 0;
    begin_together(fault, root);
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    end_together(fault, root);
    for (int r = 0; root && r < tr_comm_size(rank->comm); r++) {
        struct tr_train_placement placement = TR_TRAIN_PLACEMENT_INIT;
        must_train(tr_trainer_placement(trainer, r, &placement));
        fault->memory += placement.memory;
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* What all ranks announce is what they take, up to small things; where ranks keep parts of arenas that have
   addresses only for the rest, test_pipeline_memory.c and test_server_memory.c look. */
bool announces_memory(struct candidate *candidate)
{
    struct order order = {.strategy = candidate->strategy,
                          .ranks = fewest_ranks(candidate),
                          .apart = true,
                          .set = {"layers[0].units=9000", "optimizer.ema=0.5"},
                          .stopper = -1};
    static const char *const norms[] = {NULL, "optimizer.clip_norm=1"};
    for (int i = 0; i < 2 && !tr_strategy_class_spreads(candidate->class) && !candidate->asynchronous; i++) {
        struct fault *fault = fault_create(conformance.device ? NULL : count_large, -1);
        order.set[2] = norms[i];
        counting = fault;
        run_faulty(step_and_tell, &order, fault);
        counting = NULL;
        long long announced = fault->memory, taken = atomic_load(&fault->taken);
        fault_destroy(fault);
        double part = (double)taken / (double)announced;
        /* Of what is on a device, and beside it on the host, the device tells its part. */
        if (part < (conformance.device ? 0.5 : 0.93) || part > 1.07)
            return complain(candidate, "%d ranks announce %lld bytes%s and take %lld", order.ranks, announced,
                            norms[i] ? " with a norm" : "", taken);
    }
    return true;
}

/* ---- a dead rank ---- */

static bool expect_named(struct candidate *candidate, const struct order *order, const struct fault *fault)
{
    char name[24];
    snprintf(name, sizeof name, "rank %d", fault->victim);
    /* Who does not wait for it goes on without; not so the root. */
    bool goes_on = candidate->asynchronous && fault->victim > 0;
    for (int r = 0; r < order->ranks; r++) {
        if (r == fault->victim) continue;
        bool right = goes_on ? fault->status[r] == TR_OK
                             : fault->status[r] == TR_EPEER && strstr(fault->message[r], name);
        if (!right)
            return complain(candidate, "%s of %d died%s; rank %d: %s (%s)", name, order->ranks,
                            order->apart ? ", apart" : "", r, tr_status_name(fault->status[r]),
                            fault->message[r]);
    }
    return !goes_on || fault->step == CONFORMANCE_STEPS ||
           complain(candidate, "%s of %d died; the others end after step %lld", name, order->ranks,
                    (long long)fault->step);
}

bool names_a_dead_rank(struct candidate *candidate)
{
    for (int ranks = 2; ranks <= CONFORMANCE_RANKS; ranks++) {
        struct order order = {
            .strategy = candidate->strategy, .ranks = ranks, .apart = ranks % 2, .stopper = -1};
        if (!candidate->legal[ranks]) continue;
        struct fault *fault = fault_create(NULL, ranks - candidate->servers - 1);
        run_faulty(run_part, &order, fault);
        bool well = expect_named(candidate, &order, fault);
        fault_destroy(fault);
        if (!well) return false;
    }
    return true;
}
