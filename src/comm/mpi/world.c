/* The environment variables by which launchers inform processes. */
#include "comm/transport.h"

#include "base/text/text.h"

#include <limits.h>
#include <string.h>

static bool find(const char *const *environment, const char *name, int *out)
{
    size_t length = strlen(name);
    for (; *environment; environment++) {
        int64_t value;
        if (strncmp(*environment, name, length) != 0 || (*environment)[length] != '=') continue;
        if (tr_text_int64(*environment + length + 1, &value) || value < 0 || value > INT_MAX) return false;
        *out = (int)value;
        return true;
    }
    return false;
}

bool tr_comm_mpi_world(const char *const *environment, int *rank, int *size)
{
    /* Open MPI's mpirun; srun, whose PMIx plugin gives the rank, and whose own variables give the size.
       SLURM also sets its variables for batch scripts, which are not ranks: so PMIx's variable is
       required. */
    static const char *const known[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (find(environment, known[i][0], rank) && find(environment, known[i][1], size) && *rank < *size)
            return true;
    return false;
}
