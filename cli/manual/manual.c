/* Pages of the manual from the tables of commands. */
#include "cli/manual/manual.h"

#include "cli/program/commands.h"
#include "cli/program/texts.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "trireme/inspect.h"
#include "trireme/trireme.h"

#include <stdio.h>
#include <string.h>

static void add_plain(struct tr_text *roff, const char *text)
{
    cli_roff_text(roff, text, strlen(text));
}

/* "trireme data list" as "trireme-data-list". */
static void page_name(const struct cli_command *command, char name[64])
{
    snprintf(name, 64, "trireme-%s", command->name);
    for (char *at = name; *at; at++)
        if (*at == ' ') *at = '-';
}

static void add_title(struct tr_text *roff, const char *name, int section, const char *date)
{
    char upper[64];
    snprintf(upper, sizeof upper, "%s", name);
    for (char *at = upper; *at; at++) *at = tr_text_upper(*at);
    tr_text_add(roff, ".TH ");
    add_plain(roff, upper);
    tr_text_addf(roff, " %d %s", section, date);
    tr_text_addf(roff, " \"Trireme %s\" \"Trireme\"\n", tr_version());
}

static void add_name(struct tr_text *roff, const char *name, const char *summary)
{
    tr_text_add(roff, ".SH NAME\n");
    add_plain(roff, name);
    tr_text_add(roff, " \\- ");
    add_plain(roff, summary);
    tr_text_add(roff, "\n");
}

static void add_exit_codes(struct tr_text *roff)
{
    tr_text_add(roff, ".SH EXIT STATUS\n");
#define ADD_CODE(name, code, meaning)                                                                        \
    tr_text_addf(roff, ".TP\n.B %d\n", code);                                                                \
    add_plain(roff, meaning);                                                                                \
    tr_text_add(roff, "\n");
    CLI_EXIT_CODES(ADD_CODE)
#undef ADD_CODE
}

static void add_see_also(struct tr_text *roff, const char *const *pages)
{
    tr_text_add(roff, ".SH SEE ALSO\n");
    for (; *pages; pages++) {
        const char *section = strchr(*pages, '(');
        tr_text_add(roff, ".BR ");
        cli_roff_text(roff, *pages, (size_t)(section - *pages));
        tr_text_addf(roff, " %s%s\n", section, pages[1] ? " ," : "");
    }
}

static void add_option(struct tr_text *roff, const struct tr_option *option)
{
    struct tr_text names = TR_TEXT_INIT, about = TR_TEXT_INIT;
    tr_option_add_names(&names, option);
    tr_option_add_about(&about, option);
    if (names.failed || about.failed) {
        roff->failed = true;
    } else {
        tr_text_add(roff, ".TP\n\\fB");
        add_plain(roff, names.bytes + strspn(names.bytes, " "));
        tr_text_add(roff, "\\fR\n");
        add_plain(roff, about.bytes);
        tr_text_add(roff, ".\n");
    }
    tr_text_release(&names);
    tr_text_release(&about);
}

static void add_options(struct tr_text *roff, const struct cli_command *command)
{
    static const struct tr_option_group one[] = {{"Options", NULL}, {NULL, NULL}};
    const struct tr_option_group *groups = command->groups ? command->groups : one;
    const struct tr_option *option;
    bool any = false;
    for (int32_t i = 0; i < command->option_count; i++) {
        if (!(command->options[i].flags & TR_OPTION_POSITIONAL)) continue;
        if (!any) tr_text_add(roff, ".SH ARGUMENTS\n");
        any = true;
        add_option(roff, &command->options[i]);
    }
    tr_text_add(roff, ".SH OPTIONS\n");
    for (int32_t g = 0; groups[g].heading; g++) {
        for (int32_t i = 0;
             (option = tr_options_grouped(command->options, command->option_count, groups, g, i)); i++) {
            if (i == 0 && command->groups) {
                tr_text_add(roff, ".SS ");
                for (const char *at = groups[g].heading; *at; at++)
                    if (*at != '`') tr_text_add_bytes(roff, at, 1);
                tr_text_add(roff, "\n");
            }
            add_option(roff, option);
        }
    }
}

