/* trireme data fetch: downloading data sets. */
#include "cli/data/data.h"

#include "cli/terminal/output.h"
#include "cli/terminal/screen.h"
#include "cli/program/signals.h"

#include "base/fail.h"
#include "base/files/file.h"

#include <stdio.h>

struct options {
    struct cli_common common;
    struct tr_string_list set;
    char *directory, *mirror;
};

static const struct tr_option table[] = {
    {.key = "set",
     .type = TR_OPTION_STRING_LIST,
     .offset = offsetof(struct options, set),
     .fallback = NULL,
     .help = "names of data sets, see `trireme data list`",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "SET"},
    {.key = "dir",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct options, directory),
     .fallback = CLI_DATA_DIRECTORY,
     .help = "directory of the data sets, each in a directory of its name",
     .value_name = "DIR"},
    {.key = "mirror",
     .type = TR_OPTION_STRING,
     .offset = offsetof(struct options, mirror),
     .fallback = "",
     .help = "read the files from here, https://HOST/FOLDER or file:///FOLDER, instead of the public "
             "mirrors; they must have the same SHA-256",
     .value_name = "URL"},
    CLI_OPTION_HELP(struct options),
};

/* Non-zero after a signal, which ends the download. */
static int show_progress(void *user, const char *path, int64_t done, int64_t total)
{
    struct cli_screen *screen = user;
    char a[TR_TEXT_NUMBER_SIZE], b[TR_TEXT_NUMBER_SIZE];
    struct tr_text line = TR_TEXT_INIT;
    tr_text_addf(&line, "%s  %s", tr_path_name(path), tr_text_from_bytes(done, a));
    if (total > 0) tr_text_addf(&line, " of %s", tr_text_from_bytes(total, b));
    if (!line.failed) cli_screen_status(screen, line.bytes);
    tr_text_release(&line);
    return cli_signals_received() != 0;
}

static void show_file(void *user, const char *path, enum tr_data_file_state state, const char *message)
{
    struct cli_screen *screen = user;
    static const char *const words[] = {
        [TR_DATA_FILE_GOOD] = "good, was here",
        [TR_DATA_FILE_MISSING] = "missing",
        [TR_DATA_FILE_BAD] = "damaged",
        [TR_DATA_FILE_FETCHED] = "fetched, good",
    };
    struct tr_text line = TR_TEXT_INIT;
    tr_text_addf(&line, "%s  %s%s%s", path, words[state], *message ? ": " : "", message);
    if (!line.failed) cli_screen_line(screen, line.bytes);
    tr_text_release(&line);
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct cli_screen screen;
    tr_status status = TR_OK;
    cli_screen_begin(&screen, stdout);
    cli_signals_catch(NULL, "ending the download");
    for (int32_t i = 0; i < options->set.count && status == TR_OK; i++)
        status = tr_data_set_fetch(options->set.item[i], options->mirror, options->directory, show_progress,
                                   show_file, &screen);
    cli_signals_release();
    cli_screen_end(&screen);
    return status;
}

const struct cli_command cli_data_fetch = {
    .name = "data fetch",
    .summary = "download data sets and check their SHA-256",
    .about = "Downloads missing or damaged files of data sets from their public mirrors, over https. A file "
             "is replaced only after the SHA-256 of the new one was checked.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
