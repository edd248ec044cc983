#include "job/feed/intake.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/join.h"
#include "data/state.h"
#include "job/feed/columns.h"
#include "job/file/input.h"

#include <inttypes.h>

void tr_intake_of_image(const struct tr_job *job, const int64_t *stored, const int64_t *wanted,
                        struct tr_op_load_images *op)
{
    *op = (struct tr_op_load_images){
        .in_h = (int32_t)stored[0],
        .in_w = (int32_t)stored[1],
        .out_h = (int32_t)wanted[0],
        .out_w = (int32_t)wanted[1],
        .channels = (int32_t)stored[2],
        .pad = job->input.pad,
        .flip = job->input.flip,
    };
    for (int i = 0; i < 4; i++) {
        op->scale[i] = tr_job_scale(job, i);
        op->shift[i] = tr_job_shift(job, i);
    }
}

/* Reads the scaling of `width` columns from the source's state, which may be of another kind, or missing. */
static tr_status scaling_of(const char *state, int64_t width, struct tr_scaling *out)
{
    int32_t classes;
    *out = (struct tr_scaling){0};
    if (!state || !tr_state_is(state, "scaling")) return TR_OK;
    TR_TRY(tr_scaling_read(state, out, &classes));
    int32_t count = out->count;
    if (count != width || tr_scaling_is_plain(out)) tr_scaling_release(out);
    if (count == width) return TR_OK;
    return tr_fail(TR_EMISMATCH, "the scaling is of %" PRId32 " columns, the network takes %" PRId64, count,
                   width);
}

tr_status tr_job_scaling(const struct tr_job *job, struct tr_scaling *out)
{
    *out = (struct tr_scaling){0};
    if (job->features != TR_FEATURE_FLOATS) return TR_OK;
    return scaling_of(job->state, tr_shape_count(&job->stored), out);
}

/* Replaces each column of names by a column of numbers. */
static void give_columns(struct tr_intake_part *part)
{
    if (part->scaling.categories.columns > 0) part->stored.size[0] = part->scaling.categories.columns;
}

static tr_status enter_source(const struct tr_job *job, const struct tr_shape *wanted,
                              struct tr_intake_part *part)
{
    char *state;
    if (part->stored.rank == 3) {
        tr_intake_of_image(job, part->stored.size, wanted->size, &part->images);
        return TR_OK;
    }
    TR_TRY(tr_join_state_of(job->state, part->name, &state));
    tr_status status = scaling_of(state, tr_shape_count(&part->stored), &part->scaling);
    tr_free(state);
    give_columns(part);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "source \"%s\"", part->name);
}

/* Reads the fill values; where these are all, nothing is scaled. */
static tr_status take_fill(const struct tr_job *job, struct tr_intake_part *part)
{
    struct tr_job_columns columns;
    tr_status status = tr_job_columns_read(job, &columns);
    if (status == TR_OK && columns.fill && part->scaling.count == 0)
        status = tr_scaling_create(columns.count, &part->scaling);
    part->fill = columns.fill;
    columns.fill = NULL;
    tr_job_columns_release(&columns);
    return status;
}

void tr_intake_of_example(const struct tr_job *job, struct tr_op_load_images *op)
{
    struct tr_shape stored, wanted;
    tr_job_image(job, &stored, &wanted);
    tr_intake_of_image(job, stored.size, wanted.size, op);
}

/* An image of numbers that changes on its way. */
static tr_status enter_numbers(const struct tr_job *job, struct tr_intake_part *part)
{
    if (part->scaling.count > 0)
        return tr_fail(
            TR_EUNSUPPORTED,
            "its images of numbers are standardized or filled in, and then cropped or scaled, which "
            "other programs are not told; leave one of both out");
    tr_intake_of_example(job, &part->images);
    part->numbers = true;
    return TR_OK;
}

tr_status tr_job_intake(const struct tr_job *job, struct tr_intake *out)
{
    struct tr_source_parts wanted;
    *out = (struct tr_intake){0};
    if (job->features == TR_FEATURE_TOKENS) return TR_OK;
    tr_job_input_parts(job, &wanted);
    for (; out->count < job->parts.count; out->count++) {
        struct tr_intake_part *part = &out->part[out->count];
        part->name = job->parts.part[out->count].name;
        part->stored = job->parts.part[out->count].shape;
        TR_TRY(enter_source(job, &wanted.part[out->count].shape, part));
    }
    if (out->count > 0) return TR_OK;
    struct tr_intake_part *part = &out->part[out->count++];
    part->name = "";
    part->stored = job->stored;
    if (job->features == TR_FEATURE_FLOATS) {
        TR_TRY(tr_job_scaling(job, &part->scaling));
        give_columns(part);
        TR_TRY(take_fill(job, part));
        return tr_job_fits_numbers(job) ? enter_numbers(job, part) : TR_OK;
    }
    tr_intake_of_example(job, &part->images);
    return TR_OK;
}

void tr_intake_release(struct tr_intake *intake)
{
    for (int i = 0; i < TR_SOURCE_PARTS; i++) {
        tr_scaling_release(&intake->part[i].scaling);
        tr_free(intake->part[i].fill);
    }
    *intake = (struct tr_intake){0};
}