static void add_list(struct tr_text *roff, const struct cli_command *const *list)
{
    char name[64];
    tr_text_add(roff, ".SH COMMANDS\n");
    for (; *list; list++) {
        page_name(*list, name);
        tr_text_add(roff, ".TP\n.BR ");
        add_plain(roff, name);
        tr_text_add(roff, " (1)\n");
        add_plain(roff, (*list)->summary);
        tr_text_add(roff, ".\n");
    }
}

#define LINE 78 /* bytes; longer lines of a source are bad style */

/* Breaks the lines that troff fills at blanks: all but its requests, tags, and code. */
static char *fold(const char *roff)
{
    struct tr_text out = TR_TEXT_INIT;
    bool code = false, tag = false;
    char *text;
    for (const char *line = roff; *line;) {
        size_t length = strcspn(line, "\n"), column = 0;
        bool filled = *line != '.' && !code && !tag;
        if (strncmp(line, ".EX", 3) == 0) code = true;
        if (strncmp(line, ".EE", 3) == 0) code = false;
        tag = strncmp(line, ".TP", 3) == 0;
        for (const char *at = line, *end = line + length; at < end;) {
            size_t word = strcspn(at, " \n");
            /* A line that begins with a point would be a request. */
            if (filled && column > 0 && column + 1 + word > LINE && *at != '.') {
                tr_text_add(&out, "\n");
                column = 0;
            } else if (at > line) {
                tr_text_add(&out, " ");
                column++;
            }
            tr_text_add_bytes(&out, at, word);
            column += word;
            at += word + (at[word] == ' ');
        }
        tr_text_add(&out, "\n");
        line += length + (line[length] == '\n');
    }
    return tr_text_finish(&out, &text) == TR_OK ? text : NULL;
}

/* Writes `roff` to DIRECTORY/manN/NAME.N and releases it. */
static tr_status write_page(const char *directory, const char *name, int section, struct tr_text *roff)
{
    char *text = NULL, *folded = NULL, *folder = tr_format("%s/man%d", directory, section),
         *path = tr_format("%s/man%d/%s.%d", directory, section, name, section);
    tr_status status = folder && path ? tr_text_finish(roff, &text) : TR_ENOMEM;
    if (status == TR_OK && !(folded = fold(text))) status = TR_ENOMEM;
    if (status == TR_OK) status = tr_file_make_directories(NULL, folder);
    if (status == TR_OK) status = tr_file_write_atomic(NULL, path, folded, strlen(folded));
    tr_text_release(roff);
    tr_free(folded);
    tr_free(text);
    tr_free(path);
    tr_free(folder);
    return status;
}

static tr_status write_command(const char *directory, const char *date, const struct cli_command *command)
{
    static const char *const others[] = {"trireme(1)", "trireme-model(5)", "trireme(7)", NULL};
    struct tr_text roff = TR_TEXT_INIT, usage = TR_TEXT_INIT;
    char name[64];
    page_name(command, name);
    add_title(&roff, name, 1, date);
    add_name(&roff, name, command->summary);
    tr_text_add(&roff, ".SH SYNOPSIS\n");
    tr_text_addf(&usage, "trireme %s", command->name);
    char *called = NULL;
    tr_status status = tr_text_finish(&usage, &called);
    if (status == TR_OK && command->children)
        tr_text_addf(&usage, "%s COMMAND [options]", called);
    else if (status == TR_OK)
        tr_options_add_usage(&usage, called, command->options, command->option_count);
    if (usage.failed) status = TR_ENOMEM;
    if (status == TR_OK) {
        add_plain(&roff, usage.bytes);
        tr_text_add(&roff, "\n.SH DESCRIPTION\n");
        add_plain(&roff, command->about);
        tr_text_add(&roff, "\n");
        if (command->children)
            add_list(&roff, command->children);
        else
            add_options(&roff, command);
        add_exit_codes(&roff);
        add_see_also(&roff, others);
        status = write_page(directory, name, 1, &roff);
    }
    tr_text_release(&roff);
    tr_text_release(&usage);
    tr_free(called);
    for (int i = 0; status == TR_OK && command->children && command->children[i]; i++)
        status = write_command(directory, date, command->children[i]);
    return status;
}

