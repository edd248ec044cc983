/* Walking through a log, record by record. */
#include "strategy/updates/log.h"

/* Sessions that begin before the next record. */
static bool begin_sessions(struct tr_update_walk *walk)
{
    const struct tr_update_log *log = walk->log;
    bool begins = false;
    while (walk->session < log->sessions && log->session[walk->session].begin == walk->next) {
        walk->count = log->session[walk->session++].first;
        walk->taken = 0;
        begins = true;
    }
    return begins;
}

bool tr_update_walk_next(struct tr_update_walk *walk, struct tr_update_entry *out)
{
    const struct tr_update_log *log = walk->log;
    bool begins = begin_sessions(walk);
    if (walk->next >= log->records) return false;
    const struct tr_update *record = &log->record[walk->next++];
    const struct tr_update_session *session = &log->session[walk->session - 1];
    *out = (struct tr_update_entry){
        .record = record,
        .session = session,
        .version = walk->count - (int64_t)record->missed,
        .count = walk->count,
        .begins = begins,
        .first = walk->taken == 0,
    };
    if (record->kind != TR_UPDATE_APPLIED) return true;
    out->completes = ++walk->taken == session->parts;
    if (!out->completes) return true;
    walk->taken = 0;
    walk->count++;
    return true;
}

void tr_update_log_count(const struct tr_update_log *log, struct tr_update_figures *out)
{
    struct tr_update_walk walk = {.log = log};
    struct tr_update_entry entry;
    *out = (struct tr_update_figures){0};
    while (tr_update_walk_next(&walk, &entry)) {
        int64_t missed = entry.record->missed, last = TR_UPDATE_BINS - 1;
        out->dropped += entry.record->kind == TR_UPDATE_DROPPED;
        out->lost += entry.record->kind == TR_UPDATE_LOST;
        if (entry.record->kind != TR_UPDATE_APPLIED) continue;
        out->applied++;
        out->staleness[missed < last ? missed : last]++;
        out->missed += (double)missed;
        if (missed > out->most) out->most = missed;
    }
    out->updates = walk.count;
}
