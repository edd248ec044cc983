/* Embeddings, learned positions, the rows of sequences and their neighbours. */
#include "device/gpu/gpu.h"
#include "device/gpu/operations/operations.h"

#include "base/fail.h"

tr_status gpu_embedding_forward(tr_device *device, const struct tr_op_embedding_forward *a)
{
    int shift = gpu_shift(device, a->width);
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "embedding_forward");
    gpu_long(&call, a->rows);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_array(&call, a->token);
    gpu_array(&call, a->table);
    gpu_array(&call, a->y);
    return gpu_run_lines(&call, shift, a->rows, a->width);
}

tr_status gpu_embedding_backward(tr_device *device, const struct tr_op_embedding_backward *a)
{
    int64_t rows = a->cut.count > 0 ? a->cut.row[a->cut.count] : 0;
    int32_t *begin = a->workspace, *order = a->workspace + a->vocabulary + 1;
    int shift = gpu_shift(device, a->width);
    struct gpu_cut cut;
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "embedding_sort");
    gpu_size(&call, rows);
    gpu_size(&call, a->vocabulary);
    gpu_array(&call, a->token);
    gpu_array(&call, begin);
    gpu_array(&call, order);
    TR_TRY(gpu_run(&call, 1, 1, 1));
    gpu_begin(&call, device, "sequence", "", "embedding_backward");
    gpu_size(&call, a->vocabulary);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_array(&call, cut.row);
    gpu_array(&call, cut.bound);
    gpu_array(&call, begin);
    gpu_array(&call, order);
    gpu_array(&call, a->dy);
    gpu_long(&call, a->cut.stride);
    gpu_array(&call, a->dtable);
    return gpu_run(&call, gpu_groups(a->vocabulary, gpu_threads(device) >> shift),
                   gpu_groups(a->width, (int64_t)1 << shift), a->cut.nodes);
}

tr_status gpu_sequence_last_forward(tr_device *device, const struct tr_op_sequence_last_forward *a)
{
    int shift = gpu_shift(device, a->width);
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "sequence_last_forward");
    gpu_long(&call, a->examples);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_lines(&call, shift, a->examples, a->width);
}

tr_status gpu_sequence_last_backward(tr_device *device, const struct tr_op_sequence_last_backward *a)
{
    int shift = gpu_shift(device, a->width);
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "sequence_last_backward");
    gpu_long(&call, a->examples);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->dx);
    return gpu_run_lines(&call, shift, a->examples, a->width);
}

tr_status gpu_pool_rows_forward(tr_device *device, const struct tr_op_pool_rows_forward *a)
{
    int shift = gpu_shift(device, a->width);
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "pool_rows_forward");
    gpu_long(&call, a->examples);
    gpu_long(&call, a->spatial);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_int(&call, a->kind == TR_POOL_AVERAGE);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    gpu_array(&call, a->taken);
    return gpu_run_lines(&call, shift, a->examples, a->width);
}

tr_status gpu_pool_rows_backward(tr_device *device, const struct tr_op_pool_rows_backward *a)
{
    int shift = gpu_shift(device, a->width);
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "pool_rows_backward");
    gpu_long(&call, a->examples);
    gpu_long(&call, a->spatial);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_int(&call, a->kind == TR_POOL_AVERAGE);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->taken);
    gpu_array(&call, a->dx);
    return gpu_run_lines(&call, shift, a->examples, a->width);
}

/* ---- row by row: the host does not know how many an example has ---- */

/* Lines of threads that share the rows of an example: enough to keep the device busy. */
static int32_t sharers_of(tr_device *device, int64_t examples, int64_t width)
{
    enum { MOST = 256, THREADS_OF_A_UNIT = 2048 };
    int64_t threads = (int64_t)gpu_info_of(device)->units * THREADS_OF_A_UNIT, each = examples * width;
    int64_t sharers = each > 0 ? gpu_groups(threads, each) : 1;
    return (int32_t)(sharers < MOST ? sharers : MOST);
}

/* Begins a kernel whose first parameters are (examples, width, shift, sharers); *lines is the number to
   run. */
static void begin_rows(struct gpu_call *call, tr_device *device, const char *kernel, int64_t examples,
                       int64_t width, int *shift, int64_t *lines)
{
    int32_t sharers = sharers_of(device, examples, width);
    *shift = gpu_shift(device, width);
    *lines = examples * sharers;
    gpu_begin(call, device, "sequence", "", kernel);
    gpu_long(call, examples);
    gpu_size(call, width);
    gpu_int(call, *shift);
    gpu_int(call, sharers);
}

tr_status gpu_sequence_unfold(tr_device *device, const struct tr_op_sequence_unfold *a)
{
    int shift;
    int64_t lines, width = a->taps * a->width;
    struct gpu_call call;
    begin_rows(&call, device, "sequence_unfold", a->examples, width, &shift, &lines);
    gpu_size(&call, a->width);
    gpu_size(&call, a->before);
    gpu_size(&call, a->dilation);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_lines(&call, shift, lines, width);
}

tr_status gpu_sequence_fold(tr_device *device, const struct tr_op_sequence_fold *a)
{
    int shift;
    int64_t lines;
    struct gpu_call call;
    begin_rows(&call, device, "sequence_fold", a->examples, a->width, &shift, &lines);
    gpu_size(&call, a->taps);
    gpu_size(&call, a->before);
    gpu_size(&call, a->dilation);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->dy);
    gpu_array(&call, a->dx);
    return gpu_run_lines(&call, shift, lines, a->width);
}

tr_status gpu_sequence_copy(tr_device *device, const struct tr_op_sequence_copy *a)
{
    int shift;
    int64_t lines;
    struct gpu_call call;
    begin_rows(&call, device, "sequence_copy", a->examples, a->width, &shift, &lines);
    gpu_int(&call, a->reverse);
    gpu_long(&call, a->x_step);
    gpu_long(&call, a->y_step);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_lines(&call, shift, lines, a->width);
}

tr_status gpu_position_forward(tr_device *device, const struct tr_op_position_forward *a)
{
    int shift;
    int64_t lines;
    struct gpu_call call;
    begin_rows(&call, device, "position_forward", a->examples, a->width, &shift, &lines);
    gpu_size(&call, a->length);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->table);
    gpu_array(&call, a->x);
    gpu_array(&call, a->y);
    return gpu_run_lines(&call, shift, lines, a->width);
}

tr_status gpu_position_backward(tr_device *device, const struct tr_op_position_backward *a)
{
    int shift = gpu_shift(device, a->width);
    struct gpu_cut cut;
    TR_TRY(gpu_cut(device, &a->cut, &cut));
    struct gpu_call call;
    gpu_begin(&call, device, "sequence", "", "position_backward");
    gpu_size(&call, a->length);
    gpu_size(&call, a->width);
    gpu_int(&call, shift);
    gpu_array(&call, cut.row);
    gpu_array(&call, cut.bound);
    gpu_array(&call, a->offset);
    gpu_array(&call, a->dy);
    gpu_long(&call, a->cut.stride);
    gpu_array(&call, a->dtable);
    return gpu_run(&call, gpu_groups(a->length, gpu_threads(device) >> shift),
                   gpu_groups(a->width, (int64_t)1 << shift), a->cut.nodes);
}
