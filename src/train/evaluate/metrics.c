/* Metrics of an evaluation.
 *
 * Classes: each class against all others; averages are over the classes that occur, as labels or as
 * answers. For a class that was never answered, or never expected, precision, recall and f1 are 0. The
 * area under the ROC curve counts pairs of an example that is of the class and one that is not, ties half
 * (Hanley, McNeil 1982); with two classes the area is that of the second.
 *
 * Texts that follow from other texts: the share of those that are right as a whole.
 *
 * Pixels: the intersection over the union of a class is of all examples together (Everingham et al. 2010),
 * its mean over the classes that occur; pixels without a label count nowhere.
 */
#include "train/evaluate/metrics.h"

#include "base/alloc.h"
#include "base/numbers/math.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most numbers to keep only for metrics: 64 MiB. */
#define FLOATS_MOST (INT64_C(1) << 24)
/* Most columns to sort, which would take longer than an evaluation should. */
#define CURVES_MOST 100
/* Most outputs to list one by one. */
#define OUTPUTS_TOLD 100
#define METRICS_MOST 8

enum column { PRECISION, RECALL, F1, SUPPORT, ROC_AUC, COLUMNS };
static const char *const class_columns[COLUMNS] = {"precision", "recall", "f1", "support", "roc_auc"};
enum { IOU, PIXEL_PRECISION, PIXEL_RECALL, PIXEL_SUPPORT, PIXEL_COLUMNS };
static const char *const pixel_columns[PIXEL_COLUMNS] = {"iou", "precision", "recall", "support"};
enum { MAE, RMSE, R2, VALUE_COLUMNS };
static const char *const value_columns[VALUE_COLUMNS] = {"mae", "rmse", "r2"};

/* The metrics, and the data they are computed from. */
struct owner {
    struct tr_metrics head;
    struct tr_metric metric[METRICS_MOST];
    char top_name[16], head_name[TR_LOSS_HEADS][24];
};

struct counts {
    int64_t hits, answered, expected;
};

struct work {
    const struct tr_job *job;
    int64_t examples, width;
    int32_t outputs;
    const struct tr_evaluated_row *rows;
    const float *answers;
    struct owner *owner;
    double *table;
    struct counts *counts; /* [outputs] */
    struct scored *scored; /* [examples] */
};

static enum column_kind {
    CLASSES,
    QUESTIONS,
    VALUES,
    HEADS,
    PIXELS,
    EMBEDDINGS
} kind_of(const struct tr_job *job)
{
    if (job->model->loss.head_count > 0) return HEADS;
    if (tr_job_pixels(job) > 0) return PIXELS;
    if (tr_loss_embeds(&job->model->loss)) return EMBEDDINGS;
    if (tr_job_is_classification(job)) return CLASSES;
    return tr_job_has_accuracy(job) ? QUESTIONS : VALUES;
}

int64_t tr_metrics_width(const struct tr_job *job, int64_t examples)
{
    int64_t outputs = tr_job_width(job), width = tr_metrics_row(job);
    bool classes = kind_of(job) == CLASSES;
    if (tr_job_is_of_tokens(job) || kind_of(job) == EMBEDDINGS) return 0;
    if (classes && outputs > CURVES_MOST) return 0;
    return examples > 0 && width <= FLOATS_MOST / examples ? width : 0;
}

int32_t tr_metrics_place(const float *score, int32_t classes, int32_t label)
{
    int32_t place = 0;
    for (int32_t k = 0; k < classes; k++)
        place += score[k] > score[label] || (k < label && score[k] == score[label]);
    return place;
}

static void add_metric(struct work *work, const char *name, double value)
{
    work->owner->metric[work->owner->head.count++] = (struct tr_metric){name, value};
}

/* ---- the ROC curve ---- */

struct scored {
    float score;
    bool positive;
};

static int by_score(const void *a, const void *b)
{
    float left = ((const struct scored *)a)->score, right = ((const struct scored *)b)->score;
    return (left > right) - (left < right);
}

/* The share of pairs in which the positive example has the greater score; ranks are counted twice, so that
   the mean rank of equals is whole. */
