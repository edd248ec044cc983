#include "cli/launch/mpi_dir.h"

#include "base/fail.h"
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIND "launch"
/* The needs of Open MPI: 4 MiB in version 4 and 16 MiB in 5 for each process, and 8 MiB for all in 4.
   Without room, processes are ended by SIGBUS, or end before their start, which mpirun does not notice. */
#define BYTES_OF_EACH ((int64_t)16 << 20)
#define BYTES_OF_ALL  ((int64_t)16 << 20)

/* Of Open MPI 4 and 5: the files of mpirun, and those of the processes. */
static const char *const variables[CLI_MPI_DIR_VARIABLES] = {
    "OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base",
    "OMPI_MCA_btl_vader_backing_directory", /* the name in 4, which 5 knows, too */
};

static int64_t bytes_for(int processes)
{
    return BYTES_OF_ALL + processes * BYTES_OF_EACH;
}

tr_status cli_mpi_dir_make(int processes, struct cli_mpi_dir *dir)
{
    *dir = (struct cli_mpi_dir){.dir = TR_SCRATCH_DIR_NONE};
    TR_TRY(tr_scratch_dir_make(KIND, bytes_for(processes), &dir->dir));
    for (int i = 0; i < CLI_MPI_DIR_VARIABLES; i++)
        dir->exported[i] = !getenv(variables[i]) && setenv(variables[i], dir->dir.path, 1) == 0;
    return TR_OK;
}

void cli_mpi_dir_remove(struct cli_mpi_dir *dir)
{
    for (int i = 0; i < CLI_MPI_DIR_VARIABLES; i++)
        if (dir->exported[i]) unsetenv(variables[i]);
    tr_scratch_dir_remove(&dir->dir);
    *dir = (struct cli_mpi_dir){.dir = TR_SCRATCH_DIR_NONE};
}

void cli_mpi_dir_explain(int processes, char *text, size_t size)
{
    char there[TR_TEXT_NUMBER_SIZE], wanted[TR_TEXT_NUMBER_SIZE];
    const char *least = NULL;
    for (int i = 0; i < CLI_MPI_DIR_VARIABLES; i++) {
        const char *path = getenv(variables[i]);
        if (path && (!least || tr_scratch_dir_room(path) < tr_scratch_dir_room(least))) least = path;
    }
    if (!least || tr_scratch_dir_room(least) < 0) {
        snprintf(text, size, "where Open MPI keeps its files is not known");
        return;
    }
    snprintf(text, size, "Open MPI keeps files in %s, which has %s free, and may take %s for %d processes",
             least, tr_text_from_bytes(tr_scratch_dir_room(least), there),
             tr_text_from_bytes(bytes_for(processes), wanted), processes);
}
