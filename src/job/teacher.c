#include "job/teacher.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/path.h"
#include "data/files/stamps.h"
#include "job/file/input.h"
#include "job/file/settings.h"
#include "job/tensors.h"

#include <string.h>

/* ---- the section ---- */

tr_status tr_job_choose_teacher(struct tr_job *job, const struct tr_job_settings *settings)
{
    const tr_config *node = tr_config_get(job->root, "distill");
    if (!settings->teacher) return TR_OK;
    if (!node || tr_config_kind(node) != TR_CONFIG_MAPPING)
        TR_TRY(tr_config_put_nothing(job->root, NULL, "distill"));
    char *absolute = tr_path_absolute(settings->teacher);
    if (!absolute) return TR_ENOMEM;
    tr_status status = tr_config_put_text(job->root, "distill", "teacher", absolute);
    tr_free(absolute);
    return status;
}

tr_status tr_job_read_distill(struct tr_job *job)
{
    const tr_config *node = job->file.distill;
    TR_TRY(tr_options_defaults(tr_distill_option_table, tr_distill_option_count, &job->distill));
    if (!node || tr_config_kind(node) == TR_CONFIG_NULL) return TR_OK;
    TR_TRY(tr_options_read(tr_distill_option_table, tr_distill_option_count, node, "distill", &job->distill));
    if (!tr_job_is_taught(job))
        return tr_config_fail(
            TR_EINVAL, node,
            "there is no teacher; name the run of a trained network as distill.teacher, or as the setting "
            "`teacher`");
    return TR_OK;
}

tr_status tr_job_settle_distill(struct tr_job *job)
{
    struct tr_loss *loss = &job->model->loss;
    if (!tr_job_is_taught(job)) return TR_OK;
    if (!tr_loss_class_of(loss)->distils || loss->pixels > 0 || job->model->output.sequence)
        return tr_config_fail(
            TR_EINVAL, job->file.distill,
            "distill is for networks with the loss softmax_cross_entropy that answer each example "
            "with a class; leave it out");
    loss->temperature = job->distill.temperature;
    loss->taught = job->distill.alpha;
    return TR_OK;
}

/* ---- opening ---- */

static tr_status open_run(const struct tr_job *job, tr_checkpoint **out)
{
    char *path = tr_source_path(job->file.directory, job->distill.teacher);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_checkpoint_open(path, out);
    tr_free(path);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "distill.teacher");
}

/* How an example becomes the input of a network in evaluations, as a text. Returned, free with tr_free(). */
static tr_status input_text(const struct tr_job *job, char **out)
{
    struct tr_input_options input = job->input;
    input.state = NULL;
    input.classes = input.sources = (struct tr_string_list){0};
    input.pad = 0; /* both get the rows as changed for the network's training */
    input.flip = false;
    input.augment = (struct tr_augment_options){0};
    input.range = (struct tr_float_list){0};
    return tr_options_dump(tr_input_option_table, tr_input_option_count, &input, out);
}

static tr_status compare_inputs(const struct tr_job *job, const struct tr_teacher *teacher)
{
    char *own = NULL, *other = NULL;
    const char *path = tr_checkpoint_path(teacher->checkpoint);
    TR_TRY(input_text(job, &own));
    tr_status status = input_text(teacher->job, &other);
    if (status == TR_OK && strcmp(own, other) != 0)
        status = tr_fail(
            TR_EMISMATCH,
            "the teacher \"%s\" has another input than the network: %s, here %s; teach with a network "
            "of the same `input`",
            path, other, own);
    tr_free(own);
    tr_free(other);
    return status;
}

