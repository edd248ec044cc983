#include "predictor.h"

#include "output.h"

#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>

tr_status cli_predictor_create(const char *checkpoint, const struct cli_device *device, bool average,
                               tr_predictor **out)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    settings.checkpoint = checkpoint;
    settings.device = device->device;
    settings.threads = device->threads;
    settings.isa = device->isa;
    settings.use_average = average;
    TR_TRY(tr_predictor_create(&settings, out));
    struct tr_predict_info info;
    tr_status status = tr_predictor_info(*out, &info);
    if (status != TR_OK)
        tr_predictor_destroy(out);
    else
        cli_warnings(info.skipped);
    return status;
}

tr_status cli_predictor_open(tr_predictor *predictor, const char *set_name, const char *data, tr_source **out)
{
    if (data) return tr_predictor_open_source(predictor, data, NULL, out);
    return tr_predictor_open_data(predictor, set_name, out);
}

const char *cli_class_name(const struct tr_predict_info *info, int32_t index, char buffer[16])
{
    if (info->class_names) return info->class_names[index];
    snprintf(buffer, 16, "%" PRId32, index);
    return buffer;
}
