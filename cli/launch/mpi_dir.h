/* Where Open MPI keeps its files on this host: they remain when it is killed, and it hangs if they have no
 * room. A directory of the launcher has room, and a later launch finds files that remain.
 */
#ifndef CLI_LAUNCH_MPI_DIR_H
#define CLI_LAUNCH_MPI_DIR_H

#include "base/scratch_dir.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_MPI_DIR_VARIABLES 3

struct cli_mpi_dir {
    struct tr_scratch_dir dir;
    bool exported[CLI_MPI_DIR_VARIABLES]; /* the variables that name it to Open MPI */
};

/* Makes it for so many processes and sets the variables in the environment, unless the user has set them.
   TR_EIO where there is no room. */
tr_status cli_mpi_dir_make(int processes, struct cli_mpi_dir *dir);
/* Removes it with all its files. */
void cli_mpi_dir_remove(struct cli_mpi_dir *dir);

/* The free room in the directories that Open MPI uses: "/dev/shm has 3 MiB free, and 2 processes
   need 48 MiB". */
void cli_mpi_dir_explain(int processes, char *text, size_t size);

#endif
