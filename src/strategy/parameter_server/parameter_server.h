/* The structure of the parameter server, shared by its files:
 *
 *   parameter_server.c  options and the class, with what workers and servers have in common
 *   synchronous.c       mode=sync, and a process alone: all-reduce in which servers alone update
 *   worker.c            a worker's part: asks for work, computes, pushes; the root's steps
 *   server.c            a server's part: receives workers' messages, carries out the coordinator's commands
 *   peers.c             where a server receives gradients and sends parameters from
 *   coordinator.c       the first server decides what happens, by the rules of schedule.c and credits.c
 *   gradients.c         the outcome of a gradient that has arrived
 *   contribution.c      the arithmetic of gradients and their updates, for replays, too
 *   shutdown.c          workers that are lost, and the end of the run
 *   evaluation/         evaluations that all workers share: the coordinator hands their pieces out
 *   store.c             a server's shard of the parameters
 *   updates.c           the log of applied gradients, in order
 *   mail.c              small messages, and missing ranks
 *
 * Ranks: the workers first, of which rank 0 is the root; then the servers, of which the first coordinates.
 * Every server holds a contiguous shard of the parameters, and all apply the same updates in the same order,
 * which the coordinator commands: so the shards of a version belong together.
 *
 * The life of a gradient. A worker asks the coordinator for work (UP). The coordinator draws a number for
 * it (schedule.h) and makes all servers send their shards (GIVE) to where the worker computes; then it
 * sends the number (DOWN). The worker computes and notifies all servers (UP) that the gradient is there.
 * Each server that has its shard notifies the coordinator (HAVE). When all have it, the coordinator takes
 * or drops it, commands additions and updates, and hands out new work. If a worker is lost before all
 * servers have its gradient, all forget it: so an update is applied by all servers, once, or by none.
 *
 * Memory. Servers on the worker's host read its gradient where it was written, and write parameters where
 * it reads them (a window); others use messages. A worker's memory belongs to the worker while it has
 * work, and to the servers until it gets the next.
 *
 * A gradient sent by messages arrives in pieces, and counts only once its worker has announced that it is
 * complete. A server has room for `credits` such gradients, and for as many copies of parameters under
 * way, however many workers there are. A distant worker (far from some server) requests room from the
 * coordinator once it has its gradient (OFFER), and waits; it holds the room only while its messages are
 * under way. The coordinator makes all servers keep room (EXPECT), notifies the worker (GRANTED), and
 * gives the room to the next one once the gradient was used or dropped (RELEASE). Parameters are sent to a
 * distant worker when there is room for a copy, which is held until the worker has them (GOT). Where there
 * is room for all, it is kept from the hand-out on, and pieces are sent, from the end of the arena on, as
 * backward completes them.
 *
 * The root may pause between steps, to evaluate or save, so it asks for work each time; other workers get
 * theirs in answer to a gradient.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_H
#define TR_STRATEGY_PARAMETER_SERVER_H

#include "strategy/all_reduce/all_reduce.h"
#include "strategy/parameter_server/contribution.h"
#include "strategy/parameter_server/mail.h"

enum ps_mode { PS_SYNC, PS_ASYNC, PS_BOUNDED, PS_BACKUP };

struct ps_options {
    int32_t mode; /* enum ps_mode */
    int32_t servers;
    int64_t staleness; /* -1: by the number of workers */
    int32_t backup;
    int32_t buffers;
};

/* ---- messages ---- */

enum ps_tag {
    PS_TAG_UP,
    PS_TAG_DOWN,
    PS_TAG_COMMAND,
    PS_TAG_REPORT,
    PS_TAG_GRADIENT,
    PS_TAG_PARAMETERS,
    PS_TAG_TABLE,
    PS_TAG_FOUND,
    PS_TAG_UPDATES,
    PS_TAG_STATE /* + the arena */
};

/* From a worker. All kinds except PUSH go only to the coordinator. */
enum ps_up_kind {
    PS_ASK,        /* requests work */
    PS_GOT,        /* a distant worker has received its parameters */
    PS_OFFER,      /* a distant worker has a gradient, and requests room for it */
    PS_PUSH,       /* the gradient is there; workers other than the root also request work */
    PS_DRAIN,      /* the root wants all work to end, and none to begin until it requests some */
    PS_GATHER,     /* the root wants the state of the run */
    PS_EVALUATE,   /* the root wants that state to be evaluated by all */
    PS_EVALUATED,  /* a piece was evaluated; requests the next */
    PS_STATISTICS, /* the root requests figures of all ranks */
    PS_END         /* the root ends the run */
};

