/* Launches that repeat in every step are recorded as lists, each enqueued as one command.
 *
 * The beginning of a step is not known here. The launches between two other commands (copies, marks) are a
 * stretch; long ones are cut. A stretch that has occurred often enough is recorded as a list. Where stretches
 * have the same kernels with other arguments, as in steps over texts of unequal lengths, a list is recorded
 * that follows: it is changed before it is enqueued (kept.h). Launches that begin like a list are held back
 * while they continue like it, and become one command when the list is complete. When they differ from it,
 * they are enqueued one by one. So the device gets the same launches in the same order, with lists or
 * without.
 *
 * Invariants: launches held back are enqueued before any other command. A list that is enqueued equals its
 * launches in every argument, and uses only blocks that exist: freeing a block removes fixed lists that use
 * it. They are freed when no command is unfinished.
 */
#include "base/alloc.h"
#include "device/gpu/lists/kept.h"

#include <string.h>

static void begin_stretch(struct gpu_lists *lists)
{
    lists->count = lists->arguments = lists->held = lists->listed = 0;
    lists->changed = false;
    lists->guess = NULL;
}

/* Counts a stretch; true, and the count begins anew, at occurrence number `often`. */
static bool came_often(struct gpu_stretches *stretches, uint64_t hash, int launches, int often)
{
    for (int i = 0; i < GPU_SEEN; i++) {
        struct gpu_seen *seen = &stretches->seen[i];
        if (seen->hash != hash || seen->launches != launches) continue;
        if (++seen->times < often) return false;
        *seen = (struct gpu_seen){0};
        return true;
    }
    stretches->seen[stretches->next] = (struct gpu_seen){hash, launches, 1};
    stretches->next = (stretches->next + 1) % GPU_SEEN;
    return false;
}

/* Records the stretch, which was not enqueued as an equal list, if it has occurred often enough. */
static void learn(struct gpu *gpu)
{
    struct gpu_lists *lists = gpu->lists;
    int last = lists->count - 1;
    if (lists->count < 2 || lists->refused) return;
    if (came_often(&lists->same, lists->hash[last], lists->count, GPU_OFTEN))
        gpu_lists_record(gpu, false);
    else if (!lists->rigid && lists->listed < lists->count &&
             came_often(&lists->alike, lists->shape[last], lists->count, GPU_ALIKE))
        gpu_lists_record(gpu, true);
}

/* ---- enqueuing ---- */

/* Enqueues the launches held back. */
static tr_status enqueue_held(struct gpu *gpu)
{
    struct gpu_lists *lists = gpu->lists;
    tr_status status = TR_OK;
    bool listed = false;
    int done = 0;
    if (lists->held == 0) return TR_OK;
    struct gpu_list *list =
        lists->guess && lists->guess->count == lists->held ? lists->guess : gpu_lists_find_beginning(lists);
    if (list) status = gpu_lists_enqueue(gpu, list, &listed);
    if (listed) lists->listed = done = list->count;
    for (; done < lists->held && status == TR_OK; done++)
        status = gpu->api->launch(gpu->session, &lists->launch[done]);
    lists->held = 0;
    lists->guess = NULL;
    return status;
}

tr_status gpu_lists_end(struct gpu *gpu)
{
    struct gpu_lists *lists = gpu->lists;
    if (!lists || (lists->count == 0 && lists->failure.status == TR_OK)) return TR_OK;
    tr_status status = TR_OK;
    if (lists->failure.status != TR_OK) {
        status = tr_failure_restore(&lists->failure);
        lists->failure.status = TR_OK;
    } else {
        status = enqueue_held(gpu);
    }
    if (status == TR_OK && (lists->listed < lists->count || lists->changed)) learn(gpu);
    begin_stretch(lists);
    return status;
}

static void count_launch(struct gpu_lists *lists, const struct gpu_launch *launch)
{
    struct gpu_launch *own = &lists->launch[lists->count];
    struct gpu_argument *arguments = &lists->argument[lists->arguments];
    *own = *launch;
    own->event = NULL;
    own->arguments = arguments;
    memcpy(arguments, launch->arguments, (size_t)launch->count * sizeof *arguments);
    lists->arguments += launch->count;
    lists->count++;
    gpu_lists_hash(lists);
}

/* Whether the stretch, none of which is enqueued, may still become a list. */
static bool may_become_list(struct gpu_lists *lists)
{
    bool goes_on = lists->guess && gpu_list_takes(lists, lists->guess, lists->count - 1);
    if (!goes_on) lists->guess = gpu_lists_find(lists);
    return lists->guess;
}

tr_status gpu_lists_launch(struct gpu *gpu, const struct gpu_launch *launch)
{
    struct gpu_lists *lists = gpu->lists;
    if (!lists) return gpu->api->launch(gpu->session, launch);
    count_launch(lists, launch);
    tr_status status = TR_OK;
    bool whole = lists->held == lists->count - 1; /* nothing of the stretch is enqueued */
    if (whole && may_become_list(lists)) {
        if (++lists->held == lists->guess->count) status = enqueue_held(gpu);
    } else {
        status = enqueue_held(gpu);
        if (status == TR_OK) status = gpu->api->launch(gpu->session, launch);
    }
    if (status != TR_OK) begin_stretch(lists);
    return status == TR_OK && lists->count == GPU_STRETCH ? gpu_lists_end(gpu) : status;
}

/* ---- what lists depend on ---- */

void gpu_lists_forget(struct gpu *gpu, const void *block)
{
    struct gpu_lists *lists = gpu->lists;
    struct tr_failure how;
    bool waited = false;
    if (!lists) return;
    tr_failure_keep(&how, TR_OK);
    tr_status status = gpu_lists_end(gpu);
    if (status != TR_OK) tr_failure_keep(&lists->failure, status);
    for (int i = lists->kept_count - 1; i >= 0; i--) {
        lists->kept[i].stale = lists->kept[i].follows;
        if (!gpu_list_uses(&lists->kept[i], block)) continue;
        if (!waited) (void)gpu->api->wait(gpu->session); /* the next command reports a failure */
        waited = true;
        gpu_lists_drop(gpu, i);
    }
    (void)tr_failure_restore(&how);
}

void gpu_lists_release(struct gpu *gpu)
{
    if (!gpu->lists) return;
    while (gpu->lists->kept_count > 0) gpu_lists_drop(gpu, gpu->lists->kept_count - 1);
    tr_free(gpu->lists);
    gpu->lists = NULL;
}

void gpu_lists_create(struct gpu *gpu)
{
    bool follow = false;
    if (!gpu->api->build_list) return;
    gpu->lists = tr_alloc_zero(1, sizeof *gpu->lists);
    if (!gpu->lists) return;
    gpu->lists->rigid = !gpu->api->change_list;
    if (!gpu_lists_try(gpu, &follow))
        gpu_lists_release(gpu);
    else
        gpu->lists->rigid = !follow;
}
