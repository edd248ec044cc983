/* A burn-in: each processor that this process may use, and each device that needs a driver, trains the
 * same small job over and over. Places do not wait for each other, so that all are under load at once; what
 * one of them computes wrongly is its own. */
#include "verify/burn_in.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "base/threads/thread.h"
#include "device/device.h"
#include "trireme/receipt.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct site {
    struct burn *burn;
    char name[80];   /* "processor 3", "opencl:0" */
    char device[80]; /* that it computes with */
    int processor;   /* index among those of the process; -1: any */
    pthread_t thread;
    bool started;
    int64_t rounds, wrong;
    char hash[TR_SHA256_TEXT]; /* of the first training with a wrong hash */
    tr_status status;          /* of a training that could not be carried out */
    char message[TR_MESSAGE_SIZE];
};

struct burn {
    const struct tr_burn_in_settings *settings;
    double end;
    atomic_bool ended;
    tr_source *data;
    cpu_set_t processors;
    struct site *site; /* [count] */
    int count;
};

/* ---- a site ---- */

static bool goes_on(const struct site *site)
{
    return site->status == TR_OK && !site->burn->ended &&
           (site->rounds == 0 || tr_clock_seconds() < site->burn->end);
}

static void *work(void *site_)
{
    struct site *site = site_;
    const struct burn *burn = site->burn;
    char hash[TR_SHA256_TEXT];
    if (site->processor >= 0) tr_thread_keep_to(&burn->processors, site->processor, site->processor + 1);
    while (goes_on(site)) {
        site->status = burn_in_run(burn->data, site->device, burn->settings->program_cache, hash);
        if (site->status != TR_OK) {
            snprintf(site->message, sizeof site->message, "%s", tr_error_message());
            break;
        }
        site->rounds++;
        if (strcmp(hash, burn_in_hash) == 0) continue;
        if (site->wrong++ == 0) memcpy(site->hash, hash, sizeof hash);
    }
    return NULL;
}

/* ---- which sites ---- */

/* The system's number of processor `index` of a set. */
static int number_of(const cpu_set_t *set, int index)
{
    int number = 0;
    while (number < CPU_SETSIZE && (!CPU_ISSET(number, set) || index-- > 0)) number++;
    return number;
}

static tr_status add_site(struct burn *burn, const char *device, int processor)
{
    if (!tr_grow(&burn->site, burn->count, sizeof *burn->site)) return TR_ENOMEM;
    struct site *site = &burn->site[burn->count++];
    *site = (struct site){.processor = processor};
    snprintf(site->device, sizeof site->device, "%s", device);
    if (processor < 0)
        snprintf(site->name, sizeof site->name, "%s", device);
    else
        snprintf(site->name, sizeof site->name, "processor %d", number_of(&burn->processors, processor));
    return TR_OK;
}

/* All of a kind of devices that need a driver. */
static tr_status add_kind(struct burn *burn, const struct tr_device_kind *kind)
{
    char facts[256], name[80];
    for (int number = 0; kind->describe && !kind->resolve; number++) {
        tr_status status = kind->describe(number, facts, sizeof facts);
        if (status == TR_ENOMEM) return status;
        if (status == TR_ENOTFOUND) return TR_OK;
        snprintf(name, sizeof name, "%s:%d", kind->name, number);
        if (status == TR_OK) TR_TRY(add_site(burn, name, -1));
    }
    return TR_OK;
}

static tr_status find_sites(struct burn *burn)
{
    const struct tr_burn_in_settings *settings = burn->settings;
    tr_thread_processors(&burn->processors);
    for (int i = 0; i < CPU_COUNT(&burn->processors); i++) TR_TRY(add_site(burn, "cpu", i));
    for (int i = 0; i < settings->device_count; i++) TR_TRY(add_site(burn, settings->devices[i], -1));
    for (int i = 0; settings->device_count == 0 && tr_device_kinds.entries[i]; i++)
        TR_TRY(add_kind(burn, (const struct tr_device_kind *)tr_device_kinds.entries[i]));
    return TR_OK;
}

/* ---- together ---- */

static void wait_for_all(struct burn *burn)
{
    for (int i = 0; i < burn->count; i++)
        if (burn->site[i].started) pthread_join(burn->site[i].thread, NULL);
}

static tr_status start_all(struct burn *burn)
{
    for (int i = 0; i < burn->count; i++) {
        struct site *site = &burn->site[i];
        site->burn = burn;
        int error = tr_thread_start(&site->thread, work, site);
        site->started = error == 0;
        if (site->started) continue;
        burn->ended = true;
        return tr_fail(TR_EIO, "a thread for %s could not be started: %s", site->name, strerror(error));
    }
    return TR_OK;
}

static void tell(const struct site *site, tr_burn_in_listener listener, void *user)
{
    const struct tr_burn_in_event event = {
        .size = sizeof event,
        .place = site->name,
        .rounds = site->rounds,
        .wrong = site->wrong,
        .hash = site->hash,
        .failure = site->message,
    };
    if (listener) listener(user, &event);
}

tr_status tr_burn_in(const struct tr_burn_in_settings *given, tr_burn_in_listener listener, void *user,
                     bool *good)
{
    static const struct tr_burn_in_settings defaults = TR_BURN_IN_SETTINGS_INIT;
    struct tr_burn_in_settings settings;
    struct burn burn = {.settings = &settings};
    *good = false;
    TR_TRY(tr_sized_take(given, &defaults, sizeof settings, "TR_BURN_IN_SETTINGS_INIT", &settings));
    if (!(settings.seconds >= 0))
        return tr_fail(TR_EINVAL, "a burn-in of %g seconds; give 0 or more", settings.seconds);
    tr_status status = burn_in_data(&burn.data);
    if (status == TR_OK) status = find_sites(&burn);
    burn.end = tr_clock_seconds() + settings.seconds;
    if (status == TR_OK) status = start_all(&burn);
    wait_for_all(&burn);
    *good = status == TR_OK;
    for (int i = 0; status == TR_OK && i < burn.count; i++) {
        *good = *good && burn.site[i].wrong == 0 && burn.site[i].status == TR_OK;
        tell(&burn.site[i], listener, user);
    }
    tr_source_close(&burn.data);
    tr_free(burn.site);
    return status;
}