static tr_status write_overview(const char *directory, const char *date)
{
    static const char *const others[] = {"trireme-model(5)", "trireme(7)", NULL};
    struct tr_text roff = TR_TEXT_INIT;
    add_title(&roff, "trireme", 1, date);
    add_name(&roff, "trireme", "train neural networks; the same bits on any number of threads and processes");
    tr_text_add(&roff, ".SH SYNOPSIS\n.B trireme\n.I COMMAND\n[options]\n.SH DESCRIPTION\n"
                       "Each command has a separate page.\n.B trireme help\n.I COMMAND\nprints the same "
                       "options, and\n.B trireme help cheatsheet\nwhat one wants to do beside what one "
                       "types.\n");
    add_list(&roff, cli_commands);
    add_exit_codes(&roff);
    add_see_also(&roff, others);
    return write_page(directory, "trireme", 1, &roff);
}

static tr_status write_model(const char *directory, const char *date)
{
    static const char *const others[] = {"trireme-train(1)", "trireme-inspect(1)", "trireme(7)", NULL};
    struct tr_text roff = TR_TEXT_INIT;
    char *markdown;
    TR_TRY(tr_manual(&markdown));
    add_title(&roff, "trireme-model", 5, date);
    add_name(&roff, "trireme-model", "the file that describes a job of trireme");
    tr_text_add(&roff,
                ".SH DESCRIPTION\n"
                "A model file is YAML: what to train with, the layers of the network, the loss, the "
                "optimizer, and how long to train.\nThe command\n.B trireme models\nlists the files that "
                "ship, which show most of what can be said.\n");
    cli_roff_markdown(&roff, markdown);
    tr_text_free(markdown);
    add_see_also(&roff, others);
    return write_page(directory, "trireme-model", 5, &roff);
}

static tr_status write_introduction(const char *directory, const char *date)
{
    static const char *const others[] = {"trireme(1)", "trireme-model(5)", NULL};
    struct tr_text roff = TR_TEXT_INIT;
    char *introduction, *sheet;
    TR_TRY(cli_text("introduction", &introduction));
    tr_status status = cli_text("cheatsheet", &sheet);
    if (status != TR_OK) {
        tr_free(introduction);
        return status;
    }
    add_title(&roff, "trireme", 7, date);
    cli_roff_markdown(&roff, introduction);
    tr_text_add(&roff, ".SH I WANT TO\n");
    for (const char *at = sheet; *at;) {
        size_t length = strcspn(at, "\n");
        const char *bar = memchr(at, '|', length);
        if (*at == '#') {
            tr_text_addf(&roff, ".SS %.*s\n", (int)length - 2, at + 2);
        } else if (bar) {
            tr_text_add(&roff, ".TP\n");
            cli_roff_text(&roff, at, (size_t)(bar - 1 - at));
            tr_text_add(&roff, "\n\\fB");
            cli_roff_text(&roff, bar + 2, (size_t)(at + length - bar - 2));
            tr_text_add(&roff, "\\fR\n");
        }
        at += length + (at[length] == '\n');
    }
    tr_free(introduction);
    tr_free(sheet);
    add_see_also(&roff, others);
    return write_page(directory, "trireme", 7, &roff);
}

tr_status cli_manual_write(const char *directory, const char *date)
{
    TR_TRY(write_overview(directory, date));
    for (int i = 0; cli_commands[i]; i++) TR_TRY(write_command(directory, date, cli_commands[i]));
    TR_TRY(write_model(directory, date));
    return write_introduction(directory, date);
}
