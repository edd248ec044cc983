/* Where Open MPI keeps its files on this host: it forgets them when it is killed, and hangs where they have
 * no room. In a directory of the launcher's own there is room, and what is left is found by a later launch.
 */
#ifndef CLI_LAUNCH_MPI_DIR_H
#define CLI_LAUNCH_MPI_DIR_H

#include "base/scratch_dir.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_MPI_DIR_VARIABLES 3

struct cli_mpi_dir {
    struct tr_scratch_dir dir;
    bool exported[CLI_MPI_DIR_VARIABLES]; /* which variables tell Open MPI about it */
};

/* Makes it for so many processes and tells Open MPI by the environment, unless the user has told it others.
   TR_EIO where there is no room. */
tr_status cli_mpi_dir_make(int processes, struct cli_mpi_dir *dir);
/* Removes it with all that is there. */
void cli_mpi_dir_remove(struct cli_mpi_dir *dir);

/* The free room in the directories that Open MPI uses: "/dev/shm has 3 MiB free, and 2 processes
   need 48 MiB". */
void cli_mpi_dir_explain(int processes, char *text, size_t size);

#endif
