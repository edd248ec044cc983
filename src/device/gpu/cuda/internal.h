/* The parts of the CUDA side of api.h: the libraries and their devices (library.c), sessions with a device
 * (cuda.c), their clocks (times.c), memory (memory.c), programs (programs.c) and lists of launches
 * (lists.c).
 *
 * A session holds its device's primary context, which other libraries of the process (PyTorch) may share, and
 * makes it current only while one of its functions runs.
 */
#ifndef TR_DEVICE_GPU_CUDA_INTERNAL_H
#define TR_DEVICE_GPU_CUDA_INTERNAL_H

#include "device/gpu/api.h"
#include "device/gpu/cuda/abi.h"
#include "device/gpu/signals.h"

#define CUDA_MESSAGE_SIZE 320
#define CUDA_MOST_ARCHS   64

/* The functions of the libraries; valid after cuda_find() or cuda_describe() succeeded. */
struct cuda_library {
#define MEMBER(result, name, parameters) result(*name) parameters;
    CUDA_FUNCTIONS(MEMBER)
    CUDA_POOL_FUNCTIONS(MEMBER)
    CUDA_GRAPH_FUNCTIONS(MEMBER)
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
    char missing[CUDA_MESSAGE_SIZE];          /* "", or why there is no CUDA */
    char compiler_missing[CUDA_MESSAGE_SIZE]; /* "", or why there is no compiler */
    bool pools, graphs;                       /* whether all functions of the group exist */
    int version;                              /* version of CUDA that the driver supports: 12040 is 12.4 */
    int compiler_major, compiler_minor;
    int archs[CUDA_MOST_ARCHS]; /* that the compiler supports, 90 is sm_90, ascending */
    int arch_count;
};
extern struct cuda_library cuda_library;

/* "CUDA_ERROR_OUT_OF_MEMORY: out of memory". */
void cuda_error_text(cu_result error, char *text, size_t size);

/* Device `number`, as gpu_api.describe counts. */
tr_status cuda_find(int number, cu_device *out);
int cuda_attribute(cu_device device, int what);
/* The architecture that programs of a device are compiled for: the device's own, as sm_90. Where the
   compiler does not know it, the greatest lower one, which the driver compiles for the device; 0: there is
   none. */
int cuda_arch_of(cu_device device, bool *own);
/* gpu_api.describe. */
tr_status cuda_describe(int number, struct gpu_info *out);

/* A moment known by both clocks: the device's, as an event, and the host's, in nanoseconds. */
struct cuda_moment {
    cu_event event;
    int64_t host;
    int users;
};

/* An event of gpu_api: a mark, or the beginning and the end of a command. */
struct cuda_event {
    cu_event begin, end;    /* begin: NULL for a mark */
    struct cuda_moment *by; /* moment that its times are relative to; NULL for a mark */
    int64_t queued;
    uint64_t staged; /* copies that are complete once a mark is reached */
};

/* A copy to host memory that is not pinned. It goes to the session's pinned memory, and from there to its
   destination after waiting; the driver would block in the call that enqueues it. */
struct cuda_staged {
    void *to;
    size_t at, bytes;
    uint64_t number;
};

/* A session: one stream computes; another one copies concurrently, after marks of the first. */
struct cuda_session {
    cu_device device;
    cu_context context;
    cu_stream queue;
    cu_stream copies; /* of copies beside it; NULL until the first one */
    cu_pool pool;     /* NULL: memory is allocated by the driver directly */
    int arch;
    bool own_arch; /* as cuda_arch_of() */
    bool timed;
    struct cuda_moment *moment; /* the last one, or NULL */
    bool rests;                 /* no command is unfinished */
    struct cuda_pinned *pinned;
    char *stage; /* pinned; NULL: there is none */
    size_t stage_used;
    struct cuda_staged *staged;
    int staged_count;
    uint64_t staged_number; /* of the last one */
    char name[96];
};

struct cuda_program {
    cu_module module;
    void *image; /* output of the compiler, [bytes]; NULL: an earlier run kept the program */
    size_t bytes;
    cu_pointer first_group; /* d_first_group of the dialect; 0: its kernels use none */
};

struct cuda_kernel {
    const struct cuda_program *program;
    cu_function function;
};

/* Makes the session's context current, and restores the previous one. Functions that free objects are
   called even if this fails: they need no context, or report the error. */
cu_result cuda_enter(const struct cuda_session *session);
void cuda_leave(void);

/* The status of an error of CUDA, with a message. */
tr_status cuda_failed(const struct cuda_session *session, const char *what, cu_result error);
/* Orders a stream after all commands so far of another one. */
cu_result cuda_order(cu_stream earlier, cu_stream later);
/* Fills the array of pointers to a launch's arguments that the driver takes. False: there are too many. */
#define CUDA_MOST_ARGUMENTS 64
bool cuda_fill_arguments(const struct gpu_launch *launch, void *arguments[CUDA_MOST_ARGUMENTS]);

/* Called before and after enqueuing a command on a stream, which may leave an event (NULL: none). The
   context is current. */
cu_result cuda_times_begin(struct cuda_session *session, cu_stream stream, struct cuda_event **event);
cu_result cuda_times_end(cu_stream stream, struct cuda_event *event);
void cuda_release_event(struct cuda_event *event);
void cuda_release_moment(struct cuda_moment *moment);
/* Copies to host memory up to a number are complete: moves them to their destinations, or drops them. */
void cuda_deliver(struct cuda_session *session, uint64_t number);
void cuda_drop_staged(struct cuda_session *session);
/* Creates the session's pool, where there are pools, and its memory for staged copies. */
cu_result cuda_prepare_memory(struct cuda_session *session);
void cuda_release_memory(struct cuda_session *session);

/* Slots of gpu_api: of memory.c, */
tr_status cuda_alloc(void *session, size_t bytes, void **block);
void cuda_free(void *session, void *block);
tr_status cuda_to_device(void *session, void *block, size_t at, const void *from, size_t bytes, void **event);
tr_status cuda_to_host(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
tr_status cuda_to_host_beside(void *session, void *to, void *block, size_t at, size_t bytes, void **event);
tr_status cuda_alloc_pinned(void *session, size_t bytes, void **memory);
void cuda_free_pinned(void *session, void *memory);
/* of programs.c, */
#define CUDA_STRICT "-fmad=false -ftz=false -prec-div=true -prec-sqrt=true -default-device "
tr_status cuda_build(void *session, const struct gpu_program_source *source, void **out);
void cuda_free_program(void *session, void *program);
tr_status cuda_binary(void *session, void *program, void **binary, size_t *bytes);
tr_status cuda_kernel(void *session, void *program, const char *name, void **out);
void cuda_free_kernel(void *session, void *kernel);
tr_status cuda_launch(void *session, const struct gpu_launch *launch);
/* of lists.c, */
tr_status cuda_build_list(void *session, const struct gpu_launch *launches, int count, void **list);
tr_status cuda_launch_list(void *session, void *list);
tr_status cuda_change_list(void *session, void *list, int index, const struct gpu_launch *launch);
void cuda_free_list(void *session, void *list);
/* of times.c. */
tr_status cuda_times(void *session, void *event, struct gpu_times *out);

#endif
