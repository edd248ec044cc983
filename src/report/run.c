#include "report/run.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/ops.h"

#include "strategy/updates/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FILE_MOST (256 << 20)

/* ---- lines by event ---- */

/* A run continues after `step`: later steps will be recorded again. */
static void rewind_to(struct tr_run *run, int64_t step)
{
    while (run->points > 0 && run->point[run->points - 1].step > step) run->points--;
    while (run->evaluations > 0 && run->evaluation[run->evaluations - 1].step > step) run->evaluations--;
    run->ended = false;
    run->status = run->message = run->hash = NULL; /* of the earlier session */
    run->seconds = run->speed = run->tokens = NAN;
    run->resumed++;
}

static tr_status read_start(struct tr_run *run, const struct tr_json_value *line)
{
    if (run->name) rewind_to(run, tr_json_integer_or(line, "step", 0));
    run->name = tr_json_text_or_empty(line, "name");
    run->model = tr_json_text_or_empty(line, "model");
    run->device = tr_json_text_or_empty(line, "device");
    run->strategy = tr_json_text_or_empty(line, "strategy");
    run->version = tr_json_text_or_empty(line, "version");
    run->host = tr_json_text_or_empty(line, "host");
    run->command = tr_json_text_or_empty(line, "command");
    run->settings = tr_json_text_or_empty(line, "settings");
    run->settings_text = tr_json_text_or_empty(line, "settings_text");
    run->strategy_options = tr_json_text_or_empty(line, "strategy_options");
    run->started = tr_json_text_or_empty(line, "time");
    run->step = tr_json_integer_or(line, "step", 0);
    double smoothing = tr_json_number_or_nan(line, "label_smoothing");
    run->label_smoothing = isnan(smoothing) ? 0 : smoothing;
    run->seed = tr_json_integer_or(line, "seed", 0);
    run->parameters = tr_json_integer_or(line, "parameters", 0);
    run->batch = tr_json_integer_or(line, "batch", 0);
    run->microbatches = tr_json_integer_or(line, "microbatches", 0);
    run->steps = tr_json_integer_or(line, "steps", 0);
    run->ranks = tr_json_integer_or(line, "ranks", 0);
    if (run->ranks < 1) run->ranks = 1;
    return TR_OK;
}

static tr_status read_step(struct tr_run *run, const struct tr_json_value *line)
{
    run->step = tr_json_integer_or(line, "step", 0);
    if (!tr_grow(&run->point, run->points, sizeof *run->point)) return TR_ENOMEM;
    run->point[run->points++] = (struct tr_run_point){
        .step = run->step,
        .loss = tr_json_number_or_nan(line, "loss"),
        .accuracy = tr_json_number_or_nan(line, "accuracy"),
        .rate = tr_json_number_or_nan(line, "rate"),
        .norm = tr_json_number_or_nan(line, "gradient_norm"),
        .seconds = tr_json_number_or_nan(line, "seconds"),
        .speed = tr_json_number_or_nan(line, "examples_per_second"),
    };
    if (!isnan(tr_json_number_or_nan(line, "accuracy"))) run->classification = true;
    return TR_OK;
}

static const struct tr_json_value *object_or_null(const struct tr_json_value *line, const char *key)
{
    const struct tr_json_value *value = tr_json_find(line, key);
    return value && value->kind == TR_JSON_OBJECT ? value : NULL;
}

static tr_status read_evaluation(struct tr_run *run, const struct tr_json_value *line)
{
    if (!tr_grow(&run->evaluation, run->evaluations, sizeof *run->evaluation)) return TR_ENOMEM;
    run->evaluation[run->evaluations++] = (struct tr_run_evaluation){
        .step = tr_json_integer_or(line, "step", 0),
        .loss = tr_json_number_or_nan(line, "loss"),
        .accuracy = tr_json_number_or_nan(line, "accuracy"),
        .perplexity = tr_json_number_or_nan(line, "perplexity"),
        .set = tr_json_text_or_empty(line, "set"),
        .metrics = object_or_null(line, "metrics"),
        .outputs = object_or_null(line, "outputs"),
    };
    return TR_OK;
}

