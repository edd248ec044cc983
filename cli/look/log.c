/* trireme log */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/counted.h"
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"

#include <inttypes.h>

struct options {
    struct cli_common common;
    char *path;
    bool summary;
};

#define AT(field) offsetof(struct options, field)
static const struct tr_option table[] = {
    {.key = "path",
     .type = TR_OPTION_STRING,
     .offset = AT(path),
     .fallback = "",
     .help = "directory of an asynchronous run, or its log",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "RUN"},
    {.key = "summary",
     .type = TR_OPTION_BOOL,
     .offset = AT(summary),
     .fallback = "false",
     .help = "print the first lines only: updates, staleness, and workers that were lost"},
    CLI_OPTION_HELP(struct options),
};
#undef AT

/* Lines that a reader of the text skips. */
static void add_summary(const struct tr_update_log *log, int64_t torn, struct tr_text *text)
{
    struct tr_update_figures figures;
    tr_update_log_count(log, &figures);
    double applied = figures.applied > 0 ? (double)figures.applied : 1;
    char updates[TR_COUNTED_SIZE], gradients[TR_COUNTED_SIZE], sessions[TR_COUNTED_SIZE];
    tr_text_addf(text, "# %s by %s in %s\n", tr_counted(figures.updates, "update", updates),
                 tr_counted(figures.applied, "gradient", gradients),
                 tr_counted(log->sessions, "session", sessions));
    tr_text_addf(text, "# staleness: mean %.2f, at most %" PRId64 "; %s came too late\n",
                 figures.missed / applied, figures.most, tr_counted(figures.dropped, "gradient", gradients));
    if (figures.lost > 0) tr_text_addf(text, "# workers that were lost: %" PRId64 "\n", figures.lost);
    if (torn > 0)
        tr_text_addf(text, "# %" PRId64 " bytes at the end are of a block that is not whole\n", torn);
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct tr_update_log log = {0};
    struct tr_text text = TR_TEXT_INIT;
    char *path, *out = NULL;
    int64_t torn;
    if (!options->path) return tr_fail(TR_EINVAL, "name the directory of an asynchronous run");
    path = tr_file_is_directory(options->path) ? tr_path_join(options->path, TR_UPDATE_FILE)
                                               : tr_strdup(options->path);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_update_file_read(path, &log, &torn);
    tr_free(path);
    if (status != TR_OK) return status;
    add_summary(&log, torn, &text);
    if (!options->summary) tr_update_text_write(&log, &text);
    tr_update_log_release(&log);
    TR_TRY(tr_text_finish(&text, &out));
    cli_print(out);
    return TR_OK;
}

const struct cli_command cli_log = {
    .name = "log",
    .summary = "show the log of updates of an asynchronous run as text",
    .about = "Prints which gradients made which updates in an asynchronous run, a line for each: what became "
             "of it, "
             "the number of the contribution, the worker, and the version of the parameters that it was "
             "computed with. "
             "`trireme train MODEL --schedule FILE` trains by such a text, `trireme train --replay RUN` by "
             "the log "
             "itself.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
