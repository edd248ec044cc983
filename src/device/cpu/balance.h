/* How much of an operation each member of a team takes.
 *
 * Processors of one machine differ in speed: some have large and small cores, on others a core also
 * works for another virtual machine. Where members take equal parts, all wait for the slowest. So the
 * members' times are measured, and the parts of the next operations follow them slowly. Nothing depends on
 * the parts but time.
 *
 * Parts change between operations only, by the device's thread.
 */
#ifndef TR_DEVICE_CPU_BALANCE_H
#define TR_DEVICE_CPU_BALANCE_H

#include "base/threads/team.h"

#include <stdint.h>

struct cpu_balance;

/* Equal parts for `size` members. Returned, destroy with cpu_balance_destroy(); NULL: no memory. */
struct cpu_balance *cpu_balance_create(int size);
void cpu_balance_destroy(struct cpu_balance *balance);

/* tr_team_run(). Where all members note their parts, their times move the parts of the next operations. */
void cpu_balance_run(struct cpu_balance *balance, tr_team *team, tr_team_function function, void *arguments);

/* Sets the parts, `size` positive numbers whose sum is 1, and keeps them: for tests. */
void cpu_balance_fix(struct cpu_balance *balance, const double *share);

/* The part [*begin, *end) of `count` items for the members [first, first + members) of those of
   [all_first, all_first + all_members), in multiples of `grain`; parts are contiguous and ascending. Equal
   members have what tr_team_chunk() gives. */
void cpu_balance_part(const struct cpu_balance *balance, int64_t count, int64_t grain, int first, int members,
                      int all_first, int all_members, int64_t *begin, int64_t *end);

/* Notes how much of the operation under way `member` took, between 0 and 1. From any thread. */
void cpu_balance_note(struct cpu_balance *balance, int member, double part);

#endif