struct ps_up {
    int32_t kind, request;
    int64_t examples;                       /* of the gradient */
    struct tr_shared_evaluation evaluation; /* EVALUATE */
    float loss, correct;
    struct tr_rank_statistics done;
};

/* To a worker. All kinds except GIVEN come from the coordinator. */
enum ps_down_kind {
    PS_WORK,          /* compute this contribution; the coordinator's shard of the parameters is there */
    PS_GIVEN,         /* this server's shard is there, too */
    PS_GRANTED,       /* all servers have room for the gradient */
    PS_NEWS,          /* to the root */
    PS_DRAINED,       /* to the root: all workers have stopped */
    PS_GATHERED,      /* to the root: the state follows */
    PS_PIECE,         /* evaluate this piece; new parameters are there as for WORK */
    PS_FOUND,         /* to the root: a worker has found the results of a piece */
    PS_EVALUATED_ALL, /* to the root */
    PS_ENDED,         /* the run is over */
    PS_FENCED         /* this worker was declared dead */
};

struct ps_down {
    int32_t kind;
    int32_t lost;                           /* ranks, at the end */
    int32_t granted;                        /* WORK: room is granted, as by GRANTED */
    int32_t worker;                         /* FOUND */
    int32_t fresh;                          /* PIECE: the parameters are new */
    int64_t updates;                        /* to the root: number of log records that follow */
    int64_t number, version;                /* of the contribution; or of the piece */
    struct tr_shared_evaluation evaluation; /* PIECE */
    struct ps_news news;
};

/* From the coordinator to the other servers, carried out in order. */
enum ps_command_kind {
    PS_GIVE,     /* send the parameters to a worker */
    PS_EXPECT,   /* expect the gradient of a worker, and keep room for it */
    PS_RELEASE,  /* release that room */
    PS_ADD,      /* add a worker's gradient to the sum */
    PS_MEASURE,  /* measure the gradient that is about to be applied */
    PS_UPDATE,   /* update by a worker's gradient, or by the sum */
    PS_SNAPSHOT, /* to the root */
    PS_SHOW,     /* send the state of the last snapshot to evaluate to a worker */
    PS_DROP,     /* a worker is lost */
    PS_FINISH
};

struct ps_command {
    int32_t kind;
    int32_t worker; /* -1: the sum */
    int32_t give;   /* UPDATE: the worker that gets the new parameters; -1: none */
    int32_t first;  /* ADD: the sum begins anew */
    int32_t chosen; /* UPDATE: by the gradient measured last */
    int32_t lost;   /* FINISH: ranks */
    float factor;   /* ADD: of the gradient; UPDATE: of the sum */
    float clip;     /* UPDATE: factor that clips the gradient by norm */
    int64_t count;  /* UPDATE: updates before this one */
};

/* From the other servers to the coordinator. */
enum ps_report_kind { PS_HAVE, PS_MEASURED, PS_POISONED, PS_REQUEST };

struct ps_report {
    int32_t kind;
    int32_t worker; /* HAVE */
    int32_t request;
    double squares; /* MEASURED */
    struct tr_rank_statistics done;
};

/* The root's statistics, before the figures of all ranks. */
struct ps_table {
    int64_t staleness[TR_STALENESS_BINS], dropped;
};

/* ---- the strategy ---- */

struct ps_server;
struct ps_worker;

/* For an asynchronous run; a synchronous one has another structure (synchronous.c). */
struct ps {
    struct tr_strategy head;
    int workers, servers;
    int64_t *shard;    /* [servers + 1] floats of the arena */
    int parts;         /* gradients that make an update */
    bool *distant;     /* [workers]: far from some server */
    int distants;      /* number of distant workers */
    int credits;       /* gradients, and copies of parameters, for which a server has room */
    tr_window *memory; /* of each worker: gradient slots, then parameters; NULL: messages only */
    size_t slot_bytes; /* of the gradient slots */
    int *essential;    /* [servers + 1] ranks whose loss ends the job */
    struct ps_watch watch;
    struct ps_outbox outbox;
    int64_t first;  /* steps done when the run began */
    int64_t count;  /* updates that this rank knows of */
    int64_t shared; /* bytes read from or written to memory of other ranks */
    void *found;    /* the root's, [found_bytes]: results of an evaluation by a worker */
    size_t found_bytes;
    tr_ticket *finding;       /* on its way there */
    struct ps_worker *worker; /* one of the two, from tr_strategy_begin() on */
    struct ps_server *server;
};

