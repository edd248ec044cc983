/* Evaluations of asynchronous runs: all workers take pieces of them, and the figures are those that one
 * process finds with the same weights, to the bit, whoever computed what and whoever is lost meanwhile. */
#include "support/comm_thread/thread.h"
#include "support/ranks.h"
#include "strategy/class.h"
#include "strategy/parameter_server/evaluation/assignment.h"
#include "checkpoint/checkpoint.h"
#include "train/loop/trainer.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

/* ---- runs ---- */

/* Holds an evaluation up, so that rank 1 trains between two pieces of it. */
struct stage {
    atomic_int held;   /* rank 2 has a piece, with which it dies when rank 1 is trained on */
    atomic_int pieces; /* of rank 1 */
    atomic_int lost;
    atomic_int again; /* rank 1 has a piece once more, for which the root waits */
};

/* What a rank saw and did. */
struct part {
    int victim;          /* the rank that dies with a piece of an evaluation, -1: none */
    struct stage *stage; /* NULL: none */
    struct tr_evaluation_hooks hooks;
    tr_comm *comm;
    tr_status status;
    char message[512];
    int64_t pieces;
    /* Of the root: */
    double loss, accuracy; /* of the evaluation of what was saved last */
    double best_loss, best_accuracy;
    double first_loss, first_accuracy;
    int evaluations, bests;
    char saved[SCRATCH_PATH], first_saved[SCRATCH_PATH];
};

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* A minute is enough. */
static void wait_for(const atomic_int *flag)
{
    for (int i = 0; i < 60000 && !*flag; i++) nap();
}

/* The root keeps its first piece, and rank 2 too, until rank 1 has taken all others and has nothing left but
   to train, for a while. Then rank 2 dies, and its piece is for rank 1. */
static void hold_up(struct stage *stage, int rank)
{
    if (rank == 0) {
        wait_for(&stage->again);
    } else if (rank == 1) {
        stage->pieces++;
        if (stage->lost) stage->again = 1;
        wait_for(&stage->held);
    } else {
        stage->held = 1;
        wait_for(&stage->pieces);
        for (int quiet = 0, seen = 0; quiet < 300; quiet++) {
            if (seen != stage->pieces) quiet = 0;
            seen = stage->pieces;
            nap();
        }
        stage->lost = 1;
    }
}

static tr_status evaluate(void *user, const struct tr_shared_evaluation *evaluation, int64_t first,
                          int64_t end, void *found)
{
    struct part *part = user;
    part->pieces++;
    if (part->stage) hold_up(part->stage, tr_comm_rank(part->comm));
    if (tr_comm_rank(part->comm) == part->victim) tr_comm_thread_kill(part->comm);
    return part->hooks.evaluate(part->hooks.user, evaluation, first, end, found);
}

static tr_status take(void *user, const struct tr_shared_evaluation *evaluation, int64_t first, int64_t end,
                      const void *found)
{
    struct part *part = user;
    return part->hooks.take(part->hooks.user, evaluation, first, end, found);
}

static int hear(void *user, const struct tr_train_event *event)
{
    struct part *part = user;
    if (event->kind == TR_EVENT_EVALUATION) {
        part->evaluations++;
        part->loss = event->loss;
        part->accuracy = event->accuracy;
        part->bests += event->best;
        if (event->best) part->best_loss = event->loss;
        if (event->best) part->best_accuracy = event->accuracy;
        if (part->evaluations == 1) part->first_loss = event->loss;
        if (part->evaluations == 1) part->first_accuracy = event->accuracy;
    }
    if (event->kind == TR_EVENT_CHECKPOINT) snprintf(part->saved, sizeof part->saved, "%s", event->name);
    if (event->kind == TR_EVENT_CHECKPOINT && part->evaluations == 1 && !part->first_saved[0])
        snprintf(part->first_saved, sizeof part->first_saved, "%s", event->name);
    return 0;
}

