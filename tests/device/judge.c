#include "device/judge.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define MOST_ARGUMENTS 24

static dnnl_engine_t engine;
static dnnl_stream_t stream;

int judge_open(void **state)
{
    (void)state;
    JUDGE(dnnl_engine_create(&engine, dnnl_cpu, 0));
    JUDGE(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    return 0;
}

int judge_close(void **state)
{
    (void)state;
    JUDGE(dnnl_stream_destroy(stream));
    JUDGE(dnnl_engine_destroy(engine));
    return 0;
}

void judge_accept(dnnl_status_t status, const char *call, int line)
{
    if (status != dnnl_success) fail_msg("line %d: status %d of %.60s", line, (int)status, call);
}

dnnl_memory_desc_t judge_shape(int count, const dnnl_dim_t *dims, dnnl_format_tag_t layout)
{
    dnnl_memory_desc_t shape;
    JUDGE(dnnl_memory_desc_init_by_tag(&shape, count, dims, dnnl_f32, layout));
    return shape;
}

dnnl_primitive_desc_t judge_describe(const_dnnl_op_desc_t operation, const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t description;
    JUDGE(dnnl_primitive_attr_create(&attributes));
    /* A scratchpad of the library's own ties a primitive to the thread that made it. */
    JUDGE(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    JUDGE(dnnl_primitive_desc_create(&description, operation, attributes, engine, hint));
    JUDGE(dnnl_primitive_attr_destroy(attributes));
    return description;
}

void *judge_workspace(const_dnnl_primitive_desc_t forward)
{
    const dnnl_memory_desc_t *shape = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
    size_t bytes = shape ? dnnl_memory_desc_get_size(shape) : 0;
    return bytes > 0 ? tr_alloc_aligned(bytes, 1) : NULL;
}

static void add_argument(dnnl_exec_arg_t *list, int *count, int role, const dnnl_memory_desc_t *shape,
                         void *data)
{
    assert_true(*count < MOST_ARGUMENTS);
    list[*count].arg = role;
    JUDGE(dnnl_memory_create(&list[*count].memory, shape, engine, data));
    ++*count;
}

void judge_run(const_dnnl_primitive_desc_t description, int count, const struct judge_argument *arguments,
               void *workspace)
{
    dnnl_exec_arg_t list[MOST_ARGUMENTS];
    int used = 0;
    for (int i = 0; i < count; i++)
        add_argument(list, &used, arguments[i].role, arguments[i].shape, arguments[i].data);
    const dnnl_memory_desc_t *shape = dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    void *scratchpad = tr_alloc_aligned(dnnl_memory_desc_get_size(shape), 1);
    add_argument(list, &used, DNNL_ARG_SCRATCHPAD, shape, scratchpad);
    if (workspace)
        add_argument(list, &used, DNNL_ARG_WORKSPACE,
                     dnnl_primitive_desc_query_md(description, dnnl_query_workspace_md, 0), workspace);
    dnnl_primitive_t primitive;
    JUDGE(dnnl_primitive_create(&primitive, description));
    JUDGE(dnnl_primitive_execute(primitive, stream, used, list));
    JUDGE(dnnl_stream_wait(stream));
    JUDGE(dnnl_primitive_destroy(primitive));
    while (used > 0) JUDGE(dnnl_memory_destroy(list[--used].memory));
    tr_free(scratchpad);
}

void judge_compare(const char *what, int64_t count, const float *ours, const float *theirs, double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)ours[i] - (double)theirs[i]);
        if (!(difference <= tolerance * (1 + fabs((double)theirs[i]))))
            fail_msg("%s[%lld of %lld]: ref has %.9g, oneDNN %.9g", what, (long long)i, (long long)count,
                     (double)ours[i], (double)theirs[i]);
    }
}
