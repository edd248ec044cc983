/* Launches that repeat in every step are recorded as lists, each enqueued as one command.
 *
 * The beginning of a step is not known here. The launches between two other commands (copies, marks) are a
 * stretch; long ones are cut. A stretch that has occurred often enough is recorded as a list. Launches
 * that begin like a list are held back while they continue like it, and become one command when the list
 * is complete. When they differ from it, they are enqueued one by one. So the device gets the same
 * launches in the same order, with lists or without.
 *
 * Invariants: launches held back are enqueued before any other command. A list equals its launches in
 * every argument, and names only blocks that exist: freeing a block removes its lists. They are freed when
 * no command is unfinished.
 */
#include "device/gpu/internal.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

#define MOST_LAUNCHES                                                                                        \
    64 /* most launches of a stretch: the device may have to wait so long for the first                      \
          one */
#define MOST_LISTS 128
#define MOST_SEEN  512
#define OFTEN      3 /* a stretch is recorded after so many occurrences */

struct gpu_list {
    void *handle;
    int count;
    struct gpu_launch *launches;
    uint64_t *hashes; /* [i]: hash of the launches up to `i` */
    void **blocks;    /* blocks that it uses */
    int block_count;
};

/* A stretch that was enqueued launch by launch. */
struct gpu_seen {
    uint64_t hash;
    int launches, times;
};

struct gpu_lists {
    /* The current stretch. */
    int count, arguments;
    int held;               /* launches held back: all of the stretch, or none */
    int listed;             /* launches already enqueued as lists: these need not be learned */
    struct gpu_list *guess; /* the list they may become */
    struct gpu_launch launch[MOST_LAUNCHES];
    struct gpu_argument argument[MOST_LAUNCHES * GPU_ARGUMENTS];
    uint64_t hash[MOST_LAUNCHES];

    struct gpu_list kept[MOST_LISTS];
    int kept_count;
    bool refused;                    /* recording one failed: nothing more is recorded */
    struct gpu_seen seen[MOST_SEEN]; /* the last ones, in a ring */
    int next_seen;
    struct tr_failure failure; /* of commands enqueued by a function that cannot fail */
};

/* ---- comparing ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(uint64_t hash, const struct gpu_launch *launch)
{
    hash = mix(hash, (uintptr_t)launch->kernel);
    for (int i = 0; i < 3; i++) hash = mix(mix(hash, launch->groups[i]), launch->first[i]);
    for (int i = 0; i < launch->count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        uint64_t value = (uintptr_t)argument->block;
        if (argument->size) memcpy(&value, argument->value, sizeof value);
        hash = mix(hash, value);
    }
    return hash;
}

static bool same(const struct gpu_launch *a, const struct gpu_launch *b)
{
    if (a->kernel != b->kernel || a->count != b->count || a->threads != b->threads ||
        memcmp(a->groups, b->groups, sizeof a->groups) != 0 ||
        memcmp(a->first, b->first, sizeof a->first) != 0)
        return false;
    for (int i = 0; i < a->count; i++) {
        const struct gpu_argument *left = &a->arguments[i], *right = &b->arguments[i];
        if (left->block != right->block || left->size != right->size ||
            memcmp(left->value, right->value, sizeof left->value) != 0)
            return false;
    }
    return true;
}

/* Whether the first `count` launches of the stretch are those of the list. */
static bool agrees(const struct gpu_lists *lists, const struct gpu_list *list, int count)
{
    if (count > list->count || list->hashes[count - 1] != lists->hash[count - 1]) return false;
    for (int i = count - 1; i >= 0; i--)
        if (!same(&list->launches[i], &lists->launch[i])) return false;
    return true;
}

/* The longest list that begins with the stretch. */
static struct gpu_list *find_guess(struct gpu_lists *lists)
{
    struct gpu_list *best = NULL;
    int count = lists->count;
    for (int i = 0; i < lists->kept_count; i++) {
        struct gpu_list *list = &lists->kept[i];
        if ((!best || list->count > best->count) && agrees(lists, list, count)) best = list;
    }
    return best;
}

