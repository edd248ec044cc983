#include "cli/train/summary.h"

#include "checkpoint/checkpoint.h"
#include "cli/terminal/output.h"
#include "cli/train/lines.h"
#include "cli/train/statistics.h"

#include "base/text/counted.h"

#include <math.h>

/* The work of several processes, as lines of the summary. */
static void put_statistics(struct cli_screen *screen, const struct cli_facts *facts,
                           const tr_trainer *trainer)
{
    struct tr_train_statistics statistics = TR_TRAIN_STATISTICS_INIT;
    struct tr_text text = TR_TEXT_INIT;
    if (tr_trainer_statistics(trainer, &statistics) != TR_OK) return;
    cli_statistics_text(&statistics, facts->last.seconds, &text);
    if (text.length > 0) text.bytes[text.length - 1] = '\0'; /* cli_line_put() ends the line */
    cli_line_put(screen, &text);
}

/* The best evaluation, if the run kept it. */
static void put_best(struct cli_screen *screen, const struct cli_facts *facts,
                     const struct tr_train_info *now)
{
    char step[TR_TEXT_NUMBER_SIZE], figure[CLI_FIGURE_SIZE];
    struct tr_text text = TR_TEXT_INIT;
    if (now->best_step < 0) return;
    tr_text_addf(&text, "%-12sstep %s, ", "best", tr_text_from_count(now->best_step, step));
    if (cli_facts_monitors(now)) tr_text_addf(&text, "%s %.4f, ", now->monitor, now->best_monitor);
    if (now->classification) tr_text_addf(&text, "accuracy %.4f, ", now->best_accuracy);
    tr_text_addf(&text, "loss %s on %s (%s/" TR_CHECKPOINT_BEST ")", cli_figure(now->best_loss, figure),
                 now->best_set, facts->out);
    cli_line_put(screen, &text);
}

/* A run that had ended before it was resumed. */
static void put_complete(struct cli_screen *screen, const struct tr_train_info *now)
{
    char done[TR_TEXT_NUMBER_SIZE], wanted[TR_TEXT_NUMBER_SIZE];
    tr_text_from_count(now->step, done);
    tr_text_from_count(now->steps, wanted);
    if (now->step < now->steps)
        cli_line_fact(screen, "done", "nothing is left to do: the run ended early, after %s of %s steps",
                      done, wanted);
    else if (now->step == now->steps)
        cli_line_fact(screen, "done", "nothing is left to do: all %s steps were done; --steps takes more",
                      done);
    else
        cli_line_fact(screen, "done", "nothing is left to do: %s steps were done, more than the %s asked for",
                      done, wanted);
}

/* A command that works on the results of the run. With tokens, a network may be a language model, which
   has no answer to an example. */
static void put_next(struct cli_screen *screen, const struct cli_facts *facts,
                     const struct tr_train_info *now)
{
    const char *set = facts->test.examples > 0 ? facts->test_name : now->test_examples > 0 ? "test" : NULL;
    const char *best = now->best_step >= 0 ? " --best" : "";
    if (!set)
        cli_line_fact(screen, "next", "trireme inspect %s", facts->out_word);
    else if (!isnan(now->tokens_per_example))
        cli_line_fact(screen, "next", "trireme eval %s%s", facts->out_word, best);
    else
        cli_line_fact(screen, "next", "trireme predict %s%s --set-name %s --index 0,1,2 --show",
                      facts->out_word, best, set);
}

void cli_summary(struct cli_screen *screen, const struct cli_facts *facts, const tr_trainer *trainer,
                 tr_status status, const struct tr_train_info *now, const char *hash)
{
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE], c[TR_TEXT_NUMBER_SIZE], d[TR_TEXT_NUMBER_SIZE];
    char figure[CLI_FIGURE_SIZE], tested[TR_COUNTED_SIZE];
    if (facts->test.examples > 0 && status == TR_OK) {
        cli_figure(facts->test.loss, figure);
        tr_counted_long(facts->test.examples, "example", tested);
        if (!isnan(facts->test.perplexity))
            cli_line_fact(screen, facts->test_name, "perplexity %.4g, accuracy %.4f, loss %s (%s)",
                          facts->test.perplexity, facts->test.accuracy, figure, tested);
        else if (facts->info.classification)
            cli_line_fact(screen, facts->test_name, "accuracy %.4f, loss %s (%s)", facts->test.accuracy,
                          figure, tested);
        else
            cli_line_fact(screen, facts->test_name, "loss %s (%s)", figure, tested);
    }
    int64_t done = facts->last.step - facts->info.step;
    const double examples = cli_facts_speed(facts), tokens = examples * now->tokens_per_example;
    const char *per_second = isnan(tokens) ? "" : tr_text_from_count((int64_t)(tokens + 0.5), d);
    if (done > 0)
        cli_line_fact(screen, "trained", "%s step%s in %s, %s examples/s%s%s%s", tr_text_from_count(done, a),
                      done == 1 ? "" : "s", tr_text_from_seconds(facts->last.seconds, b),
                      tr_text_from_count((int64_t)(examples + 0.5), c), *per_second ? ", " : "", per_second,
                      *per_second ? " tokens/s" : "");
    else if (*now->resumed && status == TR_OK)
        put_complete(screen, now);
    if (*hash) put_statistics(screen, facts, trainer);
    if (*hash) cli_line_fact(screen, "hash", "%s", hash);
    put_best(screen, facts, now);
    if (facts->checkpoint) cli_line_fact(screen, "checkpoint", "%s", facts->checkpoint);
    if (status == TR_OK) put_next(screen, facts, now);
}
