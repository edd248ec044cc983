/* The interface of the MPI module, so that the library itself needs no MPI.
 *
 * The module shares no code with the library; see base/files/module.h. One world per process. Calls come
 * one at a time, from any thread, except that `open` and `close` come from the same one. Only these two
 * block.
 */
#ifndef TR_COMM_MPI_MODULE_H
#define TR_COMM_MPI_MODULE_H

#include <stddef.h>

#define TR_MPI_VERSION 1
#define TR_MPI_SYMBOL  "tr_mpi_module"

/* Tags are below this, those of subgroups included. */
#define TR_MPI_TAGS (36 << 20)

enum tr_mpi_result {
    TR_MPI_OK,
    TR_MPI_FAILED,     /* `message` says why */
    TR_MPI_WRONG_SIZE, /* a message of another size came; `message` says which */
    TR_MPI_NO_MEMORY
};

/* A message under way. */
typedef struct tr_mpi_request tr_mpi_request;

struct tr_mpi_module {
    int version; /* TR_MPI_VERSION */
    /* Joins the world. `message` of `size` bytes, here and below. */
    enum tr_mpi_result (*open)(int *rank, int *ranks, char *message, size_t size);
    /* Starts sending or receiving; messages larger than `chunk` bytes (at most INT_MAX) go in pieces, cut
     * equally on both sides. */
    enum tr_mpi_result (*start)(int sends, int peer, int tag, void *data, size_t bytes, size_t chunk,
                                tr_mpi_request **request, char *message, size_t size);
    /* If the message is complete, frees and nulls the request. After a failure the request must not be
     * touched.
     */
    enum tr_mpi_result (*test)(tr_mpi_request **request, char *message, size_t size);
    /* Withdraws a receive: 1 if its memory is free again, and the request freed. 0: the request and its
     * memory must not be touched.
     */
    int (*withdraw)(tr_mpi_request **request);
    /* Leaves the world; may wait for others. */
    void (*close)(void);
};

#endif
