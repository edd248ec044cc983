/* oneDNN as an independent judge: the few calls of its C API that the comparison with `ref` needs.
 *
 * Every function fails the running cmocka test when oneDNN refuses.
 */
#ifndef TESTS_DEVICE_JUDGE_H
#define TESTS_DEVICE_JUDGE_H

#include <oneapi/dnnl/dnnl.h>

#include <stdint.h>

/* A tensor that takes part in a primitive. */
struct judge_argument {
    int role; /* DNNL_ARG_... */
    const dnnl_memory_desc_t *shape;
    void *data; /* borrowed for the call */
};

/* A float tensor of up to 5 dimensions with the given layout. */
dnnl_memory_desc_t judge_shape(int count, const dnnl_dim_t *dims, dnnl_format_tag_t layout);

/* The primitive for an operation descriptor. `hint` is NULL, or for a backward operation its forward one.
   Returned, destroy with dnnl_primitive_desc_destroy(). */
dnnl_primitive_desc_t judge_describe(const_dnnl_op_desc_t operation, const_dnnl_primitive_desc_t hint);

/* What a forward primitive leaves for its backward one; NULL when that is nothing. Returned, free with
 * tr_free(). */
void *judge_workspace(const_dnnl_primitive_desc_t forward);

/* Runs a primitive. `workspace` is NULL, or what judge_workspace() gave. */
void judge_run(const_dnnl_primitive_desc_t description, int count, const struct judge_argument *arguments,
               void *workspace);

/* Fails unless |ours - theirs| <= tolerance * (1 + |theirs|) for all. */
void judge_compare(const char *what, int64_t count, const float *ours, const float *theirs, double tolerance);

/* Before the first and after the last test; for cmocka groups. */
int judge_open(void **state);
int judge_close(void **state);

/* The check for calls that make an operation descriptor. */
void judge_accept(dnnl_status_t status, const char *call, int line);
#define JUDGE(call) judge_accept(call, #call, __LINE__)

#endif
