#include "job/file/monitor.h"

#include "base/fail.h"
#include "base/text/foreign.h"

#include <stdio.h>
#include <string.h>

#define MACRO "macro_"

const char *tr_monitor_figure(const char *monitor)
{
    if (!monitor) return "loss";
    return strncmp(monitor, MACRO, sizeof MACRO - 1) == 0 ? monitor + sizeof MACRO - 1 : monitor;
}

bool tr_monitor_rises(const char *monitor)
{
    static const char *const falling[] = {"loss", "perplexity", "mae", "rmse"};
    const char *figure = tr_monitor_figure(monitor);
    if (strncmp(figure, "mae_", 4) == 0) return false;
    for (size_t i = 0; i < sizeof falling / sizeof falling[0]; i++)
        if (strcmp(figure, falling[i]) == 0) return false;
    return true;
}

/* ---- the figures of a job ---- */

#define FIGURES_MOST (TR_LOSS_HEADS + 16)

struct figures {
    const char *name[FIGURES_MOST];
    int32_t count;
    char own[TR_LOSS_HEADS + 1][24]; /* names that contain a number */
};

static void add(struct figures *figures, const char *name)
{
    figures->name[figures->count++] = name;
}

/* Lists the metrics of train/evaluate/metrics.c; a test compares the two. */
static void list(const struct tr_job *job, struct figures *figures)
{
    const struct tr_loss *loss = &job->model->loss;
    bool answers = tr_job_has_accuracy(job), classes = tr_job_is_classification(job);
    int64_t outputs = tr_job_width(job);
    figures->count = 0;
    add(figures, "loss");
    if (answers) add(figures, "accuracy");
    if (tr_job_is_of_tokens(job)) {
        add(figures, "perplexity");
        if (job->parts.second[0]) add(figures, "exact_match");
        return;
    }
    if (tr_loss_embeds(loss)) return;
    if (tr_job_pixels(job) > 0) {
        add(figures, "mean_iou");
        add(figures, "pixel_accuracy");
        return;
    }
    for (int32_t h = 0; h < loss->head_count; h++) {
        bool right = tr_loss_class_of(&loss->head[h])->answers;
        snprintf(figures->own[h], sizeof figures->own[h], "%s_%d", right ? "accuracy" : "mae", (int)h);
        add(figures, figures->own[h]);
    }
    if (loss->head_count > 0) return;
    if (classes && job->train.top_k < outputs) {
        snprintf(figures->own[0], sizeof figures->own[0], "top_%d", (int)job->train.top_k);
        add(figures, figures->own[0]);
    }
    if (answers && !classes) add(figures, "exact_match");
    static const char *const of_answers[] = {"precision", "recall", "f1", "roc_auc"};
    static const char *const of_values[] = {"mae", "rmse", "r2"};
    for (size_t i = 0; i < sizeof of_answers / sizeof of_answers[0] && answers; i++)
        add(figures, of_answers[i]);
    for (size_t i = 0; i < sizeof of_values / sizeof of_values[0] && !answers; i++)
        add(figures, of_values[i]);
    if (tr_loss_class_of(loss)->entropy) add(figures, "perplexity");
}

/* The prefix "macro_" means a mean over classes. */
static bool is_known(const struct figures *figures, const char *monitor)
{
    static const char *const means[] = {"precision", "recall", "f1"};
    const char *figure = tr_monitor_figure(monitor);
    bool macro = figure != monitor, mean = !macro, known = false;
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) mean |= strcmp(figure, means[i]) == 0;
    for (int32_t i = 0; i < figures->count; i++) known |= strcmp(figure, figures->name[i]) == 0;
    return known && mean;
}

tr_status tr_monitor_check_name(const char *what, const char *monitor)
{
    static const char *const all[] = {"loss", "accuracy", "perplexity",    "precision", "recall",
                                      "f1",   "roc_auc",  "exact_match",   "mae",       "rmse",
                                      "r2",   "mean_iou", "pixel_accuracy"};
    static const char *const numbered[] = {"top_", "accuracy_", "mae_"};
    const char *figure = tr_monitor_figure(monitor);
    const int32_t count = sizeof all / sizeof all[0];
    int64_t number;
    for (int32_t i = 0; i < count; i++)
        if (strcmp(figure, all[i]) == 0) return TR_OK;
    for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++)
        if (strncmp(figure, numbered[i], strlen(numbered[i])) == 0 &&
            !tr_text_int64(figure + strlen(numbered[i]), &number))
            return TR_OK;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "%s ", what);
    tr_text_add_unknown(&text, monitor, all, count);
    tr_status status = text.failed ? TR_ENOMEM : tr_fail(TR_EINVAL, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

tr_status tr_monitor_check(const struct tr_job *job)
{
    const char *monitor = job->train.monitor;
    struct figures figures;
    struct tr_text text = TR_TEXT_INIT;
    if (!monitor) return TR_OK;
    list(job, &figures);
    if (is_known(&figures, monitor)) return TR_OK;
    tr_text_add(&text, "monitor: figure ");
    tr_text_add_unknown(&text, monitor, figures.name, figures.count);
    tr_text_add(&text, " (what evaluations of this network measure)");
    const tr_config *node = tr_config_get(job->file.train, "monitor");
    tr_status status =
        text.failed ? TR_ENOMEM : tr_config_fail(TR_EINVAL, node ? node : job->file.train, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}
