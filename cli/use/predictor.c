#include "cli/use/predictor.h"

#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tr_status cli_predictor_create(const char *checkpoint, bool best, const struct cli_device *device,
                               const struct cli_data_cache *cache, bool average, tr_predictor **out)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    settings.checkpoint = checkpoint;
    settings.device = device->device;
    settings.threads = device->threads;
    settings.isa = device->isa;
    settings.use_average = average;
    settings.best = best;
    char *directory, *programs;
    TR_TRY(cli_data_cache_directory(cache, &directory));
    settings.data_cache = directory;
    settings.data_cache_bytes = cli_data_cache_bytes(cache);
    tr_status status = cli_program_cache_directory(directory, &programs);
    settings.program_cache = programs;
    if (status == TR_OK) status = tr_predictor_create(&settings, out);
    tr_free(programs);
    tr_free(directory);
    if (status != TR_OK) return status;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    status = tr_predictor_info(*out, &info);
    if (status != TR_OK)
        tr_predictor_destroy(out);
    else
        cli_warnings(info.skipped);
    return status;
}

tr_status cli_predictor_open(tr_predictor *predictor, const char *set_name, const char *data, tr_source **out)
{
    if (data && data[strspn(data, " \t\n")] != '{' && (strpbrk(data, "./") || tr_file_exists(data)))
        return tr_predictor_open_file(predictor, data, out);
    if (data) return tr_predictor_open_source(predictor, data, NULL, out);
    tr_status status = tr_predictor_open_data(predictor, set_name, out);
    if (status != TR_ENOTFOUND || tr_predictor_has_data(predictor, set_name)) return status;
    const char *other = tr_predictor_has_data(predictor, "validation") ? "validation" : "train";
    return tr_fail(status, "%s, or give --set-name %s", tr_error_message(), other);
}

const char *cli_class_name(const struct tr_predict_info *info, int32_t index, char buffer[16])
{
    if (info->class_names) return info->class_names[index];
    snprintf(buffer, 16, "%" PRId32, index);
    return buffer;
}
