#include "plan/cluster.h"

#include "base/fail.h"

#include <math.h>

#define AT(field) offsetof(struct tr_cluster_options, field)
#define FIGURE(name, text)                                                                                   \
    {                                                                                                        \
        .key = #name, .type = TR_OPTION_DOUBLE, .offset = AT(name), .fallback = "0", .least = 0,             \
        .most = 1e6, .help = (text)                                                                          \
    }
const struct tr_option tr_cluster_option_table[] = {
    {.key = "hosts",
     .type = TR_OPTION_INT32,
     .offset = AT(hosts),
     .fallback = "1",
     .least = 1,
     .most = 4096,
     .help = "hosts at most"},
    {.key = "ranks_per_host",
     .type = TR_OPTION_INT32,
     .offset = AT(ranks_per_host),
     .fallback = "1",
     .least = 1,
     .most = 4096,
     .help = "processes of each"},
    {.key = "threads",
     .type = TR_OPTION_INT32,
     .offset = AT(threads),
     .fallback = "0",
     .least = 0,
     .most = 4096,
     .help = "of each process; 0: the processors of this machine shared out evenly"},
    {.key = "processors",
     .type = TR_OPTION_INT32,
     .offset = AT(processors),
     .fallback = "0",
     .least = 0,
     .most = 4096,
     .help = "of each host, which its processes share; 0: as many as they take"},
    FIGURE(link, "Gb/s of a host's link in each direction; 0: 10"),
    FIGURE(latency, "microseconds of the way between two hosts; 0: 20"),
    FIGURE(overhead, "microseconds that a message takes of each end's processor; 0: 5"),
    FIGURE(copying, "GB/s that a processor moves to or from the network; 0: 2"),
    FIGURE(local_rate, "GB/s between processes of a host; 0: as measured here, else 2"),
    FIGURE(local_latency, "microseconds between them; 0: as measured here, else 2"),
    FIGURE(local_overhead, "microseconds that a message between them takes of each processor; 0: 1"),
    FIGURE(local_waking, "microseconds more when the receiver sleeps; 0: as measured here, else 30"),
    FIGURE(memory, "GB/s at which a process adds numbers; 0: as measured here, else 8"),
};
const int32_t tr_cluster_option_count = TR_OPTION_COUNT(tr_cluster_option_table);

const struct tr_cluster tr_cluster_ordinary = {
    .hosts = 1,
    .per_host = 1,
    .threads = 1,
    .naps = true,
    .remote = {.latency = 20e-6,
               .rate = 1.25e9,
               .overhead = 5e-6,
               .copying = 2e9,
               .eager = 64 << 10,
               .one_way = 192 << 10},
    .local =
        {.latency = 2e-6, .rate = 2e9, .overhead = 1e-6, .copying = 2e9, .waking = 30e-6, .eager = 256 << 10},
    .memory = 8e9,
};

tr_status tr_cluster_read(const char *path, struct tr_cluster_options *out)
{
    tr_config *root;
    TR_TRY(tr_config_read(path, &root));
    tr_status status =
        tr_options_read(tr_cluster_option_table, tr_cluster_option_count, root, "cluster", out);
    tr_config_destroy(&root);
    return status;
}

static void take(double given, double unit, double *out)
{
    if (given > 0) *out = given * unit;
}

void tr_cluster_take(const struct tr_cluster_options *options, struct tr_cluster *out)
{
    out->hosts = options->hosts;
    out->per_host = options->ranks_per_host;
    if (options->threads > 0) out->threads = options->threads;
    if (options->processors > 0) out->processors = options->processors;
    take(options->link, 1e9 / 8, &out->remote.rate);
    take(options->latency, 1e-6, &out->remote.latency);
    take(options->overhead, 1e-6, &out->remote.overhead);
    take(options->copying, 1e9, &out->remote.copying);
    take(options->local_rate, 1e9, &out->local.rate);
    take(options->local_rate, 1e9, &out->local.copying);
    take(options->local_latency, 1e-6, &out->local.latency);
    take(options->local_overhead, 1e-6, &out->local.overhead);
    take(options->local_waking, 1e-6, &out->local.waking);
    take(options->memory, 1e9, &out->memory);
}

int tr_cluster_first_rank(const struct tr_cluster *cluster, int ranks, int host)
{
    int room = cluster->hosts * cluster->per_host, first = host * cluster->per_host;
    if (ranks <= room) return first < ranks ? first : ranks;
    int more = ranks - room, each = more / cluster->hosts, rest = more % cluster->hosts;
    return first + host * each + (host < rest ? host : rest);
}
