/* Recorded lists: finding, changing, enqueuing and freeing them. */
#include "device/gpu/lists/kept.h"

#include "base/alloc.h"

#include <string.h>

/* ---- comparing ---- */

static uint64_t hash_of(uint64_t hash, const struct gpu_launch *launch)
{
    hash = gpu_mix(hash, (uintptr_t)launch->kernel);
    for (int i = 0; i < 3; i++) hash = gpu_mix(gpu_mix(hash, launch->groups[i]), launch->first[i]);
    for (int i = 0; i < launch->count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        uint64_t value = (uintptr_t)argument->block;
        if (argument->size) memcpy(&value, argument->value, sizeof value);
        hash = gpu_mix(hash, value);
    }
    return hash;
}

static uint64_t shape_of(uint64_t hash, const struct gpu_launch *launch)
{
    hash = gpu_mix(gpu_mix(hash, (uintptr_t)launch->kernel), launch->threads);
    for (int i = 0; i < 3; i++) hash = gpu_mix(hash, launch->first[i]);
    return hash;
}

void gpu_lists_hash(struct gpu_lists *lists)
{
    int last = lists->count - 1;
    const struct gpu_launch *launch = &lists->launch[last];
    lists->hash[last] = hash_of(last > 0 ? lists->hash[last - 1] : 0, launch);
    lists->shape[last] = shape_of(last > 0 ? lists->shape[last - 1] : 0, launch);
}

/* Launches of the same kernel, and so with arguments of the same sizes. The first group cannot be changed. */
static bool alike(const struct gpu_launch *a, const struct gpu_launch *b)
{
    return a->kernel == b->kernel && a->count == b->count && a->threads == b->threads &&
           memcmp(a->first, b->first, sizeof a->first) == 0;
}

static bool same(const struct gpu_launch *a, const struct gpu_launch *b)
{
    if (!alike(a, b) || memcmp(a->groups, b->groups, sizeof a->groups) != 0) return false;
    for (int i = 0; i < a->count; i++) {
        const struct gpu_argument *left = &a->arguments[i], *right = &b->arguments[i];
        if (left->block != right->block || left->size != right->size ||
            memcmp(left->value, right->value, sizeof left->value) != 0)
            return false;
    }
    return true;
}

bool gpu_list_takes(const struct gpu_lists *lists, const struct gpu_list *list, int index)
{
    if (index >= list->count) return false;
    return (list->follows ? alike : same)(&list->launches[index], &lists->launch[index]);
}

/* Whether the first `count` launches of the stretch may be those of the list. */
static bool agrees(const struct gpu_lists *lists, const struct gpu_list *list, int count)
{
    if (count > list->count || (list->follows && lists->rigid)) return false;
    const uint64_t *own = list->follows ? list->shapes : list->hashes,
                   *of_all = list->follows ? lists->shape : lists->hash;
    if (own[count - 1] != of_all[count - 1]) return false;
    for (int i = count - 1; i >= 0; i--)
        if (!gpu_list_takes(lists, list, i)) return false;
    return true;
}

/* The longer list is better, and of equally long ones a fixed list. */
static bool is_better(const struct gpu_list *list, const struct gpu_list *best)
{
    if (!best || list->count != best->count) return !best || list->count > best->count;
    return best->follows && !list->follows;
}

struct gpu_list *gpu_lists_find(struct gpu_lists *lists)
{
    struct gpu_list *best = NULL;
    for (int i = 0; i < lists->kept_count; i++) {
        struct gpu_list *list = &lists->kept[i];
        if (is_better(list, best) && agrees(lists, list, lists->count)) best = list;
    }
    return best;
}

struct gpu_list *gpu_lists_find_beginning(struct gpu_lists *lists)
{
    struct gpu_list *best = NULL;
    for (int i = 0; i < lists->kept_count; i++) {
        struct gpu_list *list = &lists->kept[i];
        if (list->count <= lists->held && is_better(list, best) && agrees(lists, list, list->count))
            best = list;
    }
    return best;
}

/* ---- enqueuing ---- */

