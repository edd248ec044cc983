/* Where Open MPI keeps its files on this host: it forgets them when it is killed, and hangs where they have
 * no room. In a place of the launcher's own there is room, and what is left is found by a later launch.
 */
#ifndef CLI_LAUNCH_PLACE_H
#define CLI_LAUNCH_PLACE_H

#include "base/place.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_PLACE_VARIABLES 3

struct cli_place {
    struct tr_place place;
    bool told[CLI_PLACE_VARIABLES]; /* which variables tell Open MPI about it */
};

/* Makes it for so many processes and tells Open MPI by the environment, unless the user has told it other
   places. TR_EIO where there is no room. */
tr_status cli_place_make(int processes, struct cli_place *place);
/* Removes it with all that is there. */
void cli_place_remove(struct cli_place *place);

/* What is known of the room in the directories that Open MPI uses: "/dev/shm has 3 MiB free, and 2 processes
   need 48 MiB". */
void cli_place_explain(int processes, char *text, size_t size);

#endif
