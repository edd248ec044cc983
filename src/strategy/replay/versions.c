/* Old parameters, as long as the log needs them.
 *
 * Invariant: a version is kept from when it is reached until the last contribution was computed that reads
 * it. A worker has one at a time (strategy/updates/log.h), so there are never more than workers.
 */
#include "strategy/replay/replay.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>

struct kept {
    int64_t version; /* -1: nothing, the memory is free */
    float *values;
};

struct replay_versions {
    int64_t floats, first, count; /* versions first to first + count - 1 */
    int64_t *last;                /* [count] the last record that reads a version, -1: none */
    struct kept *kept;            /* [places] */
    int64_t places;
};

/* Finds the last reader of each version. */
static void find_last(replay_versions *versions, const struct tr_update_log *log, int which, int of)
{
    struct tr_update_walk walk = {.log = log};
    struct tr_update_entry entry;
    for (int64_t i = 0; i < versions->count; i++) versions->last[i] = -1;
    while (tr_update_walk_next(&walk, &entry))
        if (entry.record->kind == TR_UPDATE_APPLIED && entry.record->worker % of == which)
            versions->last[entry.version - versions->first] = walk.next - 1;
}

tr_status replay_versions_create(const struct tr_update_log *log, int which, int of, int64_t floats,
                                 replay_versions **out)
{
    struct tr_update_figures figures;
    replay_versions *versions = *out = tr_alloc_zero(1, sizeof *versions);
    if (!versions) return TR_ENOMEM;
    tr_update_log_count(log, &figures);
    versions->floats = floats;
    versions->first = log->session[0].first;
    versions->count = figures.updates - versions->first + 1;
    versions->last = tr_alloc((size_t)versions->count, sizeof *versions->last);
    if (!versions->last) {
        replay_versions_destroy(out);
        return TR_ENOMEM;
    }
    find_last(versions, log, which, of);
    return TR_OK;
}

void replay_versions_destroy(replay_versions **handle)
{
    replay_versions *versions = *handle;
    if (!versions) return;
    for (int64_t i = 0; i < versions->places; i++) tr_free(versions->kept[i].values);
    tr_free(versions->kept);
    tr_free(versions->last);
    tr_free(versions);
    *handle = NULL;
}

static struct kept *find(const replay_versions *versions, int64_t version)
{
    for (int64_t i = 0; i < versions->places; i++)
        if (versions->kept[i].version == version) return &versions->kept[i];
    return NULL;
}

tr_status replay_versions_keep(replay_versions *versions, tr_variables *variables, int64_t version)
{
    if (versions->last[version - versions->first] < 0 || find(versions, version)) return TR_OK;
    struct kept *spare = find(versions, -1);
    if (!spare) {
        if (!tr_grow(&versions->kept, versions->places, sizeof *versions->kept)) return TR_ENOMEM;
        spare = &versions->kept[versions->places];
        spare->version = -1;
        spare->values = tr_alloc_aligned((size_t)versions->floats + 1, sizeof *spare->values);
        if (!spare->values) return TR_ENOMEM;
        versions->places++;
    }
    TR_TRY(tr_variables_store(variables, TR_ARENA_PARAMETERS, spare->values));
    spare->version = version;
    return TR_OK;
}

const float *replay_versions_of(const replay_versions *versions, int64_t version)
{
    const struct kept *kept = find(versions, version);
    assert(kept);
    return kept->values;
}

void replay_versions_leave(replay_versions *versions, int64_t version, int64_t record)
{
    struct kept *kept = find(versions, version);
    if (!kept || versions->last[version - versions->first] > record) return;
    kept->version = -1;
}
