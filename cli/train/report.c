#include "cli/train/report.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "checkpoint/checkpoint.h"
#include "cli/program/command_line.h"
#include "cli/terminal/output.h"
#include "cli/train/profile.h"
#include "cli/train/report_json.h"
#include "cli/train/statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trireme/trireme.h"

/* ---- figures ---- */

/* Examples in the first `steps` steps. */
static int64_t examples_until(const struct tr_train_info *info, int64_t steps)
{
    int64_t per_epoch = info->steps_per_epoch * info->batch;
    if (per_epoch > info->train_examples) per_epoch = info->train_examples;
    int64_t rest = steps % info->steps_per_epoch * info->batch;
    return steps / info->steps_per_epoch * per_epoch + (rest < per_epoch ? rest : per_epoch);
}

double cli_report_speed(const struct cli_report *report)
{
    if (report->last.seconds <= 0) return 0;
    int64_t examples =
        examples_until(&report->info, report->last.step) - examples_until(&report->info, report->info.step);
    return (double)examples / report->last.seconds;
}

/* A single step tells how long steps take when it took this many seconds; else memory and caches that it
   found cold do. */
#define TELLING 1.0

/* By the mean time of a step since the first event, which had the cold start; negative while there is none.
 */
static double seconds_left(const struct cli_report *report, const struct tr_train_event *event)
{
    const struct tr_train_event *first = &report->first;
    int64_t done = event->step - report->info.step;
    double seconds = event->seconds;
    if (event->step > first->step && event->seconds > first->seconds) {
        done = event->step - first->step;
        seconds -= first->seconds;
    } else if (done <= 0 || (done == 1 && seconds < TELLING) || seconds <= 0) {
        return -1;
    }
    return seconds / (double)done * (double)(event->steps - event->step);
}

static double shown_accuracy(const struct cli_report *report, const struct tr_train_event *event)
{
    return report->info.classification ? event->accuracy : NAN;
}

/* ---- lines for people ---- */

/* Writes a line built in `text` and empties it. */
static void put(struct cli_report *report, struct tr_text *text)
{
    if (!text->failed && text->bytes) cli_screen_line(&report->screen, text->bytes);
    tr_text_release(text);
}

__attribute__((format(printf, 3, 4))) static void put_fact(struct cli_report *report, const char *label,
                                                           const char *format, ...);

static void put_fact(struct cli_report *report, const char *label, const char *format, ...)
{
    char value[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "%-12s%s", label, value);
    put(report, &text);
}

/* What all processes of the host take together. */
static void put_memory(struct cli_report *report)
{
    const struct tr_train_info *info = &report->info;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE], processes[48] = "";
    bool in_memory = info->data_memory > 0;
    if (info->host_processes > 1)
        snprintf(processes, sizeof processes, " for %d processes", info->host_processes);
    put_fact(report, "memory", "%s%s%s%s, of %s%s", tr_text_from_bytes(info->host_memory, a), processes,
             in_memory ? ", data " : "", in_memory ? tr_text_from_bytes(info->data_memory, b) : "",
             info->free_memory == INT64_MAX ? "an unknown amount" : tr_text_from_bytes(info->free_memory, c),
             info->free_memory == INT64_MAX ? "" : " free");
}

