#include "cli/program/noted.h"

#include "base/fail.h"
#include "cli/noting.h"
#include "dispute/party.h"
#include "trireme/tokenizer.h"
#include "trireme/trireme.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *layout_of(enum tr_layout layout)
{
    return layout == TR_LAYOUT_TORCH ? "torch" : layout == TR_LAYOUT_AUTO ? "auto" : "trireme";
}

static void note_list(const char *name, const char *const *item, int count)
{
    note(" %s", name);
    for (int i = 0; i < count; i++) note("%s%s", i ? "," : "=", item[i]);
}

/* The end of each of these: nothing is done. */
static tr_status enough(void)
{
    return tr_fail(TR_EUNSUPPORTED, "noted");
}

tr_status __wrap_tr_trainer_create(const struct tr_train_settings *s, tr_trainer **out);
tr_status __wrap_tr_trainer_create(const struct tr_train_settings *s, tr_trainer **out)
{
    (void)out;
    note("transport=%s slow=%s out=%s tensorboard=%s cache=%s programs=%s", noted_word(s->transport),
         noted_word(s->slow), noted_word(s->out), noted_word(s->tensorboard), noted_word(s->data_cache),
         noted_word(s->program_cache));
    return enough();
}

static int nothing;
tr_status __wrap_tr_predictor_create(const struct tr_predict_settings *s, tr_predictor **out);
tr_status __wrap_tr_predictor_create(const struct tr_predict_settings *s, tr_predictor **out)
{
    note("%s device=%s threads=%d isa=%s average=%d best=%d cache=%s bytes=%" PRId64 " programs=%s",
         s->checkpoint, s->device, s->threads, noted_word(s->isa), s->use_average, s->best,
         noted_word(s->data_cache), s->data_cache_bytes, noted_word(s->program_cache));
    *out = (tr_predictor *)(void *)&nothing;
    return TR_OK;
}

bool predictors_inform;
tr_status __wrap_tr_predictor_info(const tr_predictor *predictor, struct tr_predict_info *info);
tr_status __wrap_tr_predictor_info(const tr_predictor *predictor, struct tr_predict_info *info)
{
    (void)predictor;
    info->skipped = "";
    return predictors_inform ? TR_OK : enough();
}

void __wrap_tr_predictor_destroy(tr_predictor **predictor);
void __wrap_tr_predictor_destroy(tr_predictor **predictor)
{
    if (*predictor) note(" destroyed");
    *predictor = NULL;
}

tr_status __wrap_tr_predictor_generate(tr_predictor *predictor, const struct tr_generate_settings *s,
                                       tr_text_listener listener, void *user);
tr_status __wrap_tr_predictor_generate(tr_predictor *predictor, const struct tr_generate_settings *s,
                                       tr_text_listener listener, void *user)
{
    (void)predictor, (void)listener, (void)user;
    snprintf(noted, sizeof noted, "prompt=%s", noted_word(s->prompt));
    note(" tokens=%" PRId64 " temperature=%g top_k=%d seed=%" PRIu64 " context=%" PRId64 " source=%s",
         s->tokens, s->temperature, (int)s->top_k, s->seed, s->context, noted_word(s->source));
    return enough();
}

tr_status __wrap_tr_exporter_create(const struct tr_export_settings *s, tr_exporter **out);
tr_status __wrap_tr_exporter_create(const struct tr_export_settings *s, tr_exporter **out)
{
    (void)out;
    note("%s average=%d best=%d layout=%s name=%s merge=%d half=%d", s->checkpoint, s->use_average, s->best,
         layout_of(s->layout), noted_word(s->name), s->merge, s->half);
    return enough();
}

tr_status __wrap_tr_import(const struct tr_import_settings *s, char **path);
tr_status __wrap_tr_import(const struct tr_import_settings *s, char **path)
{
    (void)path;
    note("%s model=%s out=%s layout=%s partial=%d overwrite=%d prefix=%s text=%s base=%s", s->file,
         noted_word(s->model), s->out, layout_of(s->layout), s->partial, s->overwrite, noted_word(s->prefix),
         noted_word(s->text), noted_word(s->base));
    note_list("set", s->set, s->set_count);
    note_list("rename", s->rename, s->rename_count);
    return enough();
}

tr_status __wrap_tr_verify(const struct tr_verify_settings *s, tr_verify_listener listener, void *user,
                           struct tr_verify_result *result, char **text);
