#include "plan/world/traces.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

#define FLOPS 1e9 /* a second of a processor */

/* Counts messages with one peer and tag, to number them. */
struct count {
    int peer;
    int64_t tag;
    bool sends, used;
    int64_t started, ended;
};

struct rank_trace {
    struct tr_text text;
    double computed;     /* seconds not written yet */
    struct count *count; /* a hash table of `room`, a power of two */
    int64_t counts, room;
    bool failed;
};

struct tr_traces {
    char *directory;
    int ranks;
    struct tr_cluster cluster;
    struct rank_trace *rank;
    struct tr_sim_listener listener;
};

/* ---- numbers of messages ---- */

static struct count *slot_of(struct count *table, int64_t room, int peer, int64_t tag, bool sends)
{
    uint64_t hash = ((uint64_t)peer * 0x9e3779b97f4a7c15u) ^ ((uint64_t)tag * 0xc2b2ae3d27d4eb4fu) ^ sends;
    int64_t at = (int64_t)((hash ^ (hash >> 29)) & (uint64_t)(room - 1));
    while (table[at].used && (table[at].peer != peer || table[at].tag != tag || table[at].sends != sends))
        at = (at + 1) & (room - 1);
    return &table[at];
}

static bool widen(struct rank_trace *rank)
{
    int64_t room = rank->room > 0 ? 2 * rank->room : 64;
    struct count *table = tr_alloc_zero((size_t)room, sizeof *table);
    if (!table) return false;
    for (int64_t i = 0; i < rank->room; i++) {
        const struct count *old = &rank->count[i];
        if (old->used) *slot_of(table, room, old->peer, old->tag, old->sends) = *old;
    }
    tr_free(rank->count);
    rank->count = table;
    rank->room = room;
    return true;
}

static struct count *count_of(struct rank_trace *rank, int peer, int64_t tag, bool sends)
{
    if (2 * rank->counts >= rank->room && !widen(rank)) return NULL;
    struct count *count = slot_of(rank->count, rank->room, peer, tag, sends);
    if (!count->used) {
        *count = (struct count){.peer = peer, .tag = tag, .sends = sends, .used = true};
        rank->counts++;
    }
    return count;
}

/* Tag for message `index`; messages of a pair of ranks that are under way together get different ones. */
static int number_of(int64_t tag, int64_t index)
{
    return (int)((tag * 61 + index) & 0x3fffffff);
}

/* ---- lines ---- */

static struct rank_trace *trace_of(void *user, int rank)
{
    return &((struct tr_traces *)user)->rank[rank];
}

static void write_computing(struct rank_trace *trace, int rank)
{
    if (trace->computed > 0) tr_text_addf(&trace->text, "%d compute %.0f\n", rank, trace->computed * FLOPS);
    trace->computed = 0;
}

static void computes(void *user, int rank, double seconds)
{
    trace_of(user, rank)->computed += seconds;
}

static void start(void *user, int rank, int peer, int64_t tag, size_t bytes, bool sends)
{
    struct rank_trace *trace = trace_of(user, rank);
    struct count *count = count_of(trace, peer, tag, sends);
    if (!count) {
        trace->failed = true;
        return;
    }
    write_computing(trace, rank);
    tr_text_addf(&trace->text, "%d %s %d %d %zu\n", rank, sends ? "isend" : "irecv", peer,
                 number_of(tag, count->started++), bytes);
}

static void sends(void *user, int rank, int to, int64_t tag, size_t bytes)
{
    start(user, rank, to, tag, bytes, true);
}

static void receives(void *user, int rank, int from, int64_t tag, size_t bytes)
{
    start(user, rank, from, tag, bytes, false);
}

static void received(void *user, int rank, int from, int64_t tag)
{
    struct rank_trace *trace = trace_of(user, rank);
    struct count *count = count_of(trace, from, tag, false);
    if (!count) {
        trace->failed = true;
        return;
    }
    write_computing(trace, rank);
    tr_text_addf(&trace->text, "%d wait %d %d %d\n", rank, from, rank, number_of(tag, count->ended++));
}

/* ---- files ---- */

