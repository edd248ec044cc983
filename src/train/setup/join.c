#include "train/setup/join.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "base/threads/team.h"
#include "base/text/text.h"
#include "base/threads/thread.h"
#include "comm/transport.h"
#include "train/setup/stop.h"

#include <stdio.h>
#include <string.h>

/* A larger factor is a mistake: a step would take days. */
#define SLOWEST 1e6

tr_status tr_train_settings_take(const struct tr_train_settings *given, struct tr_train_settings *out)
{
    static const struct tr_train_settings defaults = TR_TRAIN_SETTINGS_INIT;
    return tr_sized_take(given, &defaults, sizeof defaults, "TR_TRAIN_SETTINGS_INIT", out);
}

static struct tr_comm_settings limits_of(const struct tr_train_settings *settings)
{
    struct tr_comm_settings limits = TR_COMM_SETTINGS_INIT;
    if (settings->timeout > 0) limits.timeout = settings->timeout;
    if (limits.patience < limits.timeout) limits.patience = limits.timeout;
    if (settings->patience > 0) limits.patience = settings->patience;
    return limits;
}

tr_status tr_train_join(const struct tr_train_settings *settings, tr_comm **out)
{
    const char *transport = settings->transport;
    const struct tr_entry *entry = tr_transports.entries[0];
    struct tr_comm_settings limits = limits_of(settings);
    if (settings->stop) limits.stop = &settings->stop->asked;
    *out = NULL;
    size_t length = transport ? strcspn(transport, ":") : 0;
    if (transport) {
        char *name = tr_format("%.*s", (int)length, transport);
        if (!name) return TR_ENOMEM;
        tr_status status = tr_registry_get(&tr_transports, name, &entry);
        tr_free(name);
        if (status != TR_OK) return status;
    }
    const char *ticket = transport && transport[length] ? transport + length + 1 : NULL;
    return ((const struct tr_transport *)entry)->create(ticket, &limits, out);
}

/* One "RANK:FACTOR". */
static tr_status read_slowness(const char *item, int ranks, int64_t *rank, double *factor)
{
    char number[24];
    size_t length = strcspn(item, ":");
    bool fits = item[length] == ':' && length > 0 && length < sizeof number;
    if (fits) {
        memcpy(number, item, length);
        number[length] = '\0';
    }
    if (!fits || tr_text_int64(number, rank) || tr_text_double(item + length + 1, factor))
        return tr_fail(TR_EINVAL, "slow: \"%s\" is not a rank and a factor as in 1:5", item);
    if (*rank < 0 || *rank >= ranks)
        return tr_fail(TR_EINVAL, "slow: there is no rank %lld; the job has ranks 0 to %d", (long long)*rank,
                       ranks - 1);
    if (!(*factor >= 1 && *factor <= SLOWEST))
        return tr_fail(TR_EINVAL, "slow: rank %lld cannot be %g times slower; give 1 to %g", (long long)*rank,
                       *factor, SLOWEST);
    return TR_OK;
}

tr_status tr_train_slowness(const char *text, int rank, int ranks, double *factor)
{
    *factor = 1;
    if (!text) return TR_OK;
    char *copy = tr_strdup(text), *rest = copy;
    if (!copy) return TR_ENOMEM;
    tr_status status = TR_OK;
    while (rest && status == TR_OK) {
        int64_t named = 0;
        double times = 1;
        const char *item = strsep(&rest, ",");
        status = read_slowness(item, ranks, &named, &times);
        if (status == TR_OK && named == rank) *factor = times;
    }
    tr_free(copy);
    return status;
}

tr_status tr_train_share_processors(tr_comm *comm, const struct tr_train_settings *settings, int *threads)
{
    cpu_set_t own;
    tr_thread_processors(&own);
    int size = tr_comm_size(comm), sharing = 0, before = 0;
    cpu_set_t *all = tr_alloc_zero((size_t)size, sizeof *all);
    tr_status status = all ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        all[tr_comm_rank(comm)] = own;
        status = tr_comm_exchange(comm, all, sizeof *all, "processors");
    }
    /* A launcher may have given each rank its own processors, which are then not divided again. */
    for (int i = 0; status == TR_OK && i < tr_comm_local_size(comm); i++) {
        int rank = tr_comm_local(comm, i);
        if (!CPU_EQUAL(&all[rank], &own)) continue;
        sharing++;
        before += rank < tr_comm_rank(comm);
    }
    tr_free(all);
    if (status != TR_OK) return status;
    int count = CPU_COUNT(&own), each = count / sharing;
    *threads = settings->threads;
    if (*threads == 0) *threads = each < 1 ? 1 : each > TR_TEAM_MAX ? TR_TEAM_MAX : each;
    if (settings->bind) tr_thread_take_share(&own, before, sharing, *threads);
    return TR_OK;
}
