#include "job/step/rows.h"

#include "base/alloc.h"
#include "base/numbers/tree.h"

tr_status tr_rows_create(struct tr_rows *rows, int64_t microbatches)
{
    rows->example_row = tr_alloc((size_t)microbatches + 1, sizeof *rows->example_row);
    rows->token_row = tr_alloc((size_t)microbatches + 1, sizeof *rows->token_row);
    rows->second_row = tr_alloc((size_t)microbatches + 1, sizeof *rows->second_row);
    return rows->example_row && rows->token_row && rows->second_row ? TR_OK : TR_ENOMEM;
}

void tr_rows_release(struct tr_rows *rows)
{
    tr_free(rows->example_row);
    tr_free(rows->token_row);
    tr_free(rows->second_row);
    *rows = (struct tr_rows){0};
}

void tr_rows_most(const struct tr_job *job, int64_t microbatches, int64_t rows, int64_t tokens,
                  int64_t second, struct tr_pass_limits *limits)
{
    int64_t parts = job->train.microbatches, most = (job->train.batch + parts - 1) / parts * microbatches;
    limits->examples = most < rows ? most : rows;
    limits->tokens = rows ? tokens / rows * limits->examples : 0;
    limits->second_tokens = rows ? second / rows * limits->examples : 0;
    limits->microbatches = (int32_t)microbatches;
}

void tr_rows_describe(struct tr_rows *rows, const struct tr_job *job, const struct tr_batch *batch,
                      int64_t first, int64_t end, int64_t global_examples, int64_t global_labels,
                      struct tr_step_scalars *scalars, struct tr_pass_batch *out)
{
    int64_t parts = job->train.microbatches, count = batch->global_rows;
    int64_t begin_row = tr_cut(count, parts, first) - batch->first;
    int64_t end_row = tr_cut(count, parts, end) - batch->first;
    bool sequence = job->model->input.sequence, second = batch->second_offset;
    for (int64_t i = 0; i <= end - first; i++) {
        int64_t row = tr_cut(count, parts, first + i) - batch->first;
        rows->example_row[i] = row - begin_row;
        if (sequence) rows->token_row[i] = batch->offset[row] - batch->offset[begin_row];
        if (second) rows->second_row[i] = batch->second_offset[row] - batch->second_offset[begin_row];
    }
    rows->bound[0] = 0;
    rows->bound[1] = (int32_t)(end - first);
    *out = (struct tr_pass_batch){
        .examples = end_row - begin_row,
        .tokens = sequence ? rows->token_row[end - first] : 0,
        .global_examples = global_examples,
        .global_labels = global_labels,
        .first_example = (uint32_t)(batch->first + begin_row),
        .microbatches = (int32_t)(end - first),
        .nodes = 1,
        .example_row = rows->example_row,
        .token_row = sequence ? rows->token_row : NULL,
        .second_tokens = second ? rows->second_row[end - first] : 0,
        .second_row = second ? rows->second_row : NULL,
        .node_bound = rows->bound,
        .seed = (uint64_t)job->file.seed,
        .scalars = scalars,
    };
}
