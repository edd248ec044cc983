#include "train/evaluate/case_metrics.h"

#include "nn/losses/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

int32_t case_loss(const char *name)
{
    int32_t i = 0;
    while (tr_loss_classes.entries[i] && strcmp(tr_loss_classes.entries[i]->name, name) != 0) i++;
    assert_non_null(tr_loss_classes.entries[i]);
    return i;
}

void make_job(struct case_job *made, const char *loss, int64_t outputs, int32_t top_k)
{
    *made = (struct case_job){0};
    made->job.model = &made->model;
    made->job.train.top_k = top_k;
    made->model.output = (struct tr_shape){1, {outputs}, false};
    made->model.loss.kind = case_loss(loss);
}

double metric(const struct tr_metrics *metrics, const char *name)
{
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->metric[i].name, name) == 0) return metrics->metric[i].value;
    fail_msg("there is no metric \"%s\"", name);
    return 0;
}

bool has_metric(const struct tr_metrics *metrics, const char *name)
{
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->metric[i].name, name) == 0) return true;
    return false;
}

double of_output(const struct tr_metrics *metrics, int64_t output, const char *column)
{
    for (int c = 0; c < metrics->columns; c++)
        if (strcmp(metrics->column[c], column) == 0) return metrics->table[output * metrics->columns + c];
    fail_msg("there is no column \"%s\"", column);
    return 0;
}

void near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12)) fail_msg("%.17g is not %.17g", got, expected);
}

struct tr_metrics *measure(const struct case_job *made, int64_t examples, const struct tr_evaluated_row *rows,
                           const float *answers, double loss)
{
    struct tr_metrics *metrics;
    assert_int_equal(tr_metrics_make(&made->job, examples, rows, answers, loss, &metrics), TR_OK);
    assert_non_null(metrics);
    return metrics;
}
