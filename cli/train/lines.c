#include "cli/train/lines.h"

#include "base/alloc.h"
#include "base/text/counted.h"
#include "cli/terminal/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trireme/trireme.h"

void cli_line_put(struct cli_screen *screen, struct tr_text *text)
{
    if (!text->failed && text->bytes) cli_screen_line(screen, text->bytes);
    tr_text_release(text);
}

void cli_line_fact(struct cli_screen *screen, const char *label, const char *format, ...)
{
    char value[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "%-12s%s", label, value);
    cli_line_put(screen, &text);
}

/* The memory of all processes of the host together. */
static void put_memory(struct cli_screen *screen, const struct cli_facts *facts)
{
    const struct tr_train_info *info = &facts->info;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE], processes[48] = "";
    bool in_memory = info->data_memory > 0;
    if (info->host_processes > 1)
        snprintf(processes, sizeof processes, " for %d processes", info->host_processes);
    cli_line_fact(screen, "memory", "%s%s%s%s, of %s%s", tr_text_from_bytes(info->host_memory, a), processes,
                  in_memory ? ", data " : "", in_memory ? tr_text_from_bytes(info->data_memory, b) : "",
                  info->free_memory == INT64_MAX ? "an unknown amount"
                                                 : tr_text_from_bytes(info->free_memory, c),
                  info->free_memory == INT64_MAX ? "" : " free");
}

void cli_lines_head(struct cli_screen *screen, const struct cli_facts *facts)
{
    const struct tr_train_info *info = &facts->info;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE];
    cli_line_fact(screen, "trireme", "%s", tr_version());
    cli_line_fact(screen, "job", "%s%s%s%s", info->name, *info->model ? " (" : "", info->model,
                  *info->model ? ")" : "");
    cli_line_fact(screen, "device", "%s", info->device);
    if (info->kept < info->parameters)
        cli_line_fact(screen, "network", "%s parameters, %s of them and %s of memory on process %d",
                      tr_text_from_count(info->parameters, a), tr_text_from_count(info->kept, c),
                      tr_text_from_bytes(info->memory, b), info->rank);
    else
        cli_line_fact(screen, "network", "%s parameters, %s of memory",
                      tr_text_from_count(info->parameters, a), tr_text_from_bytes(info->memory, b));
    put_memory(screen, facts);
    if (info->test_examples > 0)
        cli_line_fact(screen, "data", "%s examples, %s to test", tr_text_from_count(info->train_examples, a),
                      tr_text_from_count(info->test_examples, b));
    else
        cli_line_fact(screen, "data", "%s examples, none to test",
                      tr_text_from_count(info->train_examples, a));
    cli_line_fact(screen, "batch", "%s in %s microbatch%s", tr_text_from_count(info->batch, a),
                  tr_text_from_count(info->microbatches, b), info->microbatches == 1 ? "" : "es");
    double epochs = (double)info->steps / (double)info->steps_per_epoch;
    cli_line_fact(screen, "steps", "%s, %s an epoch (%.4g epoch%s)", tr_text_from_count(info->steps, a),
                  tr_text_from_count(info->steps_per_epoch, c), epochs,
                  info->steps == info->steps_per_epoch ? "" : "s");
    if (info->label_smoothing > 0)
        cli_line_fact(screen, "loss", "of steps with label smoothing %.4g, of evaluations without",
                      info->label_smoothing);
    cli_line_fact(screen, "seed", "%" PRIu64, info->seed);
    cli_line_fact(screen, "output", "%s", facts->out);
    char *word = *info->tensorboard ? tr_text_word(info->tensorboard) : NULL;
    if (word) cli_line_fact(screen, "events", "%s (tensorboard --logdir %s)", info->tensorboard, word);
    tr_free(word);
    if (*info->resumed) cli_line_fact(screen, "resumed", "%s, step %" PRId64, info->resumed, info->step);
    for (const char *line = info->start, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        cli_line_fact(screen, "begins with", "%.*s", (int)(end - line), line);
    }
}

/* "step 100/20001", aligned over a run. */
static void add_step(struct tr_text *text, const struct tr_train_event *event)
{
    char total[24];
    int width = snprintf(total, sizeof total, "%" PRId64, event->steps);
    if (event->step <= event->steps)
        tr_text_addf(text, "step %*" PRId64 "/%s", width, event->step, total);
    else /* it was resumed after more steps than were ordered */
        tr_text_addf(text, "step %" PRId64, event->step);
}

static void add_loss(const struct cli_facts *facts, struct tr_text *text, const struct tr_train_event *event)
{
    char figure[CLI_FIGURE_SIZE];
    tr_text_addf(text, "  loss %s", cli_figure(event->loss, figure));
    if (facts->info.classification) tr_text_addf(text, "  accuracy %.4f", event->accuracy);
    if (!isnan(event->perplexity)) tr_text_addf(text, "  perplexity %.4g", event->perplexity);
}

void cli_line_step(struct cli_screen *screen, const struct cli_facts *facts,
                   const struct tr_train_event *event)
{
    char figure[TR_TEXT_NUMBER_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    add_loss(facts, &text, event);
    tr_text_addf(&text, "  examples/s %.0f", event->examples_per_second);
    if (!isnan(event->tokens_per_second)) tr_text_addf(&text, "  tokens/s %.0f", event->tokens_per_second);
    double left = cli_facts_seconds_left(facts, event);
    if (left > 0) tr_text_addf(&text, "  %s left", tr_text_from_seconds(left, figure));
    cli_line_put(screen, &text);
}

void cli_line_evaluation(struct cli_screen *screen, const struct cli_facts *facts,
                         const struct tr_train_event *event)
{
    char examples[TR_COUNTED_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    add_loss(facts, &text, event);
    for (int i = 0; event->metrics && i < event->metrics->count && cli_facts_monitors(&facts->info); i++)
        if (strcmp(event->metrics->metric[i].name, facts->info.monitor) == 0)
            tr_text_addf(&text, "  %s %.4f", facts->info.monitor, event->metrics->metric[i].value);
    tr_text_addf(&text, "  on %s (%s)", event->name, tr_counted_long(event->examples, "example", examples));
    if (event->best) tr_text_add(&text, ", the best so far");
    cli_line_put(screen, &text);
}

void cli_line_event(struct cli_screen *screen, const struct tr_train_event *event, const char *what)
{
    struct tr_text text = TR_TEXT_INIT;
    add_step(&text, event);
    tr_text_addf(&text, "  %s%s", what, event->name);
    cli_line_put(screen, &text);
}