static tr_status read_warning(struct tr_run *run, const struct tr_json_value *line)
{
    if (!tr_grow(&run->warning, run->warnings, sizeof *run->warning)) return TR_ENOMEM;
    run->warning[run->warnings++] = tr_json_text_or_empty(line, "message");
    return TR_OK;
}

static tr_status read_checkpoint(struct tr_run *run, const struct tr_json_value *line)
{
    run->checkpoint = tr_json_text_or_empty(line, "path");
    return TR_OK;
}

static tr_status read_shares(struct tr_run *run, const struct tr_json_value *line)
{
    run->shares = tr_json_text_or_empty(line, "message");
    return TR_OK;
}

/* The figures of all ranks, a member of the last event. */
static tr_status read_statistics(struct tr_run *run, const struct tr_json_value *line)
{
    const struct tr_json_value *ranks = tr_json_find(line, "ranks"), *bins = tr_json_find(line, "staleness");
    run->asynchronous = bins != NULL;
    run->dropped = tr_json_integer_or(line, "dropped", 0);
    run->staleness_count = 0;
    if (bins && bins->kind == TR_JSON_ARRAY)
        for (const struct tr_json_value *bin = bins->first; bin && run->staleness_count < TR_RUN_BINS;
             bin = bin->next)
            run->staleness[run->staleness_count++] = bin->kind == TR_JSON_INTEGER ? bin->integer : 0;
    run->rank_count = 0;
    if (!ranks || ranks->kind != TR_JSON_ARRAY) return TR_OK;
    for (const struct tr_json_value *rank = ranks->first; rank; rank = rank->next) {
        if (!tr_grow(&run->rank, run->rank_count, sizeof *run->rank)) return TR_ENOMEM;
        run->rank[run->rank_count++] = (struct tr_run_rank){
            .sent = tr_json_integer_or(rank, "bytes_sent", 0),
            .received = tr_json_integer_or(rank, "bytes_received", 0),
            .shared = tr_json_integer_or(rank, "bytes_shared", 0),
            .wait = tr_json_number_or_nan(rank, "wait_seconds"),
            .compute = tr_json_number_or_nan(rank, "compute_seconds"),
        };
    }
    return TR_OK;
}

static void read_best(struct tr_run *run, const struct tr_json_value *best)
{
    run->best = (struct tr_run_evaluation){
        .step = tr_json_integer_or(best, "step", 0),
        .loss = tr_json_number_or_nan(best, "loss"),
        .accuracy = tr_json_number_or_nan(best, "accuracy"),
        .set = tr_json_text_or_empty(best, "set"),
    };
}

static tr_status read_end(struct tr_run *run, const struct tr_json_value *line)
{
    run->ended = true;
    run->step = tr_json_integer_or(line, "step", run->step);
    run->status = tr_json_text_or_empty(line, "status");
    run->message = tr_json_text_or_empty(line, "message");
    run->hash = tr_json_text_or_empty(line, "hash");
    run->seconds = tr_json_number_or_nan(line, "seconds");
    run->speed = tr_json_number_or_nan(line, "examples_per_second");
    run->tokens = tr_json_number_or_nan(line, "tokens_per_second");
    const struct tr_json_value *statistics = tr_json_find(line, "statistics");
    const struct tr_json_value *best = tr_json_find(line, "best");
    run->best = (struct tr_run_evaluation){0};
    if (best && best->kind == TR_JSON_OBJECT) read_best(run, best);
    return statistics ? read_statistics(run, statistics) : TR_OK;
}

static const struct {
    const char *event;
    tr_status (*read)(struct tr_run *run, const struct tr_json_value *line);
} readers[] = {
    {"start", read_start},
    {"step", read_step},
    {"evaluation", read_evaluation},
    {"warning", read_warning},
    {"checkpoint", read_checkpoint},
    {"shares", read_shares},
    {"end", read_end},
};

/* Other events are for other readers. */
static tr_status read_line(struct tr_run *run, const struct tr_json_value *line)
{
    const char *event = tr_json_text_or_empty(line, "event");
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (strcmp(event, readers[i].event) == 0) return readers[i].read(run, line);
    return TR_OK;
}

