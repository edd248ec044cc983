#include "report/run.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FILE_MOST (256 << 20)

/* ---- members ---- */

static const char *text_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_TEXT ? value->text : "";
}

static int64_t integer_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_INTEGER ? value->integer : 0;
}

static double number_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    if (value && value->kind == TR_JSON_INTEGER) return (double)value->integer;
    return value && value->kind == TR_JSON_REAL ? value->real : NAN;
}

/* Room for one more element behind `count`; false without memory. Grows at powers of two. */
static bool grow(void *array_, int64_t count, size_t size)
{
    void **array = array_;
    if (count & (count - 1)) return true;
    void *block = tr_realloc(*array, count ? 2 * (size_t)count : 1, size);
    if (!block) return false;
    *array = block;
    return true;
}

/* ---- lines by event ---- */

/* A run goes on behind `step`: what was recorded of later steps will come again. */
static void rewind_to(struct tr_run *run, int64_t step)
{
    while (run->points > 0 && run->point[run->points - 1].step > step) run->points--;
    while (run->evaluations > 0 && run->evaluation[run->evaluations - 1].step > step) run->evaluations--;
    run->ended = false;
    run->resumed++;
}

static tr_status read_start(struct tr_run *run, const struct tr_json_value *line)
{
    if (run->name) rewind_to(run, integer_of(line, "step"));
    run->name = text_of(line, "name");
    run->model = text_of(line, "model");
    run->device = text_of(line, "device");
    run->strategy = text_of(line, "strategy");
    run->version = text_of(line, "version");
    run->host = text_of(line, "host");
    run->command = text_of(line, "command");
    run->settings = text_of(line, "settings");
    run->started = text_of(line, "time");
    run->seed = integer_of(line, "seed");
    run->parameters = integer_of(line, "parameters");
    run->batch = integer_of(line, "batch");
    run->microbatches = integer_of(line, "microbatches");
    run->steps = integer_of(line, "steps");
    run->steps_per_epoch = integer_of(line, "steps_per_epoch");
    run->train_examples = integer_of(line, "train_examples");
    run->ranks = integer_of(line, "ranks");
    if (run->ranks < 1) run->ranks = 1;
    return TR_OK;
}

static tr_status read_step(struct tr_run *run, const struct tr_json_value *line)
{
    if (!grow(&run->point, run->points, sizeof *run->point)) return TR_ENOMEM;
    run->point[run->points++] = (struct tr_run_point){
        .step = integer_of(line, "step"),
        .loss = number_of(line, "loss"),
        .accuracy = number_of(line, "accuracy"),
        .rate = number_of(line, "rate"),
        .norm = number_of(line, "gradient_norm"),
        .seconds = number_of(line, "seconds"),
        .speed = number_of(line, "examples_per_second"),
    };
    if (!isnan(number_of(line, "accuracy"))) run->classification = true;
    return TR_OK;
}

static tr_status read_evaluation(struct tr_run *run, const struct tr_json_value *line)
{
    if (!grow(&run->evaluation, run->evaluations, sizeof *run->evaluation)) return TR_ENOMEM;
    run->evaluation[run->evaluations++] = (struct tr_run_evaluation){
        .step = integer_of(line, "step"),
        .loss = number_of(line, "loss"),
        .accuracy = number_of(line, "accuracy"),
        .set = text_of(line, "set"),
    };
    return TR_OK;
}

static tr_status read_warning(struct tr_run *run, const struct tr_json_value *line)
{
    if (!grow(&run->warning, run->warnings, sizeof *run->warning)) return TR_ENOMEM;
    run->warning[run->warnings++] = text_of(line, "message");
    return TR_OK;
}

static tr_status read_checkpoint(struct tr_run *run, const struct tr_json_value *line)
{
    run->checkpoint = text_of(line, "path");
    return TR_OK;
}