static inline struct ps *ps_of(tr_strategy *strategy)
{
    return (struct ps *)strategy;
}

static inline const struct ps_options *ps_options_of(const struct ps *self)
{
    return self->head.options;
}

/* The coordinator's rank; servers follow it. */
static inline int ps_server_rank(const struct ps *self, int server)
{
    return self->workers + server;
}

/* Whether a rank's memory can be accessed. */
bool ps_is_near(const struct ps *self, int rank);
/* Whether distant workers have room for as long as they work. */
static inline bool ps_is_roomy(const struct ps *self)
{
    return self->credits == self->distants;
}
/* The gradient and the parameters of a near worker, both arenas. */
float *ps_gradient_of(const struct ps *self, int worker);
float *ps_parameters_of(const struct ps *self, int worker);
/* Pieces of a gradient over the shard of a server, and the bounds of one: they count from the end of the
   shard, which backward completes first. */
int ps_pieces(const struct ps *self, int server);
void ps_piece(const struct ps *self, int server, int piece, int64_t *begin, int64_t *end);
/* Updates that a gradient may miss, PS_STALENESS_ANY. */
int64_t ps_staleness(const struct ps *self);
/* The figures of this rank so far. */
void ps_own_statistics(const struct ps *self, struct tr_rank_statistics *out);

/* ---- synchronous.c ---- */

/* The class of servers that are synchronous, and its structure. */
extern const struct tr_strategy_class ps_synchronous;
struct ps_synchronous_server {
    struct all_reduce work;
    tr_device *device; /* of a server with more threads than were requested, or NULL */
};
tr_status ps_synchronous_create(tr_strategy *strategy);
void ps_synchronous_destroy(tr_strategy *strategy);

/* ---- worker.c ---- */

tr_status ps_worker_create(struct ps *self);
/* Cancels messages under way, before ps_worker_destroy(). False: messages may be using memory of the
   worker. */
bool ps_worker_cancel(struct ps *self);
void ps_worker_destroy(struct ps *self);
/* Works until the root ends the run. */
tr_status ps_worker_run(struct ps *self, const atomic_int *stop, int32_t request);
/* The root's, see strategy/class.h. */
tr_status ps_root_step(struct ps *self, int32_t request, struct tr_step_figures *figures);
tr_status ps_root_drain(struct ps *self);
tr_status ps_root_gather(struct ps *self);
tr_status ps_root_statistics(struct ps *self, struct tr_strategy_statistics *out);
tr_status ps_root_end(struct ps *self);

/* The others. */
tr_status ps_worker_say(struct ps *self, int server, struct ps_up *up);
/* Waits for the next message of a server. */
tr_status ps_worker_hear(struct ps *self, int server);
/* The coordinator's last message. */
const struct ps_down *ps_worker_word(const struct ps *self);
/* After it: waits until all servers' parameters have arrived. */
tr_status ps_worker_take_parameters(struct ps *self);
tr_status ps_worker_refuse(int kind);

/* ---- updates.c ---- */

/* The root's log begins. */
tr_status ps_updates_begin(struct ps *self);
/* The root receives the records that follow the coordinator's message. */
tr_status ps_root_take_updates(struct ps *self, int64_t count);

/* ---- evaluation/worker.c ---- */

/* Evaluates the piece of the coordinator's last message, and receives the next message. */
tr_status ps_worker_evaluate(struct ps *self);
tr_status ps_root_evaluate(struct ps *self, const struct tr_shared_evaluation *evaluation);

/* ---- server.c ---- */

tr_status ps_server_create(struct ps *self);
/* Cancels messages under way, before ps_server_destroy(); memory that messages may be using is not freed. */
void ps_server_cancel(struct ps *self);
void ps_server_destroy(struct ps *self);
/* Serves until the root ends the run. */
tr_status ps_server_run(struct ps *self, const atomic_int *stop, int32_t request);

#endif
