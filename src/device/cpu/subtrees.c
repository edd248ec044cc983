#include "device/cpu/subtrees.h"

#include "device/cpu/sizes.h"

#include <stdbool.h>

/* Smaller parts of a subtree than one in so many stay with its member: they would need operands of their own.
 */
#define NEGLIGIBLE 12

/* The first row of a subtree, or all rows. */
static int64_t first_row(const struct subtrees *s, const struct tr_cut *cut, int subtree)
{
    const int64_t leaf = (int64_t)subtree * s->leaves;
    return cut->row[smaller(leaf, cut->count)];
}

/* ---- tiles ---- */

/* The place after `work` rows of tiles, of `units` for each row. */
static int place_of(const struct subtrees *s, const struct tr_cut *cut, int64_t units, int64_t work,
                    int64_t *unit)
{
    int subtree = s->count;
    while (subtree > 0 && first_row(s, cut, subtree) * units > work) subtree--;
    *unit = 0;
    if (subtree == s->count) return subtree;
    const int64_t begin = first_row(s, cut, subtree), rows = first_row(s, cut, subtree + 1) - begin;
    *unit = (work - begin * units + rows / 2) / rows;
    if (*unit * NEGLIGIBLE < units) *unit = 0;
    if ((units - *unit) * NEGLIGIBLE >= units) return subtree;
    *unit = 0;
    return subtree + 1;
}

struct subtree_tiles cpu_subtree_tiles(struct cpu_balance *balance, const struct subtrees *s,
                                       const struct tr_cut *cut, int64_t units, int member)
{
    const int64_t rows = cut->row[cut->count];
    struct subtree_tiles part = {0};
    int64_t begin, end;
    cpu_balance_part(balance, rows * units, 1, member, 1, 0, s->count, &begin, &end);
    if (member > 0) part.first = place_of(s, cut, units, begin, &part.begin);
    part.last = s->count;
    if (member + 1 < s->count) part.last = place_of(s, cut, units, end, &part.end);
    int64_t work = 0;
    for (int i = part.first; i <= part.last && i < s->count; i++)
        work += (first_row(s, cut, i + 1) - first_row(s, cut, i)) *
                ((i == part.last ? part.end : units) - (i == part.first ? part.begin : 0));
    if (rows > 0) cpu_balance_note(balance, member, (double)work / ((double)rows * (double)units));
    return part;
}

/* ---- rows ---- */

/* Where the rows of a member's second half begin. Members before it do twice their share of all rows, less
   the rows of their sums, which they do in any case. */
static int64_t rows_begin(const struct cpu_balance *balance, const struct subtrees *s,
                          const struct tr_cut *cut, int member)
{
    const int64_t rows = cut->row[cut->count];
    int64_t place = 0;
    for (int i = 1; i <= member; i++) {
        const int64_t own = first_row(s, cut, i);
        int64_t begin, end;
        cpu_balance_part(balance, rows, 1, i - 1, 1, 0, s->count, &begin, &end);
        const int64_t more = 2 * (end - own); /* of the members before i; negative: fewer */
        const bool negligible = larger(more, -more) * NEGLIGIBLE * s->count < rows;
        place = larger(place, smaller(negligible ? own : own + more, rows));
    }
    return place;
}

void cpu_subtree_rows(struct cpu_balance *balance, const struct subtrees *s, const struct tr_cut *cut,
                      int member, int64_t *begin, int64_t *end)
{
    const int64_t rows = cut->row[cut->count],
                  sums = first_row(s, cut, member + 1) - first_row(s, cut, member);
    *begin = rows_begin(balance, s, cut, member);
    *end = rows_begin(balance, s, cut, member + 1);
    if (rows > 0) cpu_balance_note(balance, member, (double)(sums + *end - *begin) / (2.0 * (double)rows));
}