/* What all ranks did, a member of the end. */
static tr_status read_statistics(struct tr_run *run, const struct tr_json_value *line)
{
    const struct tr_json_value *ranks = tr_json_find(line, "ranks"), *bins = tr_json_find(line, "staleness");
    run->asynchronous = bins != NULL;
    run->dropped = integer_of(line, "dropped");
    run->staleness_count = 0;
    if (bins && bins->kind == TR_JSON_ARRAY)
        for (const struct tr_json_value *bin = bins->first; bin && run->staleness_count < TR_RUN_BINS;
             bin = bin->next)
            run->staleness[run->staleness_count++] = bin->kind == TR_JSON_INTEGER ? bin->integer : 0;
    run->rank_count = 0;
    if (!ranks || ranks->kind != TR_JSON_ARRAY) return TR_OK;
    for (const struct tr_json_value *rank = ranks->first; rank; rank = rank->next) {
        if (!grow(&run->rank, run->rank_count, sizeof *run->rank)) return TR_ENOMEM;
        run->rank[run->rank_count++] = (struct tr_run_rank){
            .sent = integer_of(rank, "bytes_sent"),
            .received = integer_of(rank, "bytes_received"),
            .shared = integer_of(rank, "bytes_shared"),
            .wait = number_of(rank, "wait_seconds"),
            .compute = number_of(rank, "compute_seconds"),
        };
    }
    return TR_OK;
}

static tr_status read_end(struct tr_run *run, const struct tr_json_value *line)
{
    run->ended = true;
    run->status = text_of(line, "status");
    run->message = text_of(line, "message");
    run->hash = text_of(line, "hash");
    run->seconds = number_of(line, "seconds");
    run->speed = number_of(line, "examples_per_second");
    const struct tr_json_value *statistics = tr_json_find(line, "statistics");
    return statistics ? read_statistics(run, statistics) : TR_OK;
}

static const struct {
    const char *event;
    tr_status (*read)(struct tr_run *run, const struct tr_json_value *line);
} readers[] = {
    {"start", read_start},           {"step", read_step},
    {"evaluation", read_evaluation}, {"warning", read_warning},
    {"checkpoint", read_checkpoint}, {"end", read_end},
};

/* Other events are for other readers. */
static tr_status read_line(struct tr_run *run, const struct tr_json_value *line)
{
    const char *event = text_of(line, "event");
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (strcmp(event, readers[i].event) == 0) return readers[i].read(run, line);
    return TR_OK;
}

/* ---- the file ---- */

/* Takes a line over. Damage ends the reading, with *whole false; only lack of memory is an
   error, and what is wrong with the very first line. */
static tr_status take_line(struct tr_run *run, const char *text, size_t length, const char *where,
                           bool *whole)
{
    tr_json *line;
    tr_status status = tr_json_parse(text, length, where, &line);
    *whole = status == TR_OK;
    if (status == TR_EFORMAT && run->name) return TR_OK;
    if (status != TR_OK) return status;
    if (!grow(&run->line, run->lines, sizeof *run->line)) {
        tr_json_destroy(&line);
        return TR_ENOMEM;
    }
    run->line[run->lines++] = line;
    TR_TRY(read_line(run, tr_json_root(line)));
    if (run->name) return TR_OK;
    return tr_fail(TR_EFORMAT, "\"%s\" does not begin with the start of a run", where);
}

static tr_status take_lines(struct tr_run *run, const struct tr_file_content *content, const char *where)
{
    const char *at = content->data, *end = content->data + content->size;
    bool whole = true;
    while (whole && at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        if (!feed) break; /* not written to its end */
        TR_TRY(take_line(run, at, (size_t)(feed - at), where, &whole));
        at = feed + 1;
    }
    if (run->name) return TR_OK;
    return tr_fail(TR_EFORMAT, "\"%s\" is empty; the run was killed before it began", where);
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

tr_status tr_run_read(const char *directory, struct tr_run **out)
{
    struct tr_file_content content = {0};
    *out = NULL;
    char *path = tr_path_join(directory, TR_JOURNAL_FILE);
    struct tr_run *run = tr_alloc_zero(1, sizeof *run);
    tr_status status = path && run && (run->path = tr_strdup(directory)) ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) {
        run->seconds = run->speed = NAN;
        status = tr_file_read(path, FILE_MOST, &content);
        if (status == TR_ENOTFOUND)
            status = tr_fail(TR_ENOTFOUND, "\"%s\" is no directory of a run: it has no %s", directory,
                             TR_JOURNAL_FILE);
    }
    if (status == TR_OK) status = take_lines(run, &content, path);
    tr_file_content_free(&content);
    tr_free(path);
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
    for (int64_t i = 0; i < run->lines; i++) tr_json_destroy(&run->line[i]);
    tr_free(run->line);
    tr_free(run->point);
    tr_free(run->evaluation);
    tr_free(run->warning);
    tr_free(run->rank);
    tr_free(run->path);
    tr_free(run);
    *handle = NULL;
}