/* ---- the file ---- */

static tr_status take_lines(struct tr_run *run, const char *where)
{
    if (run->lines.count == 0)
        return tr_fail(TR_EFORMAT, "\"%s\" has not one whole line; the run was killed before it began",
                       where);
    for (int64_t i = 0; i < run->lines.count; i++) {
        TR_TRY(read_line(run, tr_json_root(run->lines.line[i])));
        if (!run->name) return tr_fail(TR_EFORMAT, "\"%s\" does not begin with the start of a run", where);
    }
    return TR_OK;
}

static void fill_blanks(struct tr_run *run)
{
    const char **texts[] = {&run->status, &run->message, &run->hash, &run->checkpoint};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!*texts[i]) *texts[i] = "";
    if (run->ended || run->points == 0) return;
    run->seconds = run->point[run->points - 1].seconds;
    run->speed = run->point[run->points - 1].speed;
}

/* The log of updates, where it can be read, covers all sessions of an asynchronous run; the journal only
   those that ended normally. */
static tr_status read_updates(struct tr_run *run)
{
    struct tr_update_log log = {0};
    struct tr_update_figures figures;
    char *path = tr_path_join(run->path, TR_UPDATE_FILE);
    tr_status status = path ? tr_update_file_read(path, &log, NULL) : TR_ENOMEM;
    tr_free(path);
    if (status != TR_OK) return status == TR_ENOMEM ? status : TR_OK;
    tr_update_log_count(&log, &figures);
    tr_update_log_release(&log);
    run->asynchronous = true;
    run->dropped = figures.dropped;
    run->staleness_count = TR_UPDATE_BINS;
    memcpy(run->staleness, figures.staleness, sizeof run->staleness);
    return TR_OK;
}

/* A directory of runs is easily mistaken for one of them. */
static tr_status fail_no_run(const char *directory)
{
    struct tr_file_names names = {0};
    char *within = NULL;
    if (tr_file_list(NULL, directory, &names) != TR_OK) names = (struct tr_file_names){0};
    for (int64_t i = 0; i < names.count && !within; i++) {
        char *run = tr_path_join(directory, names.name[i]);
        char *journal = run ? tr_path_join(run, TR_JOURNAL_FILE) : NULL;
        if (journal && tr_file_exists(journal)) within = run;
        if (within != run) tr_free(run);
        tr_free(journal);
    }
    tr_file_names_free(&names);
    if (within)
        tr_fail(TR_ENOTFOUND,
                "\"%s\" is not the directory of a run, but contains some, such as \"%s\"; name these",
                directory, within);
    else
        tr_fail(TR_ENOTFOUND, "\"%s\" is not the directory of a run: it has no %s", directory,
                TR_JOURNAL_FILE);
    tr_free(within);
    return TR_ENOTFOUND;
}

tr_status tr_run_read(const char *directory, struct tr_run **out)
{
    *out = NULL;
    char *path = tr_path_join(directory, TR_JOURNAL_FILE);
    struct tr_run *run = tr_alloc_zero(1, sizeof *run);
    tr_status status = path && run && (run->path = tr_strdup(directory)) ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        run->seconds = run->speed = run->tokens = NAN;
        status = tr_json_lines_read(path, FILE_MOST, &run->lines);
        if (status == TR_ENOTFOUND) status = fail_no_run(directory);
    }
    if (status == TR_OK) status = take_lines(run, path);
    tr_free(path);
    if (status == TR_OK) status = read_updates(run);
    if (status == TR_OK) {
        fill_blanks(run);
        *out = run;
    } else {
        tr_run_destroy(&run);
    }
    return status;
}

void tr_run_destroy(struct tr_run **handle)
{
    struct tr_run *run = *handle;
    if (!run) return;
    tr_json_lines_release(&run->lines);
    tr_free(run->point);
    tr_free(run->evaluation);
    tr_free(run->warning);
    tr_free(run->rank);
    tr_free(run->path);
    tr_free(run);
    *handle = NULL;
}
