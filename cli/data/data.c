/* trireme data: list and verify, and the group itself. */
#include "cli/data/data.h"

#include "cli/program/commands.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "base/text/table.h"

#include <string.h>

tr_status cli_data_open(const char *what, const char *part, const char *directory, tr_source **out)
{
    if (what[strspn(what, " \t\n")] == '{') return tr_source_open(what, NULL, NULL, out);
    char *found;
    TR_TRY(cli_shipped_find_data(directory, what, &found));
    tr_status status = tr_data_set_open(what, part, found, NULL, out);
    tr_free(found);
    return status;
}

/* ---- states of files ---- */

/* Files of a set by state. */
struct tally {
    int good, missing, bad;
    bool print;
};

static void count_file(void *user, const char *path, enum tr_data_file_state state, const char *message)
{
    struct tally *tally = user;
    static const char *const words[] = {
        [TR_DATA_FILE_GOOD] = "good",
        [TR_DATA_FILE_MISSING] = "missing",
        [TR_DATA_FILE_BAD] = "damaged",
        [TR_DATA_FILE_FETCHED] = "fetched",
    };
    tally->good += state == TR_DATA_FILE_GOOD || state == TR_DATA_FILE_FETCHED;
    tally->missing += state == TR_DATA_FILE_MISSING;
    tally->bad += state == TR_DATA_FILE_BAD;
    if (!tally->print) return;
    cli_printf("%-9s%s", words[state], path);
    if (*message) cli_printf("  (%s)", message);
    cli_printf("\n");
    cli_output_flush();
}

static const char *state_of(const struct tally *tally, const struct tr_data_set_info *set)
{
    if (tally->bad) return "damaged";
    if (!tally->missing) return "complete";
    if (tally->good) return "incomplete";
    return set->can_fetch ? "not fetched" : "missing";
}

/* Checks the files of a set where they lie. */
static tr_status verify_set(const char *name, const char *directory, struct tally *tally)
{
    char *found;
    TR_TRY(cli_shipped_find_data(directory, name, &found));
    tr_status status = tr_data_set_verify(name, found, count_file, tally);
    tr_free(found);
    return status;
}

/* Counts the files of a set; failed checks are not failures here. */
static tr_status tally_set(const char *name, const char *directory, bool print, struct tally *tally)
{
    *tally = (struct tally){.print = print};
    tr_status status = verify_set(name, directory, tally);
    return status == TR_ECORRUPT || status == TR_ENOTFOUND ? TR_OK : status;
}

/* ---- list ---- */

struct list_options {
    struct cli_common common;
    char *directory;
    bool json;
};

static const struct tr_option list_table[] = {
    CLI_OPTION_DIRECTORY(struct list_options),
    CLI_OPTION_JSON(struct list_options),
    CLI_OPTION_HELP(struct list_options),
};

static void add_parts(struct tr_text *text, const struct tr_data_set_info *set)
{
    for (int i = 0; set->parts[i]; i++) tr_text_addf(text, "%s%s", i ? ", " : "", set->parts[i]);
}

static tr_status list_text(const char *directory)
{
    struct tr_table table;
    struct tr_text text = TR_TEXT_INIT;
    const struct tr_data_set_info *set;
    char *all;
    tr_status status = TR_OK;
    tr_table_begin(&table, "llll");
    for (int i = 0; (set = tr_data_set_at(i)) != NULL && status == TR_OK; i++) {
        struct tally tally;
        struct tr_text parts = TR_TEXT_INIT;
        status = tally_set(set->name, directory, false, &tally);
        add_parts(&parts, set);
        tr_table_cell(&table, "%s", set->name);
        tr_table_cell(&table, "%s", state_of(&tally, set));
        tr_table_cell(&table, "%s", parts.bytes ? parts.bytes : "");
        if (status == TR_OK && parts.failed) status = TR_ENOMEM;
        tr_table_cell(&table, "%s", set->title);
        tr_text_release(&parts);
    }
    tr_table_finish(&table, &text);
    if (status == TR_OK) status = tr_text_finish(&text, &all);
    tr_text_release(&text);
    if (status == TR_OK) cli_print_lines(all);
    return status;
}

