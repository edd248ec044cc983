#include "base/numbers/tree.h"

#include <stddef.h>

static int cover(int64_t first, int64_t last, int64_t begin, int64_t end, int64_t *bounds, int nodes)
{
    if (begin >= last || end <= first) return nodes;
    if (begin <= first && last <= end) {
        bounds[nodes] = first;
        bounds[nodes + 1] = last;
        return nodes + 1;
    }
    int64_t left = 1;
    while (left * 2 < last - first) left *= 2;
    nodes = cover(first, first + left, begin, end, bounds, nodes);
    return cover(first + left, last, begin, end, bounds, nodes);
}

int tr_tree_cover(int64_t leaves, int64_t begin, int64_t end, int64_t *bounds)
{
    bounds[0] = begin;
    return begin < end ? cover(0, leaves, begin, end, bounds, 0) : 0;
}

/* The multiple in [least, most] of the largest possible power of two; of several, the one nearest to
   `even`. */
static int64_t roundest(int64_t least, int64_t most, int64_t even)
{
    int64_t grain = 1;
    while (most / (2 * grain) > (least - 1) / (2 * grain)) grain *= 2;
    int64_t near = (even + grain / 2) / grain * grain;
    if (near < least) near = (least + grain - 1) / grain * grain;
    return near > most ? most / grain * grain : near;
}

static int64_t count_nodes(int64_t leaves, int64_t parts, const int64_t *bound)
{
    int64_t nodes = 0, cut[2 * TR_TREE_DEPTH + 1];
    for (int64_t i = 0; i < parts; i++) nodes += tr_tree_cover(leaves, bound[i], bound[i + 1], cut);
    return nodes;
}

static double speed_of(const double *speed, int64_t part)
{
    return speed ? speed[part] : 1;
}

/* The most leaves that a part computes within `time`. Products would only be approximate; the exact
   criterion is the quotient, as `time` is one. */
static int64_t most_in(double time, double speed, int64_t leaves)
{
    double about = time * speed;
    int64_t most = about < (double)leaves ? (int64_t)about : leaves;
    while (most < leaves && (double)(most + 1) / speed <= time) most++;
    while (most > 1 && (double)most / speed > time) most--;
    return most;
}

/* Moves the bounds of a cut to round numbers, as far as no part then takes longer than the slowest does.
   `speed` NULL: equal speeds. */
static void round_cut(int64_t leaves, int64_t parts, const double *speed, int64_t *bound)
{
    int64_t least = leaves >= parts ? 1 : 0, following = 0;
    double longest = 0;
    for (int64_t i = 0; i < parts; i++) {
        double time = (double)(bound[i + 1] - bound[i]) / speed_of(speed, i);
        if (time > longest) longest = time;
    }
    for (int64_t i = 0; i < parts; i++) following += most_in(longest, speed_of(speed, i), leaves);
    for (int64_t i = 1; i < parts; i++) {
        int64_t most = most_in(longest, speed_of(speed, i - 1), leaves);
        following -= most; /* the most that the parts from here on can take; each takes at least `least` */
        int64_t low = leaves - following, high = leaves - (parts - i) * least;
        if (low < bound[i - 1] + least) low = bound[i - 1] + least;
        if (high > bound[i - 1] + most) high = bound[i - 1] + most;
        bound[i] = low <= 0 ? 0 : roundest(low, high, bound[i]);
    }
}

static void cut_evenly(int64_t leaves, int64_t parts, int64_t *bound)
{
    for (int64_t i = 0; i <= parts; i++) bound[i] = tr_cut(leaves, parts, i);
}

/* One leaf for each part; each further leaf goes to the part that completes it first, the first such part. */
static void cut_greedily(int64_t leaves, int64_t parts, const double *speed, int64_t *bound)
{
    int64_t *count = bound + 1;
    bound[0] = 0;
    for (int64_t i = 0; i < parts; i++) count[i] = 1;
    for (int64_t left = leaves - parts; left > 0; left--) {
        int64_t soonest = 0;
        for (int64_t i = 1; i < parts; i++)
            if ((double)(count[i] + 1) / speed[i] < (double)(count[soonest] + 1) / speed[soonest])
                soonest = i;
        count[soonest]++;
    }
    for (int64_t i = 0; i < parts; i++) bound[i + 1] += bound[i];
}

void tr_tree_cut(int64_t leaves, int64_t parts, int64_t *bound)
{
    cut_evenly(leaves, parts, bound);
    int64_t even = count_nodes(leaves, parts, bound);
    round_cut(leaves, parts, NULL, bound);
    if (count_nodes(leaves, parts, bound) > even) cut_evenly(leaves, parts, bound);
}

void tr_tree_cut_by_speed(int64_t leaves, int64_t parts, const double *speed, int64_t *bound)
{
    cut_greedily(leaves, parts, speed, bound);
    int64_t plain = count_nodes(leaves, parts, bound);
    round_cut(leaves, parts, speed, bound);
    if (count_nodes(leaves, parts, bound) > plain) cut_greedily(leaves, parts, speed, bound);
}