static void *run_part(void *user)
{
    struct rank *rank = user;
    struct part *part = rank->user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    part->comm = rank->comm;
    part->hooks = trainer_strategy(trainer)->hooks;
    tr_strategy_set_evaluation_hooks(trainer_strategy(trainer),
                                     &(struct tr_evaluation_hooks){evaluate, take, part});
    part->status = tr_trainer_run(trainer, tr_comm_rank(rank->comm) == 0 ? hear : NULL, part);
    snprintf(part->message, sizeof part->message, "%s", tr_error_message());
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static void begin(struct job *job, const char *strategy, const char *out)
{
    family_job(job, &families[0], family_place);
    job_set(job, "layers=[{flatten: null}, {dense: {units: 16, activation: relu}}, batch_norm, {dense: 10}]");
    job_set(job, "optimizer={rule: adam, rate: 3e-3, ema: 0.9}");
    job_set(job, "train.batch=20");
    job_set(job, "train.microbatches=4");
    job_set(job, "train.evaluate_every=9");
    job_set(job, "train.patience=1000");
    job->settings.set = job->set;
    job->settings.steps = 50;
    job->settings.strategy = strategy;
    job->settings.out = out;
}

/* What one process finds with the weights of a checkpoint. */
static void evaluate_alone(struct job *job, const char *checkpoint, struct tr_train_event *found)
{
    job->settings.strategy = "allreduce";
    job->settings.resume = checkpoint;
    job->settings.out = NULL;
    tr_trainer *trainer = job_trainer(job);
    *found = (struct tr_train_event)TR_TRAIN_EVENT_INIT;
    must_train(tr_trainer_evaluate(trainer, "test", found));
    tr_trainer_destroy(&trainer);
}

/* Returns how often the run was evaluated. */
static int run_once(const char *strategy, int size, int servers, int apart, int victim)
{
    static int number;
    struct job job;
    struct part part[RANKS];
    struct rank ranks[RANKS];
    struct tr_train_event alone;
    char out[SCRATCH_PATH + 24], how[160];
    snprintf(out, sizeof out, "%s/shared%d", family_place, number++);
    snprintf(how, sizeof how, "%s, %d ranks%s, victim %d", strategy, size, apart ? ", apart" : "", victim);
    begin(&job, strategy, out);
    for (int r = 0; r < size; r++) {
        part[r] = (struct part){.victim = victim};
        ranks[r].user = &part[r];
    }
    run_ranks_by(run_part, &job.settings, size, apart, ranks);
    for (int r = 0; r < size; r++)
        if (r != victim && part[r].status != TR_OK) fail_msg("%s, rank %d: %s", how, r, part[r].message);
    /* In the end all are idle, and each takes some. */
    for (int r = 0; r < size; r++) {
        if (r < size - servers && part[r].pieces == 0) fail_msg("%s: rank %d evaluated nothing", how, r);
        if (r >= size - servers) assert_int_equal(part[r].pieces, 0);
    }
    assert_true(part[0].evaluations >= 1 && part[0].bests > 0);
    evaluate_alone(&job, part[0].saved, &alone);
    if (alone.loss != part[0].loss || alone.accuracy != part[0].accuracy)
        fail_msg("%s: loss %.17g and accuracy %g; one process finds %.17g and %g", how, part[0].loss,
                 part[0].accuracy, alone.loss, alone.accuracy);
    /* And what was saved as the best on the way, while the others went on. */
    char best[SCRATCH_PATH + 40];
    snprintf(best, sizeof best, "%s/" TR_CHECKPOINT_BEST, out);
    evaluate_alone(&job, best, &alone);
    if (alone.loss != part[0].best_loss || alone.accuracy != part[0].best_accuracy)
        fail_msg("%s: the best has loss %.17g and accuracy %g; one process finds %.17g and %g", how,
                 part[0].best_loss, part[0].best_accuracy, alone.loss, alone.accuracy);
    return part[0].evaluations;
}

/* A root that sleeps through the whole run, while others take all steps, evaluates at its end alone. The run
   is repeated until there was an evaluation on the way, too. */
static void run(const char *strategy, int size, int servers, int apart, int victim)
{
    for (int tries = 0; run_once(strategy, size, servers, apart, victim) < 2; tries++)
        if (tries == 50) fail_msg("%s: never evaluated on the way", strategy);
}

static void workers_find_what_one_process_does(void **state)
{
    (void)state;
    run("parameter-server,mode=async", 3, 1, 0, -1);
    run("parameter-server,mode=async,servers=2,buffers=1", 5, 2, 1, -1);
    run("parameter-server,mode=bounded,staleness=1,servers=2", 4, 2, 2, -1);
    run("parameter-server,mode=backup", 4, 1, 1, -1);
}

static void what_a_lost_worker_leaves_others_do(void **state)
{
    (void)state;
    run("parameter-server,mode=async", 4, 1, 0, 1);
    run("parameter-server,mode=async,servers=2,buffers=1", 5, 2, 1, 2);
}

/* Whoever trains between two pieces of an evaluation gets the weights to evaluate again. Returns how often
   the run was evaluated. */
static int train_between_pieces(int apart)
{
    static int number;
    struct job job;
    struct stage stage = {0};
    struct part part[4];
    struct rank ranks[RANKS];
    struct tr_train_event alone;
    char out[SCRATCH_PATH + 24];
    snprintf(out, sizeof out, "%s/between%d", family_place, number++);
    begin(&job, "parameter-server,mode=async", out);
    job_set(&job, "train.keep=100");
    job.settings.steps = 300;
    for (int r = 0; r < 4; r++) {
        part[r] = (struct part){.victim = 2, .stage = &stage};
        ranks[r].user = &part[r];
    }
    run_ranks_by(run_part, &job.settings, 4, apart, ranks);
    for (int r = 0; r < 4; r++)
        if (r != 2 && part[r].status != TR_OK) fail_msg("rank %d: %s", r, part[r].message);
    assert_true(stage.lost && stage.again);
    evaluate_alone(&job, part[0].first_saved, &alone);
    if (alone.loss != part[0].first_loss || alone.accuracy != part[0].first_accuracy)
        fail_msg("%d apart: loss %.17g and accuracy %g; one process finds %.17g and %g", apart,
                 part[0].first_loss, part[0].first_accuracy, alone.loss, alone.accuracy);
    return part[0].evaluations;
}

static void who_trains_in_between_gets_the_weights_again(void **state)
{
    (void)state;
    for (int apart = 0; apart < 2; apart++)
        for (int tries = 0; train_between_pieces(apart) < 2; tries++)
            if (tries == 50) fail_msg("never evaluated on the way");
}

/* ---- the rules ---- */

#define WORKERS 5
#define PIECES  40

/* Workers ask, find and are lost at random: every piece comes to the root, once. */
static void every_piece_is_found_once(void **state)
{
    (void)state;
    uint32_t chance = 0, words[4];
    for (int round = 0; round < 50; round++) {
        ps_assignment *assignment;
        int64_t held[WORKERS];
        int seen[PIECES] = {0}, living = WORKERS;
        bool lost[WORKERS] = {false};
        assert_int_equal(ps_assignment_create(WORKERS, PIECES, &assignment), TR_OK);
        for (int w = 0; w < WORKERS; w++) held[w] = -1;
        while (!ps_assignment_is_over(assignment)) {
            tr_rng_philox(tr_rng_key_make(11, TR_RNG_DELAY), chance++, 0, 0, 0, words);
            int w = (int)(words[0] % WORKERS), from;
            int64_t piece;
            if (!lost[w] && held[w] < 0 && ps_assignment_is_open(assignment)) {
                held[w] = ps_assignment_draw(assignment, w);
            } else if (!lost[w] && held[w] >= 0 && w > 0 && living > 1 && words[1] % 10 == 0) {
                ps_assignment_lose(assignment, w);
                lost[w] = true;
                held[w] = -1;
                living--;
            } else if (held[w] >= 0) {
                if (w == 0) seen[held[w]]++;
                assert_true(ps_assignment_found(assignment, w));
                assert_false(ps_assignment_found(assignment, w));
                held[w] = -1;
            }
            if (words[2] % 3 == 0 && ps_assignment_tell(assignment, &from, &piece)) {
                assert_true(from > 0);
                seen[piece]++;
            }
        }
        for (int i = 0; i < PIECES; i++) assert_int_equal(seen[i], 1);
        ps_assignment_destroy(&assignment);
    }
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        ps_assignment *assignment;
        refuse_begin(at);
        tr_status status = ps_assignment_create(WORKERS, PIECES, &assignment);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        ps_assignment_destroy(&assignment);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_find_what_one_process_does),
        cmocka_unit_test(what_a_lost_worker_leaves_others_do),
        cmocka_unit_test(who_trains_in_between_gets_the_weights_again),
        cmocka_unit_test(every_piece_is_found_once),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests_name("strategy.shared_evaluation", tests, family_place_make,
                                       family_place_remove);
}
