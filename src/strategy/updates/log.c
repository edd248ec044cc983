#include "strategy/updates/log.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <string.h>

const char *const tr_update_kind_names[TR_UPDATE_KINDS] = {"applied", "dropped",  "lost",
                                                           "told",    "gathered", "drained"};
const char *const tr_update_mode_names[TR_UPDATE_MODES] = {"async", "bounded", "backup"};

/* Makes room for `more` items of `size` bytes after `count`. */
static tr_status make_room(void **items, int64_t count, int64_t more, size_t size, int64_t *room)
{
    if (count + more <= *room) return TR_OK;
    int64_t wanted = *room > 0 ? 2 * *room : 16;
    while (wanted < count + more) wanted *= 2;
    void *grown = tr_realloc(*items, (size_t)wanted, size);
    if (!grown) return TR_ENOMEM;
    *items = grown;
    *room = wanted;
    return TR_OK;
}

tr_status tr_update_log_begin(struct tr_update_log *log, const struct tr_update_session *session)
{
    void *items = log->session;
    TR_TRY(make_room(&items, log->sessions, 1, sizeof *session, &log->session_room));
    log->session = items;
    log->session[log->sessions] = *session;
    log->session[log->sessions++].begin = log->records;
    return TR_OK;
}

tr_status tr_update_log_add(struct tr_update_log *log, const struct tr_update *records, int64_t count)
{
    void *items = log->record;
    TR_TRY(make_room(&items, log->records, count, sizeof *records, &log->record_room));
    log->record = items;
    if (count > 0) memcpy(log->record + log->records, records, (size_t)count * sizeof *records);
    log->records += count;
    return TR_OK;
}

tr_status tr_update_log_mark(struct tr_update_log *log, int64_t step, const char *hash)
{
    void *items = log->state;
    TR_TRY(make_room(&items, log->states, 1, sizeof *log->state, &log->state_room));
    log->state = items;
    struct tr_update_state *state = &log->state[log->states++];
    *state = (struct tr_update_state){.at = log->records, .step = step};
    memcpy(state->hash, hash, sizeof state->hash);
    return TR_OK;
}

void tr_update_log_clear(struct tr_update_log *log)
{
    log->sessions = log->records = log->states = 0;
}

void tr_update_log_release(struct tr_update_log *log)
{
    tr_free(log->session);
    tr_free(log->record);
    tr_free(log->state);
    *log = (struct tr_update_log){0};
}

/* ---- checking ---- */

static tr_status check_session(const struct tr_update_session *session, int64_t index, const char *name)
{
    const char *wrong = NULL;
    int64_t got = 0;
    if (session->mode < 0 || session->mode >= TR_UPDATE_MODES)
        wrong = "its mode is one of async, bounded and backup, by number", got = session->mode;
    else if (session->workers < 1 || session->workers > TR_UPDATE_RANKS_MOST)
        wrong = "it has 1 to 4096 workers", got = session->workers;
    else if (session->servers < 1 || session->servers > TR_UPDATE_RANKS_MOST)
        wrong = "it has 1 to 4096 servers", got = session->servers;
    else if (session->parts < 1 || session->parts > session->workers)
        wrong = "1 to as many gradients as there are workers make an update", got = session->parts;
    else if (session->staleness < 0)
        wrong = "a gradient may miss 0 or more updates", got = session->staleness;
    else if (session->steps < 0 || session->steps > TR_UPDATE_STEPS_MOST)
        wrong = "it has 0 or more steps", got = session->steps;
    else if (session->first < 0 || session->first > session->steps)
        wrong = "it begins after 0 to all of its steps", got = session->first;
    else if (session->numerics < 0)
        wrong = "versions of the arithmetic count from 1", got = session->numerics;
    if (!wrong) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s: session %" PRId64 ": %s, but here is %" PRId64 "; the log is damaged",
                   name, index + 1, wrong, got);
}

/* State of a check. */
struct check {
    const char *name;
    struct tr_update_walk walk;
    int64_t free_at[TR_UPDATE_RANKS_MOST]; /* version from which on a worker may read; -1: it is lost */
};

static tr_status check_work(struct check *check, const struct tr_update_entry *entry)
{
    const struct tr_update *record = entry->record;
    const struct tr_update_session *session = entry->session;
    long long at = check->walk.next;
    int64_t free_at = check->free_at[record->worker];
    if (record->number < 0 || record->number / session->parts > TR_UPDATE_STEPS_MOST)
        return tr_fail(TR_EFORMAT, "%s: record %lld is of contribution %" PRId64 "; they count from 0",
                       check->name, at, record->number);
    if (free_at < 0)
        return tr_fail(TR_EFORMAT,
                       "%s: record %lld: worker %d hands in a gradient, but it was lost before; leave one of "
                       "the two out",
                       check->name, at, record->worker);
    if (entry->version < free_at)
        return tr_fail(TR_EFORMAT,
                       "%s: record %lld: worker %d read version %" PRId64
                       ", but was at work until version %" PRId64
                       "; a worker reads no version of before its last gradient",
                       check->name, at, record->worker, entry->version, free_at);
    if (record->kind == TR_UPDATE_APPLIED && record->missed > session->staleness)
        return tr_fail(TR_EFORMAT,
                       "%s: record %lld: a gradient is applied that missed %" PRIu32
                       " updates; its session allows %" PRId64,
                       check->name, at, record->missed, session->staleness);
    if (entry->completes && entry->count >= session->steps)
        return tr_fail(TR_EFORMAT, "%s: record %lld is update %" PRId64 " of %" PRId64 "; leave it out",
                       check->name, at, entry->count + 1, session->steps);
    check->free_at[record->worker] = entry->count + entry->completes;
    return TR_OK;
}

