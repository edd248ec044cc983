/* A directory for what Open MPI keeps on this host: files in shared memory, which it forgets when it is
 * killed. In a directory of the launcher's own they are found again, by itself or, if it was killed, too, by
 * a later one.
 */
#ifndef CLI_LAUNCH_PLACE_H
#define CLI_LAUNCH_PLACE_H

#include <stdbool.h>

#define CLI_PLACE_VARIABLES 2

struct cli_place {
    char path[64];                  /* "": there is none */
    int lock;                       /* descriptor that holds it, or -1 */
    bool told[CLI_PLACE_VARIABLES]; /* which variables tell Open MPI about it */
};

/* Makes it and tells Open MPI by the environment, unless the user has told it other places; removes those
   that nobody holds any more. Without success Open MPI goes its own ways. */
void cli_place_make(struct cli_place *place);
/* Removes it with all that is there. */
void cli_place_remove(struct cli_place *place);

#endif
