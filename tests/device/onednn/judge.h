/* oneDNN as an independent judge: the few calls of its C API that the comparison with `ref` needs.
 *
 * Every function fails the running cmocka test when oneDNN refuses.
 */
#ifndef TESTS_DEVICE_JUDGE_H
#define TESTS_DEVICE_JUDGE_H

#include "support/onednn_api.h"

#include <stdint.h>

/* A tensor that takes part in a primitive. */
struct judge_argument {
    int role; /* DNNL_ARG_... */
    onednn_shape shape;
    void *data; /* borrowed for the call */
};

/* A float tensor with the given layout; judge_close() frees it. */
onednn_shape judge_shape(int count, const dnnl_dim_t *dims, dnnl_format_tag_t layout);

/* Describes the primitive `operation` ("eltwise_forward") with these arguments to *out, which is to be
   destroyed with dnnl_primitive_desc_destroy(); a backward one with its forward one as `hint`. */
#define JUDGE_FORWARD(out, operation, ...)                                                                   \
    do {                                                                                                     \
        dnnl_status_t status_;                                                                               \
        ONEDNN_FORWARD(status_, out, judge_engine(), judge_attributes(), operation, __VA_ARGS__);            \
        judge_accept(status_, #operation, __LINE__);                                                         \
    } while (0)
#define JUDGE_BACKWARD(out, hint, operation, ...)                                                            \
    do {                                                                                                     \
        dnnl_status_t status_;                                                                               \
        ONEDNN_BACKWARD(status_, out, judge_engine(), judge_attributes(), hint, operation, __VA_ARGS__);     \
        judge_accept(status_, #operation, __LINE__);                                                         \
    } while (0)
dnnl_engine_t judge_engine(void);
const_dnnl_primitive_attr_t judge_attributes(void);

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

/* The check for calls of oneDNN. */
void judge_accept(dnnl_status_t status, const char *call, int line);
#define JUDGE(call) judge_accept(call, #call, __LINE__)

#endif
