#include "device/onednn/judge.h"

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
static dnnl_primitive_attr_t attributes;
static onednn_shape *shapes; /* [shape_count] */
static size_t shape_count;

int judge_open(void **state)
{
    (void)state;
    JUDGE(dnnl_engine_create(&engine, dnnl_cpu, 0));
    JUDGE(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    JUDGE(dnnl_primitive_attr_create(&attributes));
    /* A scratchpad of the library's own ties a primitive to the thread that made it. */
    JUDGE(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    return 0;
}

int judge_close(void **state)
{
    (void)state;
    while (shape_count > 0) onednn_shape_free(shapes[--shape_count]);
    tr_free(shapes);
    JUDGE(dnnl_primitive_attr_destroy(attributes));
    JUDGE(dnnl_stream_destroy(stream));
    JUDGE(dnnl_engine_destroy(engine));
    return 0;
}

dnnl_engine_t judge_engine(void)
{
    return engine;
}

const_dnnl_primitive_attr_t judge_attributes(void)
{
    return attributes;
}

void judge_accept(dnnl_status_t status, const char *call, int line)
{
    if (status != dnnl_success) fail_msg("line %d: status %d of %.60s", line, (int)status, call);
}

onednn_shape judge_shape(int count, const dnnl_dim_t *dims, dnnl_format_tag_t layout)
{
    onednn_shape shape = onednn_shape_make(count, dims, layout);
    onednn_shape *more = tr_realloc(shapes, shape_count + 1, sizeof *more);
    assert_non_null(shape);
    assert_non_null(more);
    shapes = more;
    return shapes[shape_count++] = shape;
}

void *judge_workspace(const_dnnl_primitive_desc_t forward)
{
    onednn_shape shape = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
    size_t bytes = shape ? dnnl_memory_desc_get_size(shape) : 0;
    return bytes > 0 ? tr_alloc_aligned(bytes, 1) : NULL;
}

static void add_argument(dnnl_exec_arg_t *list, int *count, int role, onednn_shape shape, void *data)
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
    onednn_shape shape = dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
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