static double area(struct scored *scored, int64_t count)
{
    int64_t positives = 0, twice_ranks = 0;
    for (int64_t i = 0; i < count; i++) {
        positives += scored[i].positive;
        if (isnan(scored[i].score)) return NAN;
    }
    if (positives == 0 || positives == count) return NAN;
    qsort(scored, (size_t)count, sizeof *scored, by_score);
    for (int64_t first = 0, end; first < count; first = end) {
        int64_t some = 0;
        for (end = first; end < count && scored[end].score == scored[first].score; end++)
            some += scored[end].positive;
        twice_ranks += some * (first + end + 1);
    }
    double pairs = (double)positives * (double)(count - positives);
    return (double)(twice_ranks - positives * (positives + 1)) / 2 / pairs;
}

static bool is_positive(const struct work *work, int64_t example, int32_t output)
{
    if (kind_of(work->job) == CLASSES) return work->rows[example].label == output;
    return work->answers[example * work->width + work->outputs + output] > 0.5f;
}

static double area_of(const struct work *work, int32_t output)
{
    for (int64_t i = 0; i < work->examples; i++)
        work->scored[i] =
            (struct scored){work->answers[i * work->width + output], is_positive(work, i, output)};
    return area(work->scored, work->examples);
}

/* ---- right and wrong ---- */

static void count_classes(struct work *work)
{
    for (int64_t i = 0; i < work->examples; i++) {
        const struct tr_evaluated_row *row = &work->rows[i];
        work->counts[row->label].expected++;
        work->counts[row->answer].answered++;
        work->counts[row->label].hits += row->label == row->answer;
    }
}