/* Makes launch `index` of a list that follows equal to the stretch's. */
static tr_status change(struct gpu *gpu, struct gpu_list *list, int index)
{
    struct gpu_launch *own = &list->launches[index];
    const struct gpu_launch *launch = &gpu->lists->launch[index];
    TR_TRY(gpu->api->change_list(gpu->session, list->handle, index, launch));
    memcpy(own->groups, launch->groups, sizeof own->groups);
    memcpy((struct gpu_argument *)(uintptr_t)own->arguments, launch->arguments,
           (size_t)own->count * sizeof *own->arguments);
    gpu->lists->changed = true;
    return TR_OK;
}

/* After a failed change no list follows any more: the launches are enqueued one by one. */
tr_status gpu_lists_enqueue(struct gpu *gpu, struct gpu_list *list, bool *done)
{
    struct gpu_lists *lists = gpu->lists;
    lists->changed = false;
    for (int i = 0; i < list->count && list->follows && !lists->rigid; i++)
        if (list->stale || !same(&list->launches[i], &lists->launch[i]))
            lists->rigid = change(gpu, list, i) != TR_OK;
    list->stale = false;
    *done = !list->follows || !lists->rigid;
    return *done ? gpu->api->launch_list(gpu->session, list->handle) : TR_OK;
}

/* ---- recording ---- */

static void release(struct gpu_list *list)
{
    tr_free(list->launches);
    tr_free(list->hashes);
    tr_free(list->blocks);
}

void gpu_lists_drop(struct gpu *gpu, int index)
{
    struct gpu_lists *lists = gpu->lists;
    struct gpu_list *list = &lists->kept[index];
    gpu->api->free_list(gpu->session, list->handle);
    release(list);
    *list = lists->kept[--lists->kept_count];
}

bool gpu_list_uses(const struct gpu_list *list, const void *block)
{
    for (int i = 0; i < list->block_count; i++)
        if (list->blocks[i] == block) return true;
    return false;
}

static bool add_block(struct gpu_list *list, void *block)
{
    if (gpu_list_uses(list, block)) return true;
    if (!tr_grow(&list->blocks, list->block_count, sizeof *list->blocks)) return false;
    list->blocks[list->block_count++] = block;
    return true;
}

/* Copies the stretch's launches and, behind them, their arguments. */
static bool copy_stretch(const struct gpu_lists *lists, struct gpu_list *list)
{
    size_t count = (size_t)lists->count, launches = count * sizeof *list->launches;
    size_t arguments = (size_t)lists->arguments * sizeof *lists->argument;
    list->count = lists->count;
    list->launches = tr_alloc(launches + arguments, 1);
    list->hashes = tr_alloc(2 * count, sizeof *list->hashes);
    if (!list->launches || !list->hashes) return false;
    list->shapes = list->hashes + count;
    struct gpu_argument *argument = (struct gpu_argument *)(list->launches + lists->count);
    memcpy(list->launches, lists->launch, launches);
    memcpy(argument, lists->argument, arguments);
    memcpy(list->hashes, lists->hash, count * sizeof *list->hashes);
    memcpy(list->shapes, lists->shape, count * sizeof *list->shapes);
    for (int i = 0; i < list->count; i++) {
        struct gpu_launch *launch = &list->launches[i];
        launch->arguments = argument;
        for (int k = 0; k < launch->count; k++, argument++)
            if (!list->follows && argument->block && !add_block(list, argument->block)) return false;
    }
    return true;
}

void gpu_lists_record(struct gpu *gpu, bool follows)
{
    struct gpu_lists *lists = gpu->lists;
    if (lists->kept_count == GPU_LISTS) { /* those still in use are soon recorded again */
        if (gpu->api->wait(gpu->session) != TR_OK) return;
        while (lists->kept_count > 0) gpu_lists_drop(gpu, lists->kept_count - 1);
    }
    struct gpu_list *list = &lists->kept[lists->kept_count];
    *list = (struct gpu_list){.follows = follows};
    if (copy_stretch(lists, list) &&
        gpu->api->build_list(gpu->session, list->launches, list->count, &list->handle) == TR_OK) {
        lists->kept_count++;
        return;
    }
    lists->refused = true; /* continues without recording */
    release(list);
}
