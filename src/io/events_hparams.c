/* Hyperparameters: two values without data, whose metadata contain everything. TensorBoard knows a third
 * kind, which lists the hyperparameters and metrics of all runs. It is left out: TensorBoard then
 * determines these itself, and which of them differ.
 */
#include "io/events_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "io/region.h"
#include "io/proto/hparams.pb-c.h"

#define PLUGIN "hparams"

static tr_status add_data(tr_events *events, const char *tag, Tensorboard__HParamsPluginData *data)
{
    return events_add_content(events, tag, PLUGIN, &data->base);
}

/* Pointers to `count` elements of an array, the form of repeated fields. */
#define POINT_TO(region, type, pointers, elements, count)                                                    \
    type *elements = tr_region_take(region, (size_t)(count) + 1, sizeof *elements);                          \
    type **pointers = tr_region_take(region, (size_t)(count) + 1, sizeof *pointers);                         \
    if ((region)->failed) return TR_ENOMEM;                                                                  \
    for (int point_ = 0; point_ < (count); point_++) (pointers)[point_] = &(elements)[point_]

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

static tr_status add_start(tr_events *events, struct tr_region *region, const struct tr_hparam *hparams,
                           int count)
{
    Tensorboard__HParamsPluginData data = TENSORBOARD__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__SessionStartInfo start = TENSORBOARD__SESSION_START_INFO__INIT;
    POINT_TO(region, Tensorboard__SessionStartInfo__HParamsEntry, entries, entry, count);
    POINT_TO(region, Tensorboard__HParamValue, values, value, count);
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

tr_status tr_events_session_begin(tr_events *events, const struct tr_hparam *hparams, int count)
{
    struct tr_region region = {0};
    tr_status status = add_start(events, &region, hparams, count);
    tr_region_release(&region);
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