/* Returns the fraction of examples with all answers right. */
static double count_questions(struct work *work)
{
    int64_t exact = 0;
    for (int64_t i = 0; i < work->examples; i++) {
        bool all = true;
        for (int32_t k = 0; k < work->outputs; k++) {
            bool answered = work->answers[i * work->width + k] > 0.5f, expected = is_positive(work, i, k);
            work->counts[k].answered += answered;
            work->counts[k].expected += expected;
            work->counts[k].hits += answered && expected;
            all = all && answered == expected;
        }
        exact += all;
    }
    return (double)exact / (double)work->examples;
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* The mean of a column over the outputs with `occurring`; NaN over none. */
static double mean_of(const struct work *work, int column, int columns, bool occurring)
{
    double sum = 0;
    int64_t count = 0;
    for (int32_t k = 0; k < work->outputs; k++) {
        const struct counts *counts = &work->counts[k];
        double value = work->table[(int64_t)k * columns + column];
        if ((occurring && counts->answered + counts->expected == 0) || isnan(value)) continue;
        sum += value;
        count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

static void fill_table(struct work *work)
{
    for (int32_t k = 0; k < work->outputs; k++) {
        const struct counts *counts = &work->counts[k];
        double *row = &work->table[(int64_t)k * COLUMNS];
        row[PRECISION] = share(counts->hits, counts->answered);
        row[RECALL] = share(counts->hits, counts->expected);
        row[F1] = share(2 * counts->hits, counts->answered + counts->expected);
        row[SUPPORT] = (double)counts->expected;
        row[ROC_AUC] = work->answers ? area_of(work, k) : NAN;
    }
}

static void add_averages(struct work *work, bool classes)
{
    for (int column = PRECISION; column <= F1; column++)
        add_metric(work, class_columns[column], mean_of(work, column, COLUMNS, classes));
    if (!work->answers) return;
    bool two = classes && work->outputs == 2;
    add_metric(work, class_columns[ROC_AUC],
               two ? work->table[COLUMNS + ROC_AUC] : mean_of(work, ROC_AUC, COLUMNS, false));
}

static void measure_classes(struct work *work, double loss)
{
    int32_t top = work->job->train.top_k;
    count_classes(work);
    fill_table(work);
    if (top < work->outputs) {
        int64_t among = 0;
        for (int64_t i = 0; i < work->examples; i++) among += work->rows[i].place < top;
        snprintf(work->owner->top_name, sizeof work->owner->top_name, "top_%d", (int)top);
        add_metric(work, work->owner->top_name, (double)among / (double)work->examples);
    }
    add_averages(work, true);
    if (tr_loss_class_of(&work->job->model->loss)->entropy) add_metric(work, "perplexity", tr_exp(loss));
}

static void measure_questions(struct work *work)
{
    double exact = count_questions(work);
    fill_table(work);
    add_metric(work, "exact_match", exact);
    add_averages(work, false);
}

/* ---- pixels ---- */

static void measure_pixels(struct work *work)
{
    const int32_t classes = work->outputs;
    int64_t right = 0, all = 0;
    for (int64_t i = 0; i < work->examples; i++) {
        const float *counted = work->answers + i * work->width;
        for (int32_t k = 0; k < classes; k++) {
            work->counts[k].hits += (int64_t)counted[k];
            work->counts[k].answered += (int64_t)counted[classes + k];
            work->counts[k].expected += (int64_t)counted[2 * classes + k];
        }
    }
    for (int32_t k = 0; k < classes; k++) {
        const struct counts *counts = &work->counts[k];
        double *row = &work->table[(int64_t)k * PIXEL_COLUMNS];
        row[IOU] = share(counts->hits, counts->answered + counts->expected - counts->hits);
        row[PIXEL_PRECISION] = share(counts->hits, counts->answered);
        row[PIXEL_RECALL] = share(counts->hits, counts->expected);
        row[PIXEL_SUPPORT] = (double)counts->expected;
        right += counts->hits;
        all += counts->expected;
    }
    add_metric(work, "mean_iou", mean_of(work, IOU, PIXEL_COLUMNS, true));
    add_metric(work, "pixel_accuracy", share(right, all));
}

/* ---- values ---- */

/* Two passes: distances from the mean do not cancel. A target that never changes has r2 1 where it is met,
   else 0. */
static void measure_value(const struct work *work, int32_t output, double *row)
{
    const float *answer = work->answers + output,
                *target = work->answers + work->outputs + output / tr_loss_each(&work->job->model->loss);
    double mean = 0, away = 0, squares = 0, spread = 0, count = (double)work->examples;
    for (int64_t i = 0; i < work->examples; i++) mean += (double)target[i * work->width];
    mean /= count;
    for (int64_t i = 0; i < work->examples; i++) {
        double truth = (double)target[i * work->width], d = truth - (double)answer[i * work->width];
        away += fabs(d);
        squares += d * d;
        spread += (truth - mean) * (truth - mean);
    }
    row[MAE] = away / count;
    row[RMSE] = sqrt(squares / count);
    row[R2] = spread > 0 ? 1 - squares / spread : squares > 0 ? 0 : 1;
}

static void measure_values(struct work *work)
{
    for (int32_t k = 0; k < work->outputs; k++)
        measure_value(work, k, &work->table[(int64_t)k * VALUE_COLUMNS]);
    for (int column = 0; column < VALUE_COLUMNS; column++)
        add_metric(work, value_columns[column], mean_of(work, column, VALUE_COLUMNS, false));
}

/* ---- several losses ---- */

/* For the head that begins with output `first` and target `target`: the fraction of right answers, or the
   mean distance. */
static double measure_head(const struct work *work, const struct tr_loss *head, int64_t first, int64_t target)
{
    double sum = 0;
    const struct tr_loss_class *class = tr_loss_class_of(head);
    for (int64_t i = 0; i < work->examples; i++) {
        const float *answer = work->answers + i * work->width + first;
        const float *truth = work->answers + i * work->width + work->outputs + target;
        int64_t best = 0, wanted = 0;
        for (int64_t k = 0; k < head->outputs; k++) {
            if (answer[k] > answer[best]) best = k;
            if (class->soft && truth[k] > truth[wanted]) wanted = k;
            if (class->classifies || class->soft) continue;
            double own = class->answers ? (double)((answer[k] > 0.5f) == (truth[k] > 0.5f))
                                        : fabs((double)truth[k / tr_loss_each(head)] - (double)answer[k]);
            sum += own / (double)head->outputs;
        }
        if (class->classifies) sum += (double)((float)best == *truth);
        if (class->soft) sum += (double)(best == wanted);
    }
    return sum / (double)work->examples;
}

static void measure_heads(struct work *work)
{
    const struct tr_loss *loss = &work->job->model->loss;
    int64_t first = 0, target = 0;
    for (int32_t h = 0; h < loss->head_count; h++) {
        const struct tr_loss *head = &loss->head[h];
        const struct tr_loss_class *class = tr_loss_class_of(head);
        char *name = work->owner->head_name[h];
        snprintf(name, sizeof work->owner->head_name[h], "%s_%d", class->answers ? "accuracy" : "mae",
                 (int)h);
        add_metric(work, name, measure_head(work, head, first, target));
        first += head->outputs;
        target += tr_loss_head_targets(head);
    }
}

/* ---- all ---- */

static void measure(struct work *work, double loss)
{
    struct tr_metrics *head = &work->owner->head;
    enum column_kind kind = kind_of(work->job);
    head->metric = work->owner->metric;
    head->outputs = work->outputs;
    head->table = work->table;
    const struct tr_string_list *names = &work->job->input.classes;
    if (names->count == work->outputs) head->name = (const char *const *)names->item;
    head->columns = kind == HEADS    ? 0
                    : kind == VALUES ? VALUE_COLUMNS
                    : kind == PIXELS ? PIXEL_COLUMNS
                                     : COLUMNS;
    head->column = kind == VALUES ? value_columns : kind == PIXELS ? pixel_columns : class_columns;
    if (kind == PIXELS)
        measure_pixels(work);
    else if (kind == HEADS)
        measure_heads(work);
    else if (kind == CLASSES)
        measure_classes(work, loss);
    else if (kind == QUESTIONS)
        measure_questions(work);
    else
        measure_values(work);
}

/* The share of texts whose tokens are all right. Each token is judged after the true ones before it; where
   all are right, they are those that the network writes by itself. */
static tr_status of_texts(const struct tr_job *job, int64_t examples, const struct tr_evaluated_row *rows,
                          struct tr_metrics **out)
{
    struct work work = {.job = job};
    int64_t right = 0;
    if (examples == 0) return TR_OK;
    for (int64_t i = 0; i < examples; i++) right += rows[i].correct >= rows[i].labels;
    if (!(work.owner = tr_alloc_zero(1, sizeof *work.owner))) return TR_ENOMEM;
    work.owner->head.metric = work.owner->metric;
    add_metric(&work, "exact_match", (double)right / (double)examples);
    *out = &work.owner->head;
    return TR_OK;
}

tr_status tr_metrics_make(const struct tr_job *job, int64_t examples, const struct tr_evaluated_row *rows,
                          const float *answers, double loss, struct tr_metrics **out)
{
    struct work work = {.job = job, .examples = examples, .rows = rows, .answers = answers};
    *out = NULL;
    work.outputs = (int32_t)tr_job_width(job);
    work.width = tr_metrics_width(job, examples);
    if (tr_job_is_of_tokens(job)) return job->parts.second[0] ? of_texts(job, examples, rows, out) : TR_OK;
    if (examples == 0 || (!answers && kind_of(job) != CLASSES)) return TR_OK;
    work.owner = tr_alloc_zero(1, sizeof *work.owner);
    work.table = tr_alloc_zero((size_t)work.outputs, COLUMNS * sizeof *work.table);
    work.counts = tr_alloc_zero((size_t)work.outputs, sizeof *work.counts);
    work.scored = tr_alloc((size_t)examples, sizeof *work.scored);
    bool complete = work.owner && work.table && work.counts && work.scored;
    if (complete) {
        measure(&work, loss);
        *out = &work.owner->head;
    } else {
        tr_free(work.table);
        tr_free(work.owner);
    }
    tr_free(work.counts);
    tr_free(work.scored);
    return complete ? TR_OK : TR_ENOMEM;
}

void tr_metrics_destroy(struct tr_metrics **handle)
{
    struct tr_metrics *metrics = *handle;
    *handle = NULL;
    if (!metrics) return;
    tr_free((void *)(uintptr_t)metrics->table);
    tr_free(metrics); /* the head of an owner */
}

void tr_metrics_add(struct tr_json_writer *json, const struct tr_metrics *metrics)
{
    if (!metrics) return;
    tr_json_open_object(json, "metrics");
    for (int i = 0; i < metrics->count; i++)
        tr_json_double(json, metrics->metric[i].name, metrics->metric[i].value);
    tr_json_close_object(json);
    if (metrics->columns == 0 || metrics->outputs > OUTPUTS_TOLD || metrics->outputs < 2) return;
    tr_json_open_object(json, "outputs");
    if (metrics->name) {
        tr_json_open_array(json, "name");
        for (int64_t k = 0; k < metrics->outputs; k++) tr_json_text(json, NULL, metrics->name[k]);
        tr_json_close_array(json);
    }
    for (int c = 0; c < metrics->columns; c++) {
        tr_json_open_array(json, metrics->column[c]);
        for (int64_t k = 0; k < metrics->outputs; k++)
            tr_json_double(json, NULL, metrics->table[k * metrics->columns + c]);
        tr_json_close_array(json);
    }
    tr_json_close_object(json);
}
