/* Reading a checkpoint once, and writing it in any of the formats. */
#include "export/formats.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "job/tensors.h"

#include <string.h>

struct tr_exporter {
    tr_checkpoint *checkpoint;
    struct tr_job *job;
    float *parameters;
    char *name;
    struct tr_export what;
};

#define ADD_FORMAT(id, text) {#id, text},
static const struct tr_export_format formats[] = {TR_EXPORT_FORMATS(ADD_FORMAT)};
#undef ADD_FORMAT
#define FORMATS ((int)(sizeof formats / sizeof formats[0]))

#define ADD_FUNCTION(id, text) tr_export_##id,
static tr_status (*const writers[])(const struct tr_export *what,
                                    const char *path) = {TR_EXPORT_FORMATS(ADD_FUNCTION)};
#undef ADD_FUNCTION

const struct tr_export_format *tr_export_format_at(int index)
{
    return index >= 0 && index < FORMATS ? &formats[index] : NULL;
}

static tr_status load(const struct tr_export_settings *settings, tr_exporter *exporter)
{
    static const struct tr_job_settings as_it_is = {0};
    TR_TRY(tr_checkpoint_open(settings->checkpoint, &exporter->checkpoint));
    TR_TRY(tr_job_restore(exporter->checkpoint, &as_it_is, &exporter->job));
    exporter->parameters = tr_alloc_zero((size_t)exporter->job->model->arena_floats + 1, sizeof(float));
    exporter->name = tr_strdup(settings->name ? settings->name : exporter->job->file.name);
    if (!exporter->parameters || !exporter->name) return TR_ENOMEM;
    TR_TRY(tr_job_load_parameters(exporter->job, exporter->checkpoint, settings->use_average,
                                  exporter->parameters));
    exporter->what = (struct tr_export){
        .job = exporter->job,
        .facts = tr_checkpoint_facts(exporter->checkpoint),
        .parameters = exporter->parameters,
        .averages = settings->use_average && exporter->job->optimizer.ema > 0,
        .layout = settings->layout,
        .name = exporter->name,
    };
    return TR_OK;
}

tr_status tr_exporter_create(const struct tr_export_settings *settings, tr_exporter **out)
{
    *out = NULL;
    if (settings->size != sizeof *settings)
        return tr_fail(
            TR_EINVAL,
            "settings have %zu bytes, this library expects %zu; begin with TR_EXPORT_SETTINGS_INIT",
            settings->size, sizeof *settings);
    if (!settings->checkpoint) return tr_fail(TR_EINVAL, "no checkpoint is given to export");
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

static tr_status unknown_format(const char *format)
{
    const char *names[FORMATS];
    for (int i = 0; i < FORMATS; i++) names[i] = formats[i].name;
    const char *nearest = tr_text_nearest(format, names, FORMATS);
    return tr_fail(TR_ENOTFOUND, "there is no format \"%s\" to export to; did you mean \"%s\"?", format,
                   nearest ? nearest : names[0]);
}

tr_status tr_exporter_write(tr_exporter *exporter, const char *format, const char *path)
{
    for (int i = 0; i < FORMATS; i++)
        if (strcmp(formats[i].name, format) == 0) return writers[i](&exporter->what, path);
    return unknown_format(format);
}
