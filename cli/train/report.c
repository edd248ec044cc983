#include "cli/train/report.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/program/command_line.h"
#include "cli/terminal/output.h"
#include "cli/train/lines.h"
#include "cli/train/profile.h"
#include "cli/train/report_json.h"
#include "cli/train/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static struct cli_progress progress_of(const struct cli_report *report, const struct tr_train_event *event)
{
    return (struct cli_progress){
        .step = event->step,
        .steps = event->steps,
        .loss = event->loss,
        .accuracy = report->facts.info.classification ? event->accuracy : NAN,
        .examples_per_second = cli_facts_speed(&report->facts),
        .seconds_left = cli_facts_seconds_left(&report->facts, event),
    };
}

tr_status cli_report_begin(struct cli_report *report)
{
    report->facts.out = report->out;
    TR_TRY(cli_facts_begin(&report->facts, report->trainer));
    bool json = report->log == CLI_LOG_JSON;
    cli_screen_begin(&report->screen, json ? stderr : stdout);
    if (report->quiet) report->screen.interactive = false;
    if (report->later) return TR_OK;
    if (!report->quiet) cli_lines_head(&report->screen, &report->facts);
    cli_warnings(report->facts.info.resume_warnings);
    char *command = cli_command_line(report->facts.info.ranks);
    tr_status status = command ? tr_trainer_set_command(report->trainer, command) : TR_ENOMEM;
    if (status == TR_OK && json) cli_json_start(&report->facts, command);
    tr_free(command);
    cli_output_flush();
    if (status != TR_OK) cli_facts_release(&report->facts);
    return status;
}

void cli_report_event(void *user, const struct tr_train_event *event)
{
    struct cli_report *report = user;
    cli_facts_take(&report->facts, event);
    bool lines = report->log == CLI_LOG_TEXT && !report->quiet;
    struct cli_progress progress = progress_of(report, event);
    switch (event->kind) {
    case TR_EVENT_STEP:
        cli_screen_renew(&report->screen, &progress);
        if (lines) cli_line_step(&report->screen, &report->facts, event);
        cli_screen_progress(&report->screen, &progress);
        break;
    case TR_EVENT_PROGRESS:
        cli_screen_progress(&report->screen, &progress);
        break;
    case TR_EVENT_EVALUATION:
        if (lines) cli_line_evaluation(&report->screen, &report->facts, event);
        break;
    case TR_EVENT_CHECKPOINT:
        if (lines) cli_line_event(&report->screen, event, "saved ");
        break;
    case TR_EVENT_WARNING:
        cli_warnings(event->name);
        break;
    case TR_EVENT_SHARES:
        if (lines) cli_line_event(&report->screen, event, "");
        break;
    case TR_EVENT_END:
        break;
    }
    if (report->log == CLI_LOG_JSON) cli_json_event(&report->facts, event);
    if (!cli_output_flush() && !report->broken) {
        report->broken = true;
        tr_trainer_stop(report->trainer);
    }
}

/* The status of a run that was stopped from outside. */
static tr_status stopped(struct cli_report *report, int64_t step)
{
    char *how =
        tr_format("stopped after step %" PRId64 " of %" PRId64 "; `trireme train --resume %s` goes on", step,
                  report->facts.info.steps, report->facts.out_word);
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
    cli_line_put(&report->screen, &text);
}

/* Steps after the last event were trained as well. The message of a failure is kept. */
static void record_end(struct cli_report *report, tr_status status, struct tr_train_info *now)
{
    struct tr_failure how;
    tr_failure_keep(&how, status);
    if (tr_trainer_info(report->trainer, now) == TR_OK) {
        report->facts.last.step = now->step;
        report->facts.last.seconds = now->seconds;
    }
    tr_failure_restore(&how);
}

tr_status cli_report_end(struct cli_report *report, tr_status status)
{
    struct tr_train_info now = report->facts.info;
    char hash[65] = "";
    record_end(report, status, &now);
    tr_status facts = TR_OK;
    if (status == TR_OK || status == TR_EINTERRUPTED) facts = tr_trainer_hash(report->trainer, hash);
    if (status == TR_EINTERRUPTED) status = stopped(report, now.step);
    if (status == TR_OK) status = facts;
    cli_screen_end(&report->screen);
    if (!report->quiet && !report->broken)
        cli_summary(&report->screen, &report->facts, report->trainer, status, &now, hash);
    put_profile(report);
    if (report->log == CLI_LOG_JSON) cli_json_end(&report->facts, report->trainer, status, &now, hash);
    cli_report_drop(report);
    return status;
}

void cli_report_drop(struct cli_report *report)
{
    cli_screen_end(&report->screen);
    cli_facts_release(&report->facts);
}
