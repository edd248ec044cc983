/* Reading a checkpoint once, and writing it in any of the formats. */
#include "export/formats.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sized.h"
#include "export/adapters/merge.h"
#include "job/base.h"
#include "job/tensors.h"

#include <string.h>

struct tr_exporter {
    tr_checkpoint *checkpoint;
    struct tr_job *job;
    float *parameters;
    char *name;
    struct tr_intake intake;
    struct tr_export what;
};

struct format {
    TR_ENTRY;
    tr_status (*write)(const struct tr_export *what, const char *path);
    struct tr_export_format fact;
};

#define FORMAT(id, text, value)                                                                              \
    static const struct format format_##id = {                                                               \
        .name = #id, .help = text, .write = tr_export_##id, .fact = {#id, text}};
TR_EXPORT_FORMATS(FORMAT)
#undef FORMAT

#define ENTRY(id, text, value) &format_##id.entry,
static const struct tr_entry *const entries[] = {TR_EXPORT_FORMATS(ENTRY) NULL};
#undef ENTRY

const struct tr_registry tr_export_formats = {.kind = "export format", .entries = entries};

const struct tr_export_format *tr_export_format_at(int index)
{
    bool known = index >= 0 && index < tr_registry_count(&tr_export_formats);
    return known ? &((const struct format *)entries[index])->fact : NULL;
}

static tr_status merge(tr_exporter *exporter)
{
    struct tr_job *merged;
    float *parameters;
    TR_TRY(tr_adapters_merge(exporter->job, exporter->parameters, &merged, &parameters));
    tr_free(exporter->parameters);
    tr_job_destroy(&exporter->job);
    exporter->job = merged;
    exporter->parameters = parameters;
    return TR_OK;
}

/* Separate adapters are separate tensors; formats that hold the computation take the merged network. */
static tr_status check_adapters(const struct tr_export *what, const char *format)
{
    const bool tensors = strcmp(format, "safetensors") == 0 || strcmp(format, "npz") == 0;
    if (what->job->adapters.rank == 0 || strcmp(format, "peft") == 0) return TR_OK;
    if (tensors && what->layout == TR_LAYOUT_TRIREME) return TR_OK;
    return tr_fail(
        TR_EUNSUPPORTED,
        "the network has adapters, which %s%s cannot keep separate; add them to the weights with `merge`",
        format, tensors ? " in PyTorch's layout" : "");
}

static tr_status load(const struct tr_export_settings *settings, tr_exporter *exporter)
{
    static const struct tr_job_settings as_it_is = {.whole = true};
    const bool in_memory = tr_checkpoint_state_is_given(&settings->state);
    if (!settings->checkpoint == !in_memory)
        return tr_fail(TR_EINVAL, in_memory ? "both `checkpoint` and `state` are given; give one of them"
                                            : "no checkpoint is given to export");
    if (in_memory)
        TR_TRY(tr_checkpoint_open_state(&settings->state, &exporter->checkpoint));
    else
        TR_TRY(settings->best ? tr_checkpoint_open_best(settings->checkpoint, &exporter->checkpoint)
                              : tr_checkpoint_open(settings->checkpoint, &exporter->checkpoint));
    TR_TRY(tr_job_restore(exporter->checkpoint, &as_it_is, &exporter->job));
    exporter->parameters = tr_alloc_zero((size_t)exporter->job->model->arena_floats + 1, sizeof(float));
    exporter->name = tr_strdup(settings->name ? settings->name : exporter->job->file.name);
    if (!exporter->parameters || !exporter->name) return TR_ENOMEM;
    TR_TRY(tr_job_load_parameters(exporter->job, exporter->checkpoint, settings->use_average,
                                  exporter->parameters));
    TR_TRY(tr_job_load_base(exporter->job, exporter->parameters));
    if (settings->merge) TR_TRY(merge(exporter));
    TR_TRY(tr_job_intake(exporter->job, &exporter->intake));
    exporter->what = (struct tr_export){
        .job = exporter->job,
        .facts = tr_checkpoint_facts(exporter->checkpoint),
        .parameters = exporter->parameters,
        .averages = settings->use_average && exporter->job->optimizer.ema > 0,
        .intake = &exporter->intake,
        .layout = settings->layout,
        .name = exporter->name,
        .half = settings->half,
    };
    return TR_OK;
}

tr_status tr_exporter_create(const struct tr_export_settings *given, tr_exporter **out)
{
    static const struct tr_export_settings defaults = TR_EXPORT_SETTINGS_INIT;
    struct tr_export_settings full, *settings = &full;
    *out = NULL;
    TR_TRY(tr_sized_take(given, &defaults, sizeof defaults, "TR_EXPORT_SETTINGS_INIT", settings));
    if (settings->layout != TR_LAYOUT_TRIREME && settings->layout != TR_LAYOUT_TORCH)
        return tr_fail(TR_EINVAL, "there is no layout %d", (int)settings->layout);
    tr_exporter *exporter = tr_alloc_zero(1, sizeof *exporter);
    if (!exporter) return TR_ENOMEM;
    tr_status status = load(settings, exporter);
    if (status != TR_OK) {
        tr_exporter_destroy(&exporter);
        return status;
    }
    *out = exporter;
    return TR_OK;
}

void tr_exporter_destroy(tr_exporter **handle)
{
    tr_exporter *exporter = *handle;
    if (!exporter) return;
    tr_intake_release(&exporter->intake);
    tr_free(exporter->name);
    tr_free(exporter->parameters);
    tr_job_destroy(&exporter->job);
    tr_checkpoint_close(&exporter->checkpoint);
    tr_free(exporter);
    *handle = NULL;
}

const char *tr_exporter_skipped(const tr_exporter *exporter)
{
    const char *skipped = tr_checkpoint_skipped(exporter->checkpoint);
    return skipped ? skipped : "";
}

tr_status tr_exporter_write(tr_exporter *exporter, const char *format, const char *path)
{
    const struct tr_entry *entry;
    TR_TRY(tr_registry_get(&tr_export_formats, format, &entry));
    TR_TRY(check_adapters(&exporter->what, format));
    return ((const struct format *)entry)->write(&exporter->what, path);
}
