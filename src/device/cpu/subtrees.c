#include "device/cpu/subtrees.h"

#include "device/cpu/sizes.h"

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

/* Rows of the second half that a member does beyond those of its subtree; negative: that it leaves. */
static int64_t beyond(const struct cpu_balance *balance, const struct subtrees *s, const struct tr_cut *cut,
                      int member)
{
    const int64_t own = first_row(s, cut, member + 1) - first_row(s, cut, member);
    int64_t begin, end;
    cpu_balance_part(balance, cut->row[cut->count], 1, member, 1, 0, s->count, &begin, &end);
    return larger(2 * (end - begin - own), -own);
}

/* The same, 0 where all members are about equal. */
static int64_t lent(const struct cpu_balance *balance, const struct subtrees *s, const struct tr_cut *cut,
                    int member)
{
    int64_t most = 0;
    for (int i = 0; i < s->count; i++) most = larger(most, beyond(balance, s, cut, i));
    const bool negligible = most * NEGLIGIBLE * s->count < cut->row[cut->count];
    return negligible ? 0 : beyond(balance, s, cut, member);
}

struct subtree_rows cpu_subtree_rows(struct cpu_balance *balance, const struct subtrees *s,
                                     const struct tr_cut *cut, int member)
{
    const int64_t all = cut->row[cut->count], begin = first_row(s, cut, member),
                  end = first_row(s, cut, member + 1);
    struct subtree_rows rows = {.subtrees = s, .cut = cut, .balance = balance};
    int64_t left = 0;
    for (int i = 0; i < s->count; i++) {
        const int64_t more = lent(balance, s, cut, i);
        if (more < 0) left -= more;
        if (i < member) rows.from += larger(more, 0);
    }
    const int64_t more = lent(balance, s, cut, member);
    rows.kept = end + smaller(more, 0);
    rows.from = smaller(rows.from, left);
    rows.to = smaller(rows.from + larger(more, 0), left);
    if (all > 0)
        cpu_balance_note(balance, member,
                         (double)(end - begin + rows.kept - begin + rows.to - rows.from) /
                             (2.0 * (double)all));
    return rows;
}

bool cpu_subtree_rows_next(struct subtree_rows *rows, int64_t *begin, int64_t *end)
{
    for (; rows->from < rows->to && rows->subtree < rows->subtrees->count; rows->subtree++) {
        const int64_t left = -smaller(0, lent(rows->balance, rows->subtrees, rows->cut, rows->subtree));
        const int64_t stop = first_row(rows->subtrees, rows->cut, rows->subtree + 1);
        if (rows->from < rows->seen + left) {
            *begin = stop - left + rows->from - rows->seen;
            *end = smaller(stop, *begin + rows->to - rows->from);
            rows->from += *end - *begin;
            return true;
        }
        rows->seen += left;
    }
    return false;
}