tr_status __wrap_tr_verify(const struct tr_verify_settings *s, tr_verify_listener listener, void *user,
                           struct tr_verify_result *result, char **text)
{
    (void)listener, (void)user, (void)result, (void)text;
    note("%s model=%s from=%s device=%s isa=%s threads=%d segments=%" PRId64 " seed=%" PRIu64 " share=%d/%d",
         s->path, noted_word(s->model), noted_word(s->from), s->device, noted_word(s->isa), s->threads,
         s->segments, s->seed, s->share, s->shares);
    note(" expect=%s check=%d cache=%s bytes=%" PRId64 " programs=%s", noted_word(s->expect),
         !s->no_memory_check, noted_word(s->data_cache), s->data_cache_bytes, noted_word(s->program_cache));
    note_list("set", s->set, s->set_count);
    return enough();
}

tr_status __wrap_tr_burn_in(const struct tr_burn_in_settings *s, tr_burn_in_listener listener, void *user,
                            bool *good);
tr_status __wrap_tr_burn_in(const struct tr_burn_in_settings *s, tr_burn_in_listener listener, void *user,
                            bool *good)
{
    (void)listener, (void)user, (void)good;
    note("seconds=%g devices=%d programs=%s", s->seconds, s->device_count, noted_word(s->program_cache));
    return enough();
}

tr_status __wrap_tr_party_create(const struct tr_party_settings *s, tr_party **out);
tr_status __wrap_tr_party_create(const struct tr_party_settings *s, tr_party **out)
{
    (void)out;
    note("%s model=%s from=%s device=%s isa=%s threads=%d check=%d cache=%s bytes=%" PRId64, s->path,
         noted_word(s->model), noted_word(s->from), s->device, noted_word(s->isa), s->threads,
         !s->no_memory_check, noted_word(s->data_cache), s->data_cache_bytes);
    note_list("set", s->set, s->set_count);
    return enough();
}

tr_status __wrap_tr_tokenizer_train(const struct tr_tokenizer_settings *s, tr_tokenizer **out);
tr_status __wrap_tr_tokenizer_train(const struct tr_tokenizer_settings *s, tr_tokenizer **out)
{
    (void)out;
    note("pattern=%s tokens=%d least=%" PRId64, s->pattern, (int)s->tokens, s->least);
    note_list("special", s->special, s->special_count);
    note_list("paths", s->paths, s->path_count);
    return enough();
}

tr_status __wrap_tr_report(const char *const *runs, int count, const struct tr_report_settings *s,
                           char **html);
tr_status __wrap_tr_report(const char *const *runs, int count, const struct tr_report_settings *s,
                           char **html)
{
    (void)html;
    note("title=%s trace=%s examples=%d", noted_word(s->title), noted_word(s->trace), s->examples);
    note_list("runs", runs, count);
    return enough();
}

tr_status __wrap_tr_inspect(const char *path, const char *const *set, int count, char **text);
tr_status __wrap_tr_inspect(const char *path, const char *const *set, int count, char **text)
{
    (void)text;
    note("%s", path);
    note_list("set", set, count);
    return enough();
}

tr_status __wrap_tr_inspect_json(const char *path, const char *const *set, int count, char **text);
tr_status __wrap_tr_inspect_json(const char *path, const char *const *set, int count, char **text)
{
    note("json ");
    return __wrap_tr_inspect(path, set, count, text);
}

tr_status __wrap_tr_receipt_form(const char *path, const char *format, char **text);
tr_status __wrap_tr_receipt_form(const char *path, const char *format, char **text)
{
    (void)text;
    note("%s %s", path, format);
    return enough();
}

tr_status __wrap_tr_source_convert(const tr_source *source, const char *format, const char *packing,
                                   const char *path);
tr_status __wrap_tr_source_convert(const tr_source *source, const char *format, const char *packing,
                                   const char *path)
{
    note("%" PRId64 " as %s,%s to %s", tr_source_info(source)->count, format, packing, path);
    return enough();
}

tr_status __wrap_tr_source_show(const tr_source *source, int64_t first, int64_t count, int width,
                                char **text);
tr_status __wrap_tr_source_show(const tr_source *source, int64_t first, int64_t count, int width, char **text)
{
    (void)text;
    note("%" PRId64 " from %" PRId64 " of %" PRId64 ", %d", count, first, tr_source_info(source)->count,
         width);
    return enough();
}

tr_status __wrap_tr_data_set_fetch(const char *name, const char *mirror, const char *directory,
                                   tr_data_progress progress, tr_data_report report, void *user);
tr_status __wrap_tr_data_set_fetch(const char *name, const char *mirror, const char *directory,
                                   tr_data_progress progress, tr_data_report report, void *user)
{
    (void)progress, (void)report, (void)user;
    note("%s from %s to %s", name, noted_word(mirror), directory);
    return enough();
}
