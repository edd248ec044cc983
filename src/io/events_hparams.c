/* Hyperparameters: three values without data, whose metadata say everything. */
#include "io/events_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/parts.h"
#include "io/proto/hparams.pb-c.h"

#define PLUGIN "hparams"

static tr_status add_data(tr_events *events, const char *tag, Tensorboard__HParamsPluginData *data)
{
    return events_add_content(events, tag, PLUGIN, &data->base);
}

static Tensorboard__HParamType type_of(const struct tr_hparam *hparam)
{
    switch (hparam->kind) {
    case TR_HPARAM_NUMBER:
        return TENSORBOARD__HPARAM_TYPE__DATA_TYPE_FLOAT64;
    case TR_HPARAM_BOOL:
        return TENSORBOARD__HPARAM_TYPE__DATA_TYPE_BOOL;
    case TR_HPARAM_TEXT:
        break;
    }
    return TENSORBOARD__HPARAM_TYPE__DATA_TYPE_STRING;
}

/* Pointers to `count` elements of an array, as repeated fields want them. */
#define POINT_TO(parts, type, pointers, elements, count)                                                     \
    type *elements = tr_parts_take(parts, (size_t)(count) + 1, sizeof *elements);                            \
    type **pointers = tr_parts_take(parts, (size_t)(count) + 1, sizeof *pointers);                           \
    if ((parts)->failed) return TR_ENOMEM;                                                                   \
    for (int point_ = 0; point_ < (count); point_++) (pointers)[point_] = &(elements)[point_]

/* Which hyperparameters and metrics there are. */
static tr_status add_experiment(tr_events *events, struct tr_parts *parts, const struct tr_hparam *hparams,
                                int count, const struct tr_hparam_metric *metrics, int metric_count)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__Experiment experiment = TENSORBOARD__EXPERIMENT__INIT;
    POINT_TO(parts, Tensorboard__HParamInfo, infos, info, count);
    POINT_TO(parts, Tensorboard__MetricInfo, metric_infos, metric, metric_count);
    POINT_TO(parts, Tensorboard__MetricName, names, name, metric_count);
    for (int i = 0; i < count; i++) {
        tensorboard__hparam_info__init(&info[i]);
        info[i].name = events_text(hparams[i].name);
        info[i].type = type_of(&hparams[i]);
    }
    for (int i = 0; i < metric_count; i++) {
        tensorboard__metric_name__init(&name[i]);
        name[i].group = events_text(metrics[i].group);
        name[i].tag = events_text(metrics[i].tag);
        tensorboard__metric_info__init(&metric[i]);
        metric[i].name = names[i];
        metric[i].display_name = events_text(metrics[i].title);
        metric[i].dataset_type = metrics[i].validation
                                     ? TENSORBOARD__METRIC_INFO__DATASET_TYPE__DATASET_VALIDATION
                                     : TENSORBOARD__METRIC_INFO__DATASET_TYPE__DATASET_TRAINING;
    }
    experiment.time_created_secs = events->wall;
    experiment.n_hparam_infos = (size_t)count;
    experiment.hparam_infos = infos;
    experiment.n_metric_infos = (size_t)metric_count;
    experiment.metric_infos = metric_infos;
    data.data_case = TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_EXPERIMENT;
    data.experiment = &experiment;
    return add_data(events, "_hparams_/experiment", &data);
}

static void fill_value(Tensorboard__HParamValue *value, const struct tr_hparam *hparam)
{
    tensorboard__hparam_value__init(value);
    switch (hparam->kind) {
    case TR_HPARAM_NUMBER:
        value->kind_case = TENSORBOARD__HPARAM_VALUE__KIND_NUMBER_VALUE;
        value->number_value = hparam->number;
        break;
    case TR_HPARAM_BOOL:
        value->kind_case = TENSORBOARD__HPARAM_VALUE__KIND_BOOL_VALUE;
        value->bool_value = hparam->number != 0;
        break;
    case TR_HPARAM_TEXT:
        value->kind_case = TENSORBOARD__HPARAM_VALUE__KIND_STRING_VALUE;
        value->string_value = events_text(hparam->text);
        break;
    }
}

static tr_status add_start(tr_events *events, struct tr_parts *parts, const struct tr_hparam *hparams,
                           int count)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__SessionStartInfo start = TENSORBOARD__SESSION_START_INFO__INIT;
    POINT_TO(parts, Tensorboard__SessionStartInfo__HParamsEntry, entries, entry, count);
    POINT_TO(parts, Tensorboard__HParamValue, values, value, count);
    for (int i = 0; i < count; i++) {
        fill_value(&value[i], &hparams[i]);
        tensorboard__session_start_info__hparams_entry__init(&entry[i]);
        entry[i].key = events_text(hparams[i].name);
        entry[i].value = values[i];
    }
    start.start_time_secs = events->wall;
    start.n_hparams = (size_t)count;
    start.hparams = entries;
    data.data_case = TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &start;
    return add_data(events, "_hparams_/session_start_info", &data);
}

tr_status tr_events_session_begin(tr_events *events, const struct tr_hparam *hparams, int count,
                                  const struct tr_hparam_metric *metrics, int metric_count)
{
    struct tr_parts parts = {0};
    tr_status status = add_experiment(events, &parts, hparams, count, metrics, metric_count);
    if (status == TR_OK) status = add_start(events, &parts, hparams, count);
    tr_parts_release(&parts);
    return status;
}

tr_status tr_events_session_end(tr_events *events, bool success)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__SessionEndInfo end = TENSORBOARD__SESSION_END_INFO__INIT;
    end.status =
        success ? TENSORBOARD__SESSION_STATUS__STATUS_SUCCESS : TENSORBOARD__SESSION_STATUS__STATUS_FAILURE;
    end.end_time_secs = events->wall;
    data.data_case = TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &end;
    return add_data(events, "_hparams_/session_end_info", &data);
}
