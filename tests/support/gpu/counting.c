#include "support/gpu/counting.h"

#include "base/alloc.h"
#include "device/gpu/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 64 };

struct gpu_counted did;

static const struct gpu_api *real;

/* A list of the other interface, or else its launches. */
struct counted {
    void *list;
    int count;
    struct gpu_launch launches[MOST];
    struct gpu_argument arguments[MOST][GPU_ARGUMENTS];
};

void did_nothing(void)
{
    did.launches = did.lists = did.listed = did.built = did.freed = did.changed = 0;
}

static tr_status describe(int number, struct gpu_info *out)
{
    tr_status status = real->describe(number, out);
    out->lists = true;
    return status;
}

static tr_status launch(void *session, const struct gpu_launch *what)
{
    did.launches++;
    return real->launch(session, what);
}

static void keep(struct counted *counted, int index, const struct gpu_launch *launch)
{
    counted->launches[index] = *launch;
    counted->launches[index].arguments = counted->arguments[index];
    memcpy(counted->arguments[index], launch->arguments, (size_t)launch->count * sizeof *launch->arguments);
}

static tr_status build_list(void *session, const struct gpu_launch *launches, int count, void **list)
{
    struct counted *counted = tr_alloc_zero(1, sizeof *counted);
    assert_non_null(counted);
    counted->count = count;
    assert_true(count <= MOST);
    for (int i = 0; i < count; i++) keep(counted, i, &launches[i]);
    did.built++;
    *list = counted;
    tr_status status = real->build_list(session, launches, count, &counted->list);
    return status == TR_EUNSUPPORTED ? TR_OK : status;
}

tr_status gpu_launch_counted(void *session, void *list)
{
    const struct counted *counted = list;
    if (counted->list) return real->launch_list(session, counted->list);
    for (int i = 0; i < counted->count; i++) {
        tr_status status = real->launch(session, &counted->launches[i]);
        if (status != TR_OK) return status;
    }
    return TR_OK;
}

static tr_status launch_list(void *session, void *list)
{
    did.lists++;
    did.listed += ((const struct counted *)list)->count;
    return gpu_launch_counted(session, list);
}

/* A list that stays what it is gives way to its launches, once it is done. */
static tr_status change_list(void *session, void *list, int index, const struct gpu_launch *launch)
{
    struct counted *counted = list;
    assert_true(index < counted->count && counted->launches[index].kernel == launch->kernel);
    assert_int_equal(counted->launches[index].threads, launch->threads);
    did.changed++;
    keep(counted, index, launch);
    if (!counted->list) return TR_OK;
    if (real->change_list) return real->change_list(session, counted->list, index, launch);
    tr_status status = real->wait(session);
    if (status != TR_OK) return status;
    real->free_list(session, counted->list);
    counted->list = NULL;
    return TR_OK;
}

static void free_list(void *session, void *list)
{
    struct counted *counted = list;
    did.freed++;
    if (counted->list) real->free_list(session, counted->list);
    tr_free(counted);
}

struct gpu_api gpu_counting(const struct gpu_api *of, bool follow)
{
    struct gpu_api api = *of;
    real = of;
    api.describe = describe;
    api.launch = launch;
    api.build_list = build_list;
    api.launch_list = launch_list;
    api.change_list = follow ? change_list : NULL;
    api.free_list = free_list;
    return api;
}