static tr_status list_json(const char *directory)
{
    const struct tr_data_set_info *set;
    for (int i = 0; (set = tr_data_set_at(i)) != NULL; i++) {
        struct tally tally;
        struct tr_json_writer json;
        TR_TRY(tally_set(set->name, directory, false, &tally));
        tr_json_begin(&json, false);
        tr_json_text(&json, "name", set->name);
        tr_json_text(&json, "title", set->title);
        tr_json_text(&json, "origin", set->origin);
        tr_json_text(&json, "state", state_of(&tally, set));
        tr_json_bool(&json, "can_fetch", set->can_fetch);
        tr_json_open_array(&json, "parts");
        for (int k = 0; set->parts[k]; k++) tr_json_text(&json, NULL, set->parts[k]);
        tr_json_close_array(&json);
        TR_TRY(cli_print_json(&json));
    }
    return TR_OK;
}

static tr_status run_list(const void *options_)
{
    const struct list_options *options = options_;
    return options->json ? list_json(options->directory) : list_text(options->directory);
}

const struct cli_command cli_data_list = {
    .name = "data list",
    .summary = "list the data sets that are known by name",
    .about = "Lists the data sets known by name, the state of their files, and their parts. With --json an "
             "object a line.",
    CLI_OPTIONS(list_table, struct list_options),
    .run = run_list,
};

/* ---- verify ---- */

struct verify_options {
    struct cli_common common;
    struct tr_string_list set;
    char *directory;
};

static const struct tr_option verify_table[] = {
    {.key = "set",
     .type = TR_OPTION_STRING_LIST,
     .offset = offsetof(struct verify_options, set),
     .fallback = "",
     .help = "names of data sets; without any, all sets that have files here",
     .flags = TR_OPTION_POSITIONAL,
     .value_name = "SET"},
    CLI_OPTION_DIRECTORY(struct verify_options),
    CLI_OPTION_HELP(struct verify_options),
};

/* Sets without any file here are left out, as they were not fetched. */
static tr_status verify_present(const char *directory)
{
    const struct tr_data_set_info *set;
    tr_status worst = TR_OK;
    int present = 0;
    for (int i = 0; (set = tr_data_set_at(i)) != NULL; i++) {
        struct tally tally;
        TR_TRY(tally_set(set->name, directory, false, &tally));
        if (tally.good + tally.bad == 0) continue;
        present++;
        tally.print = true;
        tr_status status = verify_set(set->name, directory, &tally);
        if (status != TR_OK) worst = status;
    }
    if (present == 0)
        return tr_fail(TR_ENOTFOUND,
                       "no known data set has files in %s; give --dir DIR, or `trireme data fetch`",
                       directory);
    return worst;
}

static tr_status run_verify(const void *options_)
{
    const struct verify_options *options = options_;
    if (options->set.count == 0) return verify_present(options->directory);
    tr_status worst = TR_OK;
    for (int32_t i = 0; i < options->set.count; i++) {
        struct tally tally = {.print = true};
        tr_status status = verify_set(options->set.item[i], options->directory, &tally);
        if (status != TR_OK) worst = status;
    }
    return worst;
}

const struct cli_command cli_data_verify = {
    .name = "data verify",
    .summary = "check the files of data sets against their SHA-256",
    .about = "Checks the files of data sets against their SHA-256 and prints the state of each. Damaged "
             "files give "
             "exit code 5, missing ones 2.",
    CLI_OPTIONS(verify_table, struct verify_options),
    .run = run_verify,
};

/* ---- the group ---- */

static const struct cli_command *const commands[] = {
    &cli_data_list,      &cli_data_verify, &cli_data_show,
    &cli_data_convert,   &cli_data_fetch,  &cli_data_cache,
    &cli_data_tokenizer, &cli_data_tokens, NULL,
};

const struct cli_command cli_data = {
    .name = "data",
    .summary = "list, verify, show, convert and fetch data sets; tokenizers; the data cache",
    .about = "Works on data sets: those that are known by name, and any that a model file could describe.",
    .children = commands,
};
