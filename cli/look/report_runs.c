/* trireme report: the course of runs, as a page. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/fail.h"
#include "base/files/file.h"

#include <stdio.h>
#include <string.h>

#include "trireme/trireme.h"

struct options {
    struct cli_common common;
    struct tr_string_list runs;
    char *out, *title, *trace;
    bool examples;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "runs",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(runs),
     .fallback = NULL,
     .help = "directories of runs; the others are compared with the first",
     .flags = TR_OPTION_POSITIONAL},
    {.key = "out",
     .type = TR_OPTION_STRING,
     .offset = AT(out),
     .fallback = "report.html",
     .help = "file to write",
     .letter = 'o',
     .value_name = "FILE"},
    {.key = "title",
     .type = TR_OPTION_STRING,
     .offset = AT(title),
     .fallback = "",
     .help = "title of the page; default: the name of the first run's job",
     .value_name = "TEXT"},
    {.key = "trace",
     .type = TR_OPTION_STRING,
     .offset = AT(trace),
     .fallback = "",
     .help = "timeline of train --trace, for an excerpt; default: trace.json in the directory of a run",
     .value_name = "FILE"},
    {.key = "examples",
     .type = TR_OPTION_BOOL,
     .offset = AT(examples),
     .fallback = "true",
     .help = "compute the confusion matrix and misread images on the test data"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html;
    settings.title = options->title;
    settings.trace = options->trace;
    settings.examples = options->examples;
    TR_TRY(tr_report((const char *const *)options->runs.item, options->runs.count, &settings, &html));
    tr_status status = tr_file_write_atomic(NULL, options->out, html, strlen(html));
    tr_text_free(html);
    if (status == TR_OK) cli_printf("%s\n", options->out);
    return status;
}

const struct cli_command cli_report_runs = {
    .name = "report",
    .summary = "write an HTML report about runs",
    .about = "Writes one HTML file that needs nothing else: curves, a table of the runs, waiting times of "
             "each process, staleness, a timeline, the confusion matrix, misread images, and the commands "
             "that repeat the runs.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