static void put_head(struct cli_report *report)
{
    const struct tr_train_info *info = &report->info;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE];
    put_fact(report, "trireme", "%s", tr_version());
    put_fact(report, "job", "%s%s%s%s", info->name, *info->model ? " (" : "", info->model,
             *info->model ? ")" : "");
    put_fact(report, "device", "%s", info->device);
    if (info->kept < info->parameters)
        put_fact(report, "network", "%s parameters, %s of them and %s of memory on process %d",
                 tr_text_from_count(info->parameters, a), tr_text_from_count(info->kept, c),
                 tr_text_from_bytes(info->memory, b), info->rank);
    else
        put_fact(report, "network", "%s parameters, %s of memory", tr_text_from_count(info->parameters, a),
                 tr_text_from_bytes(info->memory, b));
    put_memory(report);
    if (info->test_examples > 0)
        put_fact(report, "data", "%s examples, %s to test", tr_text_from_count(info->train_examples, a),
                 tr_text_from_count(info->test_examples, b));
    else
        put_fact(report, "data", "%s examples, none to test", tr_text_from_count(info->train_examples, a));
    put_fact(report, "batch", "%s in %s microbatch%s", tr_text_from_count(info->batch, a),
             tr_text_from_count(info->microbatches, b), info->microbatches == 1 ? "" : "es");
    put_fact(report, "steps", "%s, %s an epoch (%.4g epochs)", tr_text_from_count(info->steps, a),
             tr_text_from_count(info->steps_per_epoch, c),
             (double)info->steps / (double)info->steps_per_epoch);
    if (info->label_smoothing > 0)
        put_fact(report, "loss", "of steps with label smoothing %.4g, of evaluations without",
                 info->label_smoothing);
    put_fact(report, "seed", "%" PRIu64, info->seed);
    put_fact(report, "output", "%s", report->out);
    char *word = *info->tensorboard ? tr_text_word(info->tensorboard) : NULL;
    if (word) put_fact(report, "events", "%s (tensorboard --logdir %s)", info->tensorboard, word);
    tr_free(word);
    if (*info->resumed) put_fact(report, "resumed", "%s, step %" PRId64, info->resumed, info->step);
    for (const char *line = info->start, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        put_fact(report, "begins with", "%.*s", (int)(end - line), line);
    }
}

/* "step   100/20001": aligned over a run. */
static void add_step(struct tr_text *text, const struct tr_train_event *event)
{
    char total[24];
    int width = snprintf(total, sizeof total, "%" PRId64, event->steps);
    if (event->step <= event->steps)
        tr_text_addf(text, "step %*" PRId64 "/%s", width, event->step, total);
    else /* it went on from more steps than it was asked for */
        tr_text_addf(text, "step %" PRId64, event->step);
}

static void add_loss(struct cli_report *report, struct tr_text *text, const struct tr_train_event *event)
{
    char figure[CLI_FIGURE_SIZE];
    tr_text_addf(text, "  loss %s", cli_figure(event->loss, figure));
    if (report->info.classification) tr_text_addf(text, "  accuracy %.4f", event->accuracy);
    if (!isnan(event->perplexity)) tr_text_addf(text, "  perplexity %.4g", event->perplexity);
}