static tr_status check_record(struct check *check, const struct tr_update_entry *entry)
{
    const struct tr_update *record = entry->record;
    long long at = check->walk.next;
    if (record->kind >= TR_UPDATE_KINDS || record->zero != 0)
        return tr_fail(
            TR_EFORMAT,
            "%s: record %lld is of kind %d; there are %d, from 0; the log is damaged, or of a newer "
            "program",
            check->name, at, record->kind, TR_UPDATE_KINDS);
    if (record->worker >= entry->session->workers)
        return tr_fail(TR_EFORMAT, "%s: record %lld is of worker %d; its session has %d, from 0", check->name,
                       at, record->worker, entry->session->workers);
    if (tr_update_is_work(record)) return check_work(check, entry);
    if (record->missed != 0)
        return tr_fail(TR_EFORMAT, "%s: record %lld is \"%s\", and misses %" PRIu32 " updates, not 0",
                       check->name, at, tr_update_kind_names[record->kind], record->missed);
    if (record->kind == TR_UPDATE_LOST) {
        check->free_at[record->worker] = -1;
        return TR_OK;
    }
    if (record->number == entry->count) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: record %lld is \"%s\" after %" PRId64 " updates, but %" PRId64
                   " come before it; records are missing, or there are too many",
                   check->name, at, tr_update_kind_names[record->kind], record->number, entry->count);
}

/* The walk's present session; all but the first begin where the one before ends. */
static tr_status check_beginning(const struct check *check, int64_t session, int64_t count)
{
    const struct tr_update_session *begun = &check->walk.log->session[session];
    if (session == 0 || begun->first == count) return TR_OK;
    return tr_fail(TR_EFORMAT,
                   "%s: session %" PRId64 " begins after %" PRId64
                   " updates, the one before ends with %" PRId64,
                   check->name, session + 1, begun->first, count);
}

static tr_status check_all(struct check *check)
{
    const struct tr_update_log *log = check->walk.log;
    struct tr_update_entry entry;
    int64_t begun = 0;
    if (log->sessions == 0 || log->session[0].begin != 0)
        return tr_fail(TR_EFORMAT, "%s: the log does not begin with a session", check->name);
    for (int64_t i = 0; i < log->sessions; i++) TR_TRY(check_session(&log->session[i], i, check->name));
    for (;;) {
        int64_t count = check->walk.count;
        bool more = tr_update_walk_next(&check->walk, &entry);
        for (; begun < check->walk.session; begun++) {
            TR_TRY(check_beginning(check, begun,
                                   begun > 0 && log->session[begun - 1].begin == log->session[begun].begin
                                       ? log->session[begun - 1].first
                                       : count));
            for (int w = 0; w < TR_UPDATE_RANKS_MOST; w++) check->free_at[w] = log->session[begun].first;
        }
        if (!more) return TR_OK;
        TR_TRY(check_record(check, &entry));
    }
}

tr_status tr_update_log_check(const struct tr_update_log *log, const char *name)
{
    struct check *check = tr_alloc_zero(1, sizeof *check);
    if (!check) return TR_ENOMEM;
    check->name = name;
    check->walk.log = log;
    tr_status status = check_all(check);
    tr_free(check);
    return status;
}

tr_status tr_update_log_digest(const struct tr_update_log *log, struct tr_sha256_sum *out)
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    for (int64_t i = 0; i < log->sessions; i++) {
        const struct tr_update_session *session = &log->session[i];
        const int64_t number[] = {session->mode,      session->workers, session->servers, session->parts,
                                  session->staleness, session->first,   session->steps,   session->begin};
        for (size_t k = 0; k < sizeof number / sizeof number[0]; k++) tr_sha256_add_number(hash, number[k]);
    }
    for (int64_t i = 0; i < log->records; i++) {
        const struct tr_update *record = &log->record[i];
        tr_sha256_add_number(hash, record->number);
        tr_sha256_add_number(hash,
                             (int64_t)record->missed << 32 | (int64_t)record->worker << 8 | record->kind);
    }
    tr_status status = tr_sha256_take(hash, out);
    tr_sha256_destroy(&hash);
    return status;
}
