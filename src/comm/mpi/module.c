/* The MPI module, made of two-sided nonblocking calls only: blocking ones hang when a peer is dead,
 * collectives and one-sided ones make no progress by themselves.
 */
#include "comm/mpi/module.h"

#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) extern const struct tr_mpi_module tr_mpi_module;

struct tr_mpi_request {
    struct tr_mpi_request *next; /* in the list of free ones */
    size_t bytes, chunk;
    int sends, count, done;
    MPI_Request piece[];
};

static MPI_Comm world = MPI_COMM_NULL;
static int began_here;    /* MPI was not initialized by others */
static int ignores_pipes; /* SIGPIPE had the default action */
/* Free requests of one piece, as nearly all are: nothing is allocated during training. */
static struct tr_mpi_request *spare;

static enum tr_mpi_result explain(int error, char *message, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;
    MPI_Error_string(error, text, &length);
    snprintf(message, size, "MPI: %s", text);
    return TR_MPI_FAILED;
}

/* ---- the world ---- */

/* Open MPI 4 can lock itself up over TCP: where a connection breaks in the middle of a write,
   mca_btl_tcp_endpoint_close() completes the pieces that wait, while it holds the lock of the endpoint, and
   the completion of one sends a message to the same endpoint (mca_pml_ob1_send_fin()), which takes that lock
   again. MPI_THREAD_SINGLE is without such locks, MPI_THREAD_SERIALIZED has them although the caller's order
   makes them needless: they are put aside. */
static void put_locks_aside(void)
{
#if defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION == 4
    bool *uses_threads = dlsym(RTLD_DEFAULT, "opal_uses_threads");
    if (uses_threads) *uses_threads = false;
#endif
}

static enum tr_mpi_result enter_world(char *message, size_t size)
{
    int begun, ended, provided, error;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (ended) {
        snprintf(
            message, size,
            "MPI was used and ended before in this process, and cannot begin again; start a new process");
        return TR_MPI_FAILED;
    }
    if (begun)
        error = MPI_Query_thread(&provided);
    else
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (error != MPI_SUCCESS) return explain(error, message, size);
    began_here = !begun;
    if (began_here && provided == MPI_THREAD_SERIALIZED) put_locks_aside();
    if (provided >= MPI_THREAD_SERIALIZED) return TR_MPI_OK;
    snprintf(message, size,
             "this MPI does not let threads take turns (it provides level %d, %d is needed); %s", provided,
             MPI_THREAD_SERIALIZED,
             begun ? "begin it with MPI_Init_thread" : "install another build of Open MPI");
    return TR_MPI_FAILED;
}

/* A peer that dies in the middle of a message over TCP would kill this process, since MPI writes to the
   broken connection: SIGPIPE is ignored, unless the program has set its action. */
static void ignore_broken_pipes(void)
{
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        ignores_pipes = signal(SIGPIPE, SIG_IGN) != SIG_ERR;
}

static enum tr_mpi_result open_world(int *rank, int *ranks, char *message, size_t size)
{
    if (world != MPI_COMM_NULL) {
        snprintf(message, size, "this process has an MPI communicator already; destroy it first");
        return TR_MPI_FAILED;
    }
    enum tr_mpi_result result = enter_world(message, size);
    if (result != TR_MPI_OK) return result;
    ignore_broken_pipes();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS) error = MPI_Comm_rank(world, rank);
    if (error == MPI_SUCCESS) error = MPI_Comm_size(world, ranks);
    if (error != MPI_SUCCESS) return explain(error, message, size);
    int *most, known;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known);
    if (known && *most >= TR_MPI_TAGS - 1) return TR_MPI_OK;
    snprintf(message, size, "this MPI has tags up to %d only, %d are needed; use Open MPI", known ? *most : 0,
             TR_MPI_TAGS);
    return TR_MPI_FAILED;
}

static void close_world(void)
{
    while (spare) {
        struct tr_mpi_request *request = spare;
        spare = request->next;
        free(request);
    }
    if (world != MPI_COMM_NULL) MPI_Comm_free(&world);
    if (began_here) MPI_Finalize();
    if (ignores_pipes) signal(SIGPIPE, SIG_DFL);
}

/* ---- messages ---- */

static struct tr_mpi_request *take(int count)
{
    struct tr_mpi_request *request = spare;
    if (count == 1 && request)
        spare = request->next;
    else
        request = malloc(sizeof *request + (size_t)count * sizeof request->piece[0]);
    return request;
}

static void put_back(struct tr_mpi_request **request)
{
    if ((*request)->count == 1) {
        (*request)->next = spare;
        spare = *request;
    } else {
        free(*request);
    }
    *request = NULL;
}

static int bytes_of_piece(const struct tr_mpi_request *request, int piece)
{
    size_t left = request->bytes - (size_t)piece * request->chunk;
    return (int)(left < request->chunk ? left : request->chunk);
}

static enum tr_mpi_result start(int sends, int peer, int tag, void *data, size_t bytes, size_t chunk,
                                tr_mpi_request **out, char *message, size_t size)
{
    int count = bytes == 0 ? 1 : (int)((bytes + chunk - 1) / chunk);
    struct tr_mpi_request *request = take(count);
    *out = request;
    if (!request) return TR_MPI_NO_MEMORY;
    *request = (struct tr_mpi_request){.bytes = bytes, .chunk = chunk, .sends = sends, .count = count};
    for (int i = 0; i < count; i++) {
        char *at = (char *)data + (size_t)i * chunk;
        int error =
            sends ? MPI_Isend(at, bytes_of_piece(request, i), MPI_BYTE, peer, tag, world, &request->piece[i])
                  : MPI_Irecv(at, bytes_of_piece(request, i), MPI_BYTE, peer, tag, world, &request->piece[i]);
        if (error != MPI_SUCCESS)
            return explain(error, message, size); /* earlier pieces are under way: leaks */
    }
    return TR_MPI_OK;
}

static enum tr_mpi_result test(tr_mpi_request **handle, char *message, size_t size)
{
    struct tr_mpi_request *request = *handle;
    while (request->done < request->count) {
        int complete, got;
        MPI_Status status;
        int error = MPI_Test(&request->piece[request->done], &complete, &status);
        int class = MPI_SUCCESS;
        if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
        if (class == MPI_ERR_TRUNCATE) {
            snprintf(message, size, "it is larger than the %zu bytes that were expected", request->bytes);
            return TR_MPI_WRONG_SIZE;
        }
        if (error != MPI_SUCCESS) return explain(error, message, size);
        if (!complete) return TR_MPI_OK;
        if (!request->sends && MPI_Get_count(&status, MPI_BYTE, &got) == MPI_SUCCESS &&
            got != bytes_of_piece(request, request->done)) {
            snprintf(message, size, "it has %d bytes where %d were expected", got,
                     bytes_of_piece(request, request->done));
            return TR_MPI_WRONG_SIZE;
        }
        request->done++;
    }
    put_back(handle);
    return TR_MPI_OK;
}

static int withdraw(tr_mpi_request **handle)
{
    struct tr_mpi_request *request = *handle;
    if (request->sends) return 0;
    for (int i = request->done; i < request->count; i++) {
        int complete = 0;
        if (MPI_Cancel(&request->piece[i]) != MPI_SUCCESS) return 0;
        if (MPI_Test(&request->piece[i], &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || !complete) return 0;
        request->done++;
    }
    put_back(handle);
    return 1;
}

const struct tr_mpi_module tr_mpi_module = {
    .version = TR_MPI_VERSION,
    .open = open_world,
    .start = start,
    .test = test,
    .withdraw = withdraw,
    .close = close_world,
};