tr_status tr_traces_create(const char *directory, const char *strategy, int ranks,
                           const struct tr_cluster *cluster, struct tr_traces **out)
{
    struct tr_traces *traces = *out = tr_alloc_zero(1, sizeof *traces);
    char *name = tr_format("%s-%d", strategy, ranks);
    if (traces && name) {
        for (char *at = name; *at; at++)
            if (strchr("/,={}[] ", *at)) *at = '-';
        *traces = (struct tr_traces){.directory = tr_path_join(directory, name),
                                     .ranks = ranks,
                                     .cluster = *cluster,
                                     .rank = tr_alloc_zero((size_t)ranks, sizeof *traces->rank)};
        traces->listener = (struct tr_sim_listener){computes, sends, receives, received, traces};
    }
    tr_free(name);
    tr_status status = traces && traces->directory && traces->rank ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_make_directories(NULL, traces->directory);
    if (status != TR_OK) tr_traces_destroy(out);
    return status;
}

void tr_traces_destroy(struct tr_traces **handle)
{
    struct tr_traces *traces = *handle;
    if (!traces) return;
    for (int rank = 0; traces->rank && rank < traces->ranks; rank++) {
        tr_text_release(&traces->rank[rank].text);
        tr_free(traces->rank[rank].count);
    }
    tr_free(traces->rank);
    tr_free(traces->directory);
    tr_free(traces);
    *handle = NULL;
}

const struct tr_sim_listener *tr_traces_listener(struct tr_traces *traces)
{
    return &traces->listener;
}

/* Writes a text and releases it. */
static tr_status write_file(const struct tr_traces *traces, const char *name, struct tr_text *text)
{
    char *path = tr_path_join(traces->directory, name), *bytes = NULL;
    tr_status status = path ? tr_text_finish(text, &bytes) : TR_ENOMEM;
    if (status == TR_OK) status = tr_file_write_atomic(NULL, path, bytes, strlen(bytes));
    tr_text_release(text);
    tr_free(bytes);
    tr_free(path);
    return status;
}

static tr_status write_rank(struct tr_traces *traces, int rank)
{
    struct rank_trace *trace = &traces->rank[rank];
    struct tr_text whole = TR_TEXT_INIT;
    char name[32];
    write_computing(trace, rank);
    tr_text_addf(&whole, "%d init\n", rank);
    tr_text_add(&whole, trace->text.bytes ? trace->text.bytes : "");
    tr_text_addf(&whole, "%d finalize\n", rank);
    whole.failed = whole.failed || trace->failed || trace->text.failed;
    snprintf(name, sizeof name, "rank-%d.txt", rank);
    return write_file(traces, name, &whole);
}

/* Hosts with a separate link in each direction, and no other links between them. */
static void describe_platform(const struct tr_traces *traces, struct tr_text *text)
{
    const struct tr_path *remote = &traces->cluster.remote, *local = &traces->cluster.local;
    tr_text_addf(text,
                 "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
                 "\"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
                 "<cluster id=\"cluster\" prefix=\"host-\" suffix=\"\" radical=\"0-%d\" speed=\"%.0ff\" "
                 "core=\"%d\" bw=\"%.0fBps\" lat=\"%.9fs\" sharing_policy=\"SPLITDUPLEX\" "
                 "loopback_bw=\"%.0fBps\" loopback_lat=\"%.9fs\"/>\n</platform>\n",
                 traces->cluster.hosts - 1, FLOPS, traces->cluster.per_host, remote->rate,
                 remote->latency / 2, local->rate, local->latency);
}

tr_status tr_traces_finish(struct tr_traces *traces, double seconds)
{
    struct tr_text list = TR_TEXT_INIT, hosts = TR_TEXT_INIT, platform = TR_TEXT_INIT, time = TR_TEXT_INIT;
    tr_status status = TR_OK;
    for (int rank = 0; rank < traces->ranks && status == TR_OK; rank++) {
        status = write_rank(traces, rank);
        tr_text_addf(&list, "%s/rank-%d.txt\n", traces->directory, rank);
        tr_text_addf(&hosts, "host-%d\n", rank / traces->cluster.per_host % traces->cluster.hosts);
    }
    describe_platform(traces, &platform);
    if (status == TR_OK) status = write_file(traces, "traces.txt", &list);
    if (status == TR_OK) status = write_file(traces, "hosts.txt", &hosts);
    if (status == TR_OK) status = write_file(traces, "platform.xml", &platform);
    tr_text_addf(&time, "%.9f\n", seconds);
    if (status == TR_OK) status = write_file(traces, "seconds.txt", &time);
    tr_text_release(&time);
    tr_text_release(&list);
    tr_text_release(&hosts);
    tr_text_release(&platform);
    return status;
}