/* The longest list that the launches held back begin with, or equal. */
static struct gpu_list *find_beginning(struct gpu_lists *lists)
{
    struct gpu_list *best = lists->guess;
    if (best && best->count == lists->held) return best;
    best = NULL;
    for (int i = 0; i < lists->kept_count; i++) {
        struct gpu_list *list = &lists->kept[i];
        if (list->count <= lists->held && (!best || list->count > best->count) &&
            agrees(lists, list, list->count))
            best = list;
    }
    return best;
}

/* ---- recording ---- */

static void begin_stretch(struct gpu_lists *lists)
{
    lists->count = lists->arguments = lists->held = lists->listed = 0;
    lists->guess = NULL;
}

static void release(struct gpu_list *list)
{
    tr_free(list->launches);
    tr_free(list->hashes);
    tr_free(list->blocks);
}

static void drop(struct gpu *gpu, int index)
{
    struct gpu_lists *lists = gpu->lists;
    struct gpu_list *list = &lists->kept[index];
    gpu->api->free_list(gpu->session, list->handle);
    release(list);
    *list = lists->kept[--lists->kept_count];
}

static bool add_block(struct gpu_list *list, void *block)
{
    for (int i = 0; i < list->block_count; i++)
        if (list->blocks[i] == block) return true;
    if (!tr_grow(&list->blocks, list->block_count, sizeof *list->blocks)) return false;
    list->blocks[list->block_count++] = block;
    return true;
}

/* Copies the launches of the stretch, with their arguments after them. */
static bool copy_stretch(const struct gpu_lists *lists, struct gpu_list *list)
{
    size_t launches = (size_t)lists->count * sizeof *list->launches;
    size_t arguments = (size_t)lists->arguments * sizeof *lists->argument;
    list->count = lists->count;
    list->launches = tr_alloc(launches + arguments, 1);
    list->hashes = tr_alloc((size_t)lists->count, sizeof *list->hashes);
    if (!list->launches || !list->hashes) return false;
    struct gpu_argument *argument = (struct gpu_argument *)(list->launches + lists->count);
    memcpy(list->launches, lists->launch, launches);
    memcpy(argument, lists->argument, arguments);
    memcpy(list->hashes, lists->hash, (size_t)lists->count * sizeof *list->hashes);
    for (int i = 0; i < list->count; i++) {
        struct gpu_launch *launch = &list->launches[i];
        launch->arguments = argument;
        for (int k = 0; k < launch->count; k++, argument++)
            if (argument->block && !add_block(list, argument->block)) return false;
    }
    return true;
}

static void record(struct gpu *gpu)
{
    struct gpu_lists *lists = gpu->lists;
    if (lists->kept_count == MOST_LISTS) { /* lists that are used will soon be recorded again */
        if (gpu->api->wait(gpu->session) != TR_OK) return;
        while (lists->kept_count > 0) drop(gpu, lists->kept_count - 1);
    }
    struct gpu_list *list = &lists->kept[lists->kept_count];
    *list = (struct gpu_list){0};
    if (copy_stretch(lists, list) &&
        gpu->api->build_list(gpu->session, list->launches, list->count, &list->handle) == TR_OK) {
        lists->kept_count++;
        return;
    }
    lists->refused = true; /* continues without lists */
    release(list);
}

/* Learns from a stretch that was enqueued launch by launch. */
static void learn(struct gpu *gpu)
{
    struct gpu_lists *lists = gpu->lists;
    if (lists->count < 2 || lists->refused) return;
    uint64_t hash = lists->hash[lists->count - 1];
    for (int i = 0; i < MOST_SEEN; i++) {
        struct gpu_seen *seen = &lists->seen[i];
        if (seen->hash != hash || seen->launches != lists->count) continue;
        if (++seen->times < OFTEN) return;
        *seen = (struct gpu_seen){0};
        record(gpu);
        return;
    }
    lists->seen[lists->next_seen] = (struct gpu_seen){hash, lists->count, 1};
    lists->next_seen = (lists->next_seen + 1) % MOST_SEEN;
}

/* ---- enqueuing ---- */

