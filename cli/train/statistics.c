#include "cli/train/statistics.h"

/* A process stands out when the others waited for it longer than this part of its computing time. */
#define STANDS_OUT 0.05

/* The one that computed and waited least. */
static void find_slowest(const struct tr_train_statistics *statistics, struct cli_statistics *out)
{
    int slowest = -1, others = 0;
    double computed = 0, waited = 0;
    for (int r = 0; r < statistics->ranks; r++) {
        const struct tr_train_rank *rank = &statistics->rank[r];
        if (rank->compute_seconds <= 0) continue; /* a server */
        if (slowest < 0 || rank->wait_seconds < statistics->rank[slowest].wait_seconds) slowest = r;
        computed += rank->compute_seconds;
        waited += rank->wait_seconds;
        others++;
    }
    out->slowest = -1;
    if (--others < 1) return;
    const struct tr_train_rank *rank = &statistics->rank[slowest];
    out->slowest_seconds = rank->compute_seconds;
    out->others_seconds = (computed - rank->compute_seconds) / others;
    out->others_waited = (waited - rank->wait_seconds) / others;
    bool slower = out->slowest_seconds > out->others_seconds;
    if (slower && out->others_waited - rank->wait_seconds > STANDS_OUT * out->slowest_seconds)
        out->slowest = slowest;
}

static void sum_staleness(const struct tr_train_statistics *statistics, struct cli_statistics *out)
{
    double sum = 0, count = 0;
    for (int i = 0; i < statistics->staleness_bins; i++) {
        if (statistics->staleness[i] == 0) continue;
        sum += (double)statistics->staleness[i] * i;
        count += (double)statistics->staleness[i];
        out->most_staleness = i;
    }
    out->mean_staleness = count > 0 ? sum / count : 0;
    out->more_staleness = out->most_staleness == statistics->staleness_bins - 1;
}

struct cli_statistics cli_statistics_of(const struct tr_train_statistics *statistics, double seconds)
{
    struct cli_statistics out = {0};
    double steps = statistics->steps > 0 ? (double)statistics->steps : 1;
    double time = seconds > 0 ? seconds * statistics->ranks : 1;
    for (int r = 0; r < statistics->ranks; r++) {
        out.sent += (double)statistics->rank[r].bytes_sent / steps;
        out.shared += (double)statistics->rank[r].bytes_shared / steps;
        out.computing += statistics->rank[r].compute_seconds / time;
        out.waiting += statistics->rank[r].wait_seconds / time;
    }
    find_slowest(statistics, &out);
    if (statistics->asynchronous) sum_staleness(statistics, &out);
    return out;
}

/* The greatest number of bins of staleness that are named; one more stands for the rest. */
#define BINS_SHOWN 6

/* "staleness mean 1.25, at most 3 (0: 25 %, 1: 50 %, 3: 25 %)": the fraction of gradients that missed so
   many updates. */
static void add_staleness(const struct tr_train_statistics *statistics, const struct cli_statistics *sum,
                          struct tr_text *text)
{
    double count = 0, above = 0;
    const char *between = "";
    for (int i = 0; i < statistics->staleness_bins; i++) {
        count += (double)statistics->staleness[i];
        if (i >= BINS_SHOWN) above += (double)statistics->staleness[i];
    }
    tr_text_addf(text, "staleness   mean %.2f, at most %d%s", sum->mean_staleness, sum->most_staleness,
                 sum->more_staleness ? " or more" : "");
    if (count == 0) return;
    tr_text_add(text, " (");
    for (int i = 0; i < statistics->staleness_bins && i < BINS_SHOWN; i++) {
        if (statistics->staleness[i] == 0) continue;
        tr_text_addf(text, "%s%d: %.0f %%", between, i, 100 * (double)statistics->staleness[i] / count);
        between = ", ";
    }
    if (above > 0) tr_text_addf(text, "%s%d or more: %.0f %%", between, BINS_SHOWN, 100 * above / count);
    tr_text_add(text, ")");
}

void cli_statistics_text(const struct tr_train_statistics *statistics, double seconds, struct tr_text *text)
{
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE];
    struct cli_statistics sum = cli_statistics_of(statistics, seconds);
    if (statistics->ranks < 2) return;
    tr_text_addf(text, "processes   %d, computing %.0f %% and waiting %.0f %% of their time\n",
                 statistics->ranks, 100 * sum.computing, 100 * sum.waiting);
    tr_text_addf(text, "moved       %s a step in messages, %s read in shared memory\n",
                 tr_text_from_bytes((int64_t)sum.sent, a), tr_text_from_bytes((int64_t)sum.shared, b));
    if (sum.slowest >= 0)
        tr_text_addf(text,
                     "waited for  rank %d: it computed for %s, the others for %s, and then waited for %s\n",
                     sum.slowest, tr_text_from_seconds(sum.slowest_seconds, a),
                     tr_text_from_seconds(sum.others_seconds, b), tr_text_from_seconds(sum.others_waited, c));
    if (!statistics->asynchronous) return;
    add_staleness(statistics, &sum, text);
    if (statistics->dropped > 0)
        tr_text_addf(text, "; %s gradients came too late", tr_text_from_count(statistics->dropped, a));
    tr_text_add(text, "\n");
}
