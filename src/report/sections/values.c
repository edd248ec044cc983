#include "report/sections/values.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "report/draw/chart.h"
#include "report/draw/html.h"

#include <inttypes.h>
#include <stdio.h>

/* More points than these show nothing more, and make large pages. */
#define POINTS_MOST  1000
#define EXAMPLES     20000 /* most examples to predict */
#define AT_ONCE      250
#define OUTPUTS_MOST 8

struct values {
    struct tr_predict_info info;
    int64_t examples, count, stride; /* examples predicted and shown; the step between shown ones */
    float *output;                   /* [AT_ONCE][outputs] */
    float *target;                   /* [outputs] of one example */
    struct tr_chart_point *point;    /* [shown outputs][count] */
    int32_t shown;
};

static tr_status collect(struct values *values, tr_predictor *predictor, const tr_source *source)
{
    int32_t outputs = values->info.outputs;
    for (int64_t first = 0; first < values->examples; first += AT_ONCE) {
        int64_t left = values->examples - first, some = left < AT_ONCE ? left : AT_ONCE, length;
        TR_TRY(tr_predictor_source(predictor, source, first, some, values->output));
        for (int64_t i = first; i < first + some; i++) {
            if (i % values->stride) continue;
            TR_TRY(tr_source_read(source, i, NULL, 0, &length, values->target));
            for (int32_t k = 0; k < values->shown; k++)
                values->point[k * values->count + i / values->stride] = (struct tr_chart_point){
                    (double)values->target[k], (double)values->output[(i - first) * outputs + k]};
        }
    }
    return TR_OK;
}

static void show(struct tr_text *html, const char *set, const struct values *values)
{
    tr_html_elementf(html, "p", NULL,
                     "Step %" PRId64 ": predicted against true values of %" PRId64 " %s examples.",
                     values->info.step, values->count, set);
    tr_text_add(html, "<div class=\"figures\">\n");
    for (int32_t k = 0; k < values->shown; k++) {
        char title[160];
        if (values->info.class_names)
            snprintf(title, sizeof title, "Predicted %.100s", values->info.class_names[k]);
        else if (values->info.outputs > 1)
            snprintf(title, sizeof title, "Predicted value %d", (int)k);
        else
            snprintf(title, sizeof title, "Predicted value");
        tr_chart_scatter(html, title, "true value", values->point + k * values->count, values->count);
    }
    tr_text_add(html, "</div>\n");
}

tr_status tr_report_values(struct tr_text *html, tr_predictor *predictor, const char *set,
                           const tr_source *source)
{
    struct values values = {.info = TR_PREDICT_INFO_INIT};
    const struct tr_source_info *info = tr_source_info(source);
    TR_TRY(tr_predictor_info(predictor, &values.info));
    if (values.info.classification || info->labels != TR_LABEL_VALUES || info->values != values.info.outputs)
        return tr_fail(TR_EUNSUPPORTED, "they have no values to compare with");
    values.examples = info->count < EXAMPLES ? info->count : EXAMPLES;
    values.shown = values.info.outputs < OUTPUTS_MOST ? values.info.outputs : OUTPUTS_MOST;
    values.stride = (values.examples + POINTS_MOST - 1) / POINTS_MOST;
    values.count = (values.examples + values.stride - 1) / values.stride;
    values.output = tr_alloc((size_t)values.info.outputs * AT_ONCE, sizeof *values.output);
    values.target = tr_alloc((size_t)values.info.outputs, sizeof *values.target);
    values.point = tr_alloc((size_t)(values.count * values.shown), sizeof *values.point);
    tr_status status = values.output && values.target && values.point ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = collect(&values, predictor, source);
    if (status == TR_OK) show(html, set, &values);
    tr_free(values.point);
    tr_free(values.target);
    tr_free(values.output);
    return status;
}