/* Enqueues the launches held back. */
static tr_status enqueue_held(struct gpu *gpu)
{
    struct gpu_lists *lists = gpu->lists;
    tr_status status = TR_OK;
    int done = 0;
    if (lists->held == 0) return TR_OK;
    struct gpu_list *list = find_beginning(lists);
    if (list) {
        lists->listed = done = list->count;
        status = gpu->api->launch_list(gpu->session, list->handle);
    }
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
    if (status == TR_OK && lists->listed < lists->count) learn(gpu);
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
    lists->hash[lists->count] = hash_of(lists->count > 0 ? lists->hash[lists->count - 1] : 0, launch);
    lists->arguments += launch->count;
    lists->count++;
}

/* Whether the stretch, of which nothing is enqueued, may become a list. */
static bool may_become_list(struct gpu_lists *lists)
{
    int last = lists->count - 1;
    struct gpu_list *guess = lists->guess;
    bool goes_on = guess && last < guess->count && same(&guess->launches[last], &lists->launch[last]);
    if (!goes_on) lists->guess = find_guess(lists);
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
    return status == TR_OK && lists->count == MOST_LAUNCHES ? gpu_lists_end(gpu) : status;
}

/* ---- what lists depend on ---- */

static bool names(const struct gpu_list *list, const void *block)
{
    for (int i = 0; i < list->block_count; i++)
        if (list->blocks[i] == block) return true;
    return false;
}

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
        if (!names(&lists->kept[i], block)) continue;
        if (!waited) (void)gpu->api->wait(gpu->session); /* a later call reports the failure */
        waited = true;
        drop(gpu, i);
    }
    (void)tr_failure_restore(&how);
}

void gpu_lists_release(struct gpu *gpu)
{
    if (!gpu->lists) return;
    while (gpu->lists->kept_count > 0) drop(gpu, gpu->lists->kept_count - 1);
    tr_free(gpu->lists);
    gpu->lists = NULL;
}

/* ---- whether the device does it rightly ---- */

enum { NUMBERS = 100, TURNS = OFTEN + 4 };

/* Runs lists that share kernels and memory, alternately, each again before its last run is complete: x
   becomes 2 x + 6 in each turn, by steps whose order matters. */
static tr_status try_lists(struct gpu *gpu, float *memory, float got[NUMBERS])
{
    tr_device *device = &gpu->base;
    float *x = memory, *y = x + NUMBERS, *one = y + NUMBERS, *two = one + NUMBERS;
    const struct tr_op_fill fill[] = {{NUMBERS, 0, x}, {NUMBERS, 1, one}, {NUMBERS, 2, two}};
    const struct tr_op_add add[] = {
        {NUMBERS, x, one, y}, {NUMBERS, y, one, x}, {NUMBERS, x, two, y}, {NUMBERS, y, x, x}};
    for (int i = 0; i < 3; i++) TR_TRY(tr_device_fill(device, &fill[i]));
    TR_TRY(gpu_lists_end(gpu));
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 4; i++) {
            TR_TRY(tr_device_add(device, &add[i]));
            if (i % 2) TR_TRY(gpu_lists_end(gpu));
        }
    TR_TRY(gpu_to_host(device, got, x, NUMBERS * sizeof *got));
    return gpu->api->wait(gpu->session);
}

static bool does_it_rightly(struct gpu *gpu)
{
    float got[NUMBERS], expected = 0;
    void *memory;
    if (gpu_alloc(&gpu->base, (size_t)4 * NUMBERS * sizeof *got, &memory) != TR_OK) return false;
    tr_status status = try_lists(gpu, memory, got);
    bool right = status == TR_OK && gpu->lists->kept_count > 0;
    if (status != TR_OK) (void)gpu->api->wait(gpu->session); /* a copy to `got` may be under way */
    for (int turn = 0; turn < TURNS; turn++) expected = 2 * expected + 6;
    for (int i = 0; i < NUMBERS && right; i++) right = got[i] == expected;
    gpu_free(&gpu->base, memory);
    return right;
}

void gpu_lists_create(struct gpu *gpu)
{
    if (!gpu->api->build_list) return;
    gpu->lists = tr_alloc_zero(1, sizeof *gpu->lists);
    if (gpu->lists && !does_it_rightly(gpu)) gpu_lists_release(gpu);
}
