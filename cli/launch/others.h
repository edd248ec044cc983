/* Processes of a job on this host that are not the launcher's children, known from their notes. Each is
 * held by a descriptor, so that another process that gets the same number is never signalled.
 */
#ifndef CLI_LAUNCH_OTHERS_H
#define CLI_LAUNCH_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_other;

/* Begins as zeros. */
struct cli_others {
    struct cli_other *item;
    int count;
};

/* Adds a process by the number in its note, if it is on this host and belongs to this launcher: a process
   of another host or of another name space may have the same number here. */
void cli_others_add(struct cli_others *others, int64_t id, const char *token);
/* Notes that it has confirmed a stop. */
void cli_others_heeds(struct cli_others *others, int64_t id);
/* Signals them; `deaf`: only those that have not confirmed a stop. */
void cli_others_signal(const struct cli_others *others, int number, bool deaf);
/* How many of them run. */
int cli_others_live(const struct cli_others *others);
void cli_others_release(struct cli_others *others);

#endif