static void put_step(struct cli_report *report, const struct tr_train_event *event)
{
    char figure[TR_TEXT_NUMBER_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    add_loss(report, &text, event);
    tr_text_addf(&text, "  examples/s %.0f", event->examples_per_second);
    if (!isnan(event->tokens_per_second)) tr_text_addf(&text, "  tokens/s %.0f", event->tokens_per_second);
    double left = seconds_left(report, event);
    if (left > 0) tr_text_addf(&text, "  %s left", tr_text_from_seconds(left, figure));
    put(report, &text);
}

static void put_evaluation(struct cli_report *report, const struct tr_train_event *event)
{
    char figure[TR_TEXT_NUMBER_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    add_loss(report, &text, event);
    tr_text_addf(&text, "  on %s (%s examples)", event->name, tr_text_from_count(event->examples, figure));
    if (event->best) tr_text_add(&text, ", the best so far");
    put(report, &text);
}

static void put_checkpoint(struct cli_report *report, const struct tr_train_event *event)
{
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    tr_text_addf(&text, "  saved %s", event->name);
    put(report, &text);
}

static void put_shares(struct cli_report *report, const struct tr_train_event *event)
{
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    tr_text_addf(&text, "  %s", event->name);
    put(report, &text);
}

static struct cli_progress progress_of(const struct cli_report *report, const struct tr_train_event *event)
{
    return (struct cli_progress){
        .step = event->step,
        .steps = event->steps,
        .loss = event->loss,
        .accuracy = shown_accuracy(report, event),
        .examples_per_second = cli_report_speed(report),
        .seconds_left = seconds_left(report, event),
    };
}

/* ---- the run ---- */

tr_status cli_report_begin(struct cli_report *report)
{
    report->info = (struct tr_train_info)TR_TRAIN_INFO_INIT;
    TR_TRY(tr_trainer_info(report->trainer, &report->info));
    report->out_word = tr_text_word(report->out);
    if (!report->out_word) return TR_ENOMEM;
    bool json = report->log == CLI_LOG_JSON;
    cli_screen_begin(&report->screen, json ? stderr : stdout);
    if (report->quiet) report->screen.interactive = false;
    if (report->later) return TR_OK;
    if (!report->quiet) put_head(report);
    cli_warnings(report->info.resume_note);
    char *command = cli_command_line(report->info.ranks);
    tr_status status = command ? tr_trainer_note_command(report->trainer, command) : TR_ENOMEM;
    if (status == TR_OK) cli_json_start(report, command);
    tr_free(command);
    cli_output_flush();
    if (status != TR_OK) {
        tr_free(report->out_word);
        report->out_word = NULL;
    }
    return status;
}

/* Remembers what the summary needs. */
static void remember(struct cli_report *report, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_STEP || event->kind == TR_EVENT_PROGRESS) {
        report->last = *event;
        if (report->first.steps == 0) report->first = *event;
    }
    if (event->kind == TR_EVENT_EVALUATION) {
        report->test = *event;
        snprintf(report->test_name, sizeof report->test_name, "%s", event->name);
    }
    if (event->kind == TR_EVENT_CHECKPOINT) {
        tr_free(report->checkpoint);
        report->checkpoint = tr_strdup(event->name); /* NULL: the summary leaves it out */
    }
}

void cli_report_event(void *user, const struct tr_train_event *event)
{
    struct cli_report *report = user;
    remember(report, event);
    bool lines = report->log == CLI_LOG_TEXT && !report->quiet;
    struct cli_progress progress = progress_of(report, event);
    switch (event->kind) {
    case TR_EVENT_STEP:
        cli_screen_renew(&report->screen, &progress);
        if (lines) put_step(report, event);
        cli_screen_progress(&report->screen, &progress);
        break;
    case TR_EVENT_PROGRESS:
        cli_screen_progress(&report->screen, &progress);
        break;
    case TR_EVENT_EVALUATION:
        if (lines) put_evaluation(report, event);
        break;
    case TR_EVENT_CHECKPOINT:
        if (lines) put_checkpoint(report, event);
        break;
    case TR_EVENT_WARNING:
        cli_warnings(event->name);
        break;
    case TR_EVENT_SHARES:
        if (lines) put_shares(report, event);
        break;
    case TR_EVENT_END:
        break;
    }
    cli_json_event(report, event);
    if (!cli_output_flush() && !report->broken) {
        report->broken = true;
        tr_trainer_stop(report->trainer);
    }
}

/* What several processes did, as the lines of the summary are. */
static void put_statistics(struct cli_report *report)
{
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    struct tr_text text = TR_TEXT_INIT;
    if (tr_trainer_statistics(report->trainer, &statistics) != TR_OK) return;
    cli_statistics_text(&statistics, report->last.seconds, &text);
    if (text.length > 0) text.bytes[text.length - 1] = '\0'; /* put() ends the line */
    put(report, &text);
}

/* Which evaluation was the best, where the run kept it. */
static void put_best(struct cli_report *report, const struct tr_train_info *now)
{
    char step[TR_TEXT_NUMBER_SIZE], figure[CLI_FIGURE_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    if (now->best_step < 0) return;
    tr_text_addf(&text, "%-12sstep %s, ", "best", tr_text_from_count(now->best_step, step));
    if (now->classification) tr_text_addf(&text, "accuracy %.4f, ", now->best_accuracy);
    tr_text_addf(&text, "loss %s on %s (%s/" TR_CHECKPOINT_BEST ")", cli_figure(now->best_loss, figure),
                 now->best_set, report->out);
    put(report, &text);
}

/* A run that had ended before it was resumed. */
static void put_complete(struct cli_report *report, const struct tr_train_info *now)
{
    char done[TR_TEXT_NUMBER_SIZE], wanted[TR_TEXT_NUMBER_SIZE];
    tr_text_from_count(now->step, done);
    tr_text_from_count(now->steps, wanted);
    if (now->step < now->steps)
        put_fact(report, "done", "nothing is left to do: the run ended early, after %s of %s steps", done,
                 wanted);
    else if (now->step == now->steps)
        put_fact(report, "done", "nothing is left to do: all %s steps were done; --steps takes more", done);
    else
        put_fact(report, "done", "nothing is left to do: %s steps were done, more than the %s asked for",
                 done, wanted);
}

static void put_summary(struct cli_report *report, tr_status status, const struct tr_train_info *now,
                        const char *hash)
{
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE], d[TR_TEXT_NUMBER_SIZE];
    char figure[CLI_FIGURE_SIZE];
    if (report->test.examples > 0 && status == TR_OK) {
        cli_figure(report->test.loss, figure);
        const char *examples = tr_text_from_count(report->test.examples, a);
        if (!isnan(report->test.perplexity))
            put_fact(report, report->test_name, "perplexity %.4g, accuracy %.4f, loss %s (%s examples)",
                     report->test.perplexity, report->test.accuracy, figure, examples);
        else if (report->info.classification)
            put_fact(report, report->test_name, "accuracy %.4f, loss %s (%s examples)", report->test.accuracy,
                     figure, examples);
        else
            put_fact(report, report->test_name, "loss %s (%s examples)", figure, examples);
    }
    int64_t done = report->last.step - report->info.step;
    const double examples = cli_report_speed(report), tokens = examples * now->tokens_per_example;
    const char *per_second = isnan(tokens) ? "" : tr_text_from_count((int64_t)(tokens + 0.5), d);
    if (done > 0)
        put_fact(report, "trained", "%s step%s in %s, %s examples/s%s%s%s", tr_text_from_count(done, a),
                 done == 1 ? "" : "s", tr_text_from_seconds(report->last.seconds, b),
                 tr_text_from_count((int64_t)(examples + 0.5), c), *per_second ? ", " : "", per_second,
                 *per_second ? " tokens/s" : "");
    else if (*now->resumed && status == TR_OK)
        put_complete(report, now);
    if (*hash) put_statistics(report);
    if (*hash) put_fact(report, "hash", "%s", hash);
    put_best(report, now);
    if (report->checkpoint) put_fact(report, "checkpoint", "%s", report->checkpoint);
    if (status == TR_OK)
        put_fact(report, "next", "trireme %s %s%s%s", report->info.test_examples > 0 ? "predict" : "inspect",
                 report->out_word, report->info.test_examples > 0 && now->best_step >= 0 ? " --best" : "",
                 report->info.test_examples > 0 ? " --set-name test --index 0,1,2 --show" : "");
}

/* What a run that was stopped from outside ends with. */
static tr_status stopped(struct cli_report *report, int64_t step)
{
    char *how =
        tr_format("stopped after step %" PRId64 " of %" PRId64 "; `trireme train --resume %s` goes on", step,
                  report->info.steps, report->out_word);
    if (!how) return TR_ENOMEM;
    tr_status status = report->broken ? tr_fail(TR_EIO, "standard output could not be written; %s", how)
                                      : tr_fail(TR_EINTERRUPTED, "%s", how);
    tr_free(how);
    return status;
}

static void put_profile(struct cli_report *report)
{
    const struct tr_train_profile *profile;
    if (!report->profiles || tr_trainer_profile(report->trainer, &profile) != TR_OK) return;
    if (report->log == CLI_LOG_JSON) cli_profile_json(profile);
    if (report->quiet || report->broken) return;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "\n");
    cli_profile_text(profile, &text);
    put(report, &text);
}

/* Steps after the last event were trained as well. The message of a failure stays. */
static void note_end(struct cli_report *report, tr_status status, struct tr_train_info *now)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    if (tr_trainer_info(report->trainer, now) == TR_OK) {
        report->last.step = now->step;
        report->last.seconds = now->seconds;
    }
    tr_failure_restore(&how);
}

tr_status cli_report_end(struct cli_report *report, tr_status status)
{
    struct tr_train_info now = report->info;
    char hash[65] = "";
    note_end(report, status, &now);
    tr_status facts = TR_OK;
    if (status == TR_OK || status == TR_EINTERRUPTED) facts = tr_trainer_hash(report->trainer, hash);
    if (status == TR_EINTERRUPTED) status = stopped(report, now.step);
    if (status == TR_OK) status = facts;
    cli_screen_end(&report->screen);
    if (!report->quiet && !report->broken) put_summary(report, status, &now, hash);
    put_profile(report);
    cli_json_end(report, status, &now, hash);
    cli_report_drop(report);
    return status;
}

void cli_report_drop(struct cli_report *report)
{
    cli_screen_end(&report->screen);
    tr_free(report->checkpoint);
    tr_free(report->out_word);
    report->checkpoint = report->out_word = NULL;
}