static tr_status check_network(const struct tr_job *job, const struct tr_teacher *teacher)
{
    const struct tr_model *own = job->model, *other = teacher->job->model;
    const char *path = tr_checkpoint_path(teacher->checkpoint);
    char here[TR_SHAPE_TEXT], there[TR_SHAPE_TEXT];
    if (job->parts.count > 0 || job->parts.text[0] || teacher->job->parts.count > 0 ||
        teacher->job->parts.text[0])
        return tr_fail(TR_EUNSUPPORTED, "networks with several inputs have no teacher; leave distill out");
    if (teacher->job->adapters.rank > 0)
        return tr_fail(TR_EUNSUPPORTED,
                       "the teacher \"%s\" has adapters; merge them into it (`trireme export --merge`)",
                       path);
    if (!tr_shape_equal(&own->input, &other->input) || own->vocabulary != other->vocabulary)
        return tr_fail(TR_EMISMATCH, "the teacher \"%s\" takes %s, the network %s", path,
                       tr_shape_text(&other->input, there), tr_shape_text(&own->input, here));
    if (!tr_shape_equal(&own->output, &other->output) || !tr_loss_scores_classes(&other->loss))
        return tr_fail(
            TR_EMISMATCH,
            "the teacher \"%s\" answers with %s%s, the network with %s; both have to score the same "
            "classes",
            path, tr_shape_text(&other->output, there),
            tr_loss_scores_classes(&other->loss) ? "" : " that are no scores of classes",
            tr_shape_text(&own->output, here));
    return compare_inputs(job, teacher);
}

/* Compares the state that data gave to both networks: means, vocabularies, names of classes. Call it once
   the data are open. */
static tr_status check_state(const struct tr_job *job, const struct tr_teacher *teacher)
{
    const char *own = job->state, *other = teacher->job->state;
    if (!job->source[TR_SET_TRAIN] || (own ? other && strcmp(own, other) == 0 : !other)) return TR_OK;
    return tr_fail(
        TR_EMISMATCH,
        "the teacher \"%s\" was trained with data that gave it other means, names or vocabularies than "
        "those of the network; train both on the same data",
        tr_checkpoint_path(teacher->checkpoint));
}

static tr_status check_hash(const struct tr_job *job, const struct tr_teacher *teacher)
{
    if (!job->distill.teacher_hash || strcmp(job->distill.teacher_hash, teacher->hash) == 0) return TR_OK;
    return tr_fail(
        TR_EMISMATCH,
        "the teacher of the run has hash %.16s, that of \"%s\" %.16s; give the one that it began with by "
        "distill.teacher",
        job->distill.teacher_hash, tr_checkpoint_path(teacher->checkpoint), teacher->hash);
}

tr_status tr_teacher_describe(const struct tr_job *job, struct tr_teacher *out)
{
    static const struct tr_job_settings plain = {0};
    *out = (struct tr_teacher){0};
    TR_TRY(open_run(job, &out->checkpoint));
    TR_TRY(tr_job_restore(out->checkpoint, &plain, &out->job));
    TR_TRY(check_network(job, out));
    return check_state(job, out);
}

tr_status tr_teacher_open(const struct tr_job *job, struct tr_teacher *out)
{
    TR_TRY(tr_teacher_describe(job, out));
    out->values = tr_alloc_aligned((size_t)out->job->model->arena_floats + 1, sizeof(float));
    if (!out->values) return TR_ENOMEM;
    memset(out->values, 0, (size_t)out->job->model->arena_floats * sizeof(float));
    TR_TRY(tr_job_load_parameters(out->job, out->checkpoint, true, out->values));
    TR_TRY(tr_model_hash(out->job->model, out->values, out->hash));
    return check_hash(job, out);
}

void tr_teacher_release(struct tr_teacher *teacher)
{
    tr_free(teacher->values);
    tr_job_destroy(&teacher->job);
    tr_checkpoint_close(&teacher->checkpoint);
}

tr_status tr_job_note_teacher(struct tr_job *job)
{
    struct tr_teacher teacher;
    if (!tr_job_is_taught(job)) return TR_OK;
    tr_status status = tr_teacher_open(job, &teacher);
    if (status == TR_OK) {
        char *absolute = tr_path_absolute(tr_checkpoint_path(teacher.checkpoint));
        status = absolute ? tr_job_resolve_text(job, &job->distill.teacher, "distill", "teacher", absolute)
                          : TR_ENOMEM;
        tr_free(absolute);
    }
    if (status == TR_OK)
        status =
            tr_job_resolve_text(job, &job->distill.teacher_hash, "distill", "teacher_hash", teacher.hash);
    tr_teacher_release(&teacher);
    return status;
}
