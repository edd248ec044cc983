/* One rank of the tests with processes; mpirun starts several. The argument says what to do. Prints a line
 * for each finding; rank 0 prints "all is well" at the end of a good run. Failures leave by _exit(), as
 * programs that use MPI must.
 */
#include "base/alloc.h"
#include "comm/mpi/mpi.h"
#include "comm/process_ranks.h"
#include "comm/scenarios/scenarios.h"

#include <string.h>
#include <unistd.h>

#define TIMEOUT 1.0 /* of faults */

/* Large messages go in pieces: of prime size, so that no boundary fits. */
static const char *run_pieces(tr_comm *comm)
{
    tr_comm_mpi_set_chunk(comm, 1009);
    for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
        /* A million elements would be thousands of pieces at once, which is no test of ours. */
        const char *wrong = strcmp(scenario->name, "large") == 0 ? NULL : scenario->run(comm);
        if (wrong) return wrong;
    }
    return NULL;
}

static const char *run(tr_comm *comm, const char *what)
{
    return strcmp(what, "pieces") == 0 ? run_pieces(comm) : process_run(comm, what);
}

/* Rank 1 of a world that one never joins: the others must not wait for ever. */
static int stay_away(const struct tr_comm_settings *settings, int rank)
{
    tr_comm *comm;
    if (rank == 1) {
        process_nap(3 * TIMEOUT);
        _exit(0);
    }
    tr_status status = tr_comm_mpi_create(settings, &comm);
    process_say(NULL, status == TR_EPEER ? tr_error_message() : "unexpected success");
    _exit(status == TR_EPEER ? 0 : 1);
}

int main(int argc, char **argv)
{
    int rank, size;
    tr_comm *comm;
    const char *what = argc > 1 ? argv[1] : "scenarios";
    bool patient =
        strcmp(what, "scenarios") == 0 || strcmp(what, "pieces") == 0 || strcmp(what, "words") == 0;
    struct tr_comm_settings settings = {.timeout = patient ? 30 : TIMEOUT, .patience = 40};
    if (!tr_comm_mpi_world((const char *const *)environ, &rank, &size)) {
        process_say(NULL, "this process was not started by mpirun");
        return 2;
    }
    if (strcmp(what, "away") == 0) return stay_away(&settings, rank);
    tr_status status = tr_comm_mpi_create(&settings, &comm);
    if (status != TR_OK) {
        process_say(NULL, tr_error_message());
        _exit(3);
    }
    const char *wrong =
        rank == tr_comm_rank(comm) && size == tr_comm_size(comm) ? run(comm, what) : "another rank or size";
    if (wrong) {
        process_say(comm, wrong);
        tr_comm_abort(comm, wrong);
        _exit(1);
    }
    tr_comm_destroy(&comm);
    if (rank == 0) process_say(NULL, "all is well");
    if (tr_alloc_live() != 0) process_say(NULL, "memory was left behind");
    return 0;
}
