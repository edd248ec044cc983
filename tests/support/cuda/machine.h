/* The machine behind the stand-in's entries: contexts, streams of commands, memory, modules. All of it is
 * used under one lock.
 */
#ifndef TESTS_SUPPORT_CUDA_MACHINE_H
#define TESTS_SUPPORT_CUDA_MACHINE_H

#include "device/gpu/cuda/abi.h"
#include "device/gpu/opencl/abi.h"

#include <stdbool.h>

#define MOST_DEVICES   8
#define MOST_ARGUMENTS 64

struct cu_context_s {
    int device, users;
};

enum command_kind { RUN, TO_DEVICE, TO_HOST, SET, RECORD, AWAIT, FREE, GRAPH };

struct command {
    enum command_kind kind;
    struct command *next;
    struct cu_function_s *function; /* RUN */
    unsigned grid[3], threads;
    int count;
    struct {
        size_t size; /* 0: an address */
        uint64_t value;
    } argument[MOST_ARGUMENTS];
    cu_pointer there; /* copies, SET, FREE */
    void *here;
    size_t bytes;
    unsigned value;
    struct cu_event_s *event;   /* RECORD */
    struct cu_stream_s *stream; /* AWAIT: up to `at` */
    uint64_t at;
    struct command *node;     /* of what a graph was made of: the node that this is */
    struct cu_graph_s *graph; /* GRAPH, */
    struct command *nodes;    /* and what it consisted of when it was enqueued */
};

struct cu_stream_s {
    struct cu_context_s *context;
    int users;
    struct command *first, **last;
    uint64_t enqueued, done;
    struct cu_stream_s *next; /* of all that there are */
};

struct cu_event_s {
    struct cu_context_s *context;
    int users;
    unsigned flags;
    struct cu_stream_s *stream; /* NULL: it was never recorded */
    uint64_t at;
    int64_t time; /* when it was come to, in nanoseconds */
};

/* Nodes in a chain. Also what cuGraphInstantiateWithFlags() makes: the same commands, each with its node. */
struct cu_graph_s {
    struct command *first, **last;
    int under_way;
    struct cu_graph_s *of; /* what it was made of; NULL: it is a graph, */
    int made;              /* of which there are so many, */
    bool gone;             /* and which was destroyed */
};

struct cu_pool_s {
    int device;
};

/* A program, kept for the life of the process. */
struct built {
    char *options, *text;
    cl_program program, telling; /* to run, and to tell which parameters its kernels have */
    struct built *next;
};

struct cu_module_s {
    struct cu_context_s *context;
    const struct built *built; /* NULL: it is the real compiler's */
    cu_pointer first_group;    /* an address that stands for the next member */
    uint32_t first[3];
    struct cu_function_s *functions;
};

struct cu_function_s {
    struct cu_module_s *module;
    cl_kernel kernel;
    int count;
    size_t size[MOST_ARGUMENTS]; /* 0: an address */
    struct cu_function_s *next;
};

extern struct machine {
    int devices, arch, version;
    bool pools, lost, paper, aborts;
    size_t memory;
    char trigger[512], mark[512];
    int64_t live, done, graph_launches, changes, moved;
} machine;

/* Ends the process: the host did what it must not. */
void misuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void machine_begin(void);

/* Memory of a device; `born`: the stream that gives it once it has done what it was given; NULL: it is there.
 */
cu_pointer block_make(int device, size_t bytes, struct cu_stream_s *born);
/* No command that is enqueued from now on may use it. A block of `device`, or of any where that is below 0.
 */
void block_doom(cu_pointer address, int device);
void block_free(cu_pointer address);
bool block_has_room(int device, size_t bytes);
/* Pinned memory. */
void *pinned_make(size_t bytes);
void pinned_free(void *memory);
bool is_pinned(const void *memory, size_t bytes);

const struct built *program_make(const char *options, const char *text);
void module_begin(struct cu_module_s *module);
void module_end(struct cu_module_s *module);
/* False: the module has no kernel of this name. */
bool function_make(struct cu_module_s *module, const char *name, struct cu_function_s **out);

/* Gives a copy of a command to a stream; checks what it names. */
void enqueue(struct cu_stream_s *stream, const struct command *command);
/* Gives one to a graph, behind the last one, which is `after`; returns its copy there. */
struct command *graph_add(struct cu_graph_s *graph, int device, const struct command *command,
                          const struct command *const *after, size_t count);
/* The node of a graph becomes another one in what was made of it, for launches from now on. */
void graph_change(struct cu_graph_s *list, int device, const struct command *node,
                  const struct command *command);
/* Does what a stream was given, up to a place. */
void run_until(struct cu_stream_s *stream, uint64_t at);
void run_one(struct cu_stream_s *stream);
/* It is one of those that machine_finish() knows, and is none. */
void stream_begin(struct cu_stream_s *stream);
void stream_end(struct cu_stream_s *stream);
/* Does all that streams of a context were given; NULL: of any. */
void machine_finish(const struct cu_context_s *context);
void stream_drop(struct cu_stream_s *stream);
void event_drop(struct cu_event_s *event);
void graph_free(struct cu_graph_s *graph);
struct cu_graph_s *graph_copy(struct cu_graph_s *graph);

#endif
