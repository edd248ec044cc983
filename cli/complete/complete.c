#include "cli/complete/complete.h"

#include "cli/program/commands.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>

#define ABOUT 72 /* bytes of a description */

void cli_candidates_join(struct cli_candidates *out, const char *head, const char *tail, const char *end,
                         const char *about)
{
    char candidate[1024];
    int length = snprintf(candidate, sizeof candidate, "%s%s%s", head, tail, end);
    if (length < 0 || length >= (int)sizeof candidate || strpbrk(candidate, "\n\t\r")) return;
    if (strncmp(candidate, out->word, strlen(out->word)) != 0) return;
    tr_text_addf(&out->lines, "%s\t", candidate);
    size_t clause = about ? strcspn(about, ";") : 0;
    if (clause > ABOUT) {
        for (clause = ABOUT; clause > 0 && about[clause] != ' ';) clause--;
        tr_text_addf(&out->lines, "%.*s ...", (int)clause, about);
    } else if (clause > 0) {
        tr_text_add_bytes(&out->lines, about, clause);
    }
    tr_text_add(&out->lines, "\n");
}

void cli_candidates_add(struct cli_candidates *out, const char *candidate, const char *about)
{
    cli_candidates_join(out, candidate, "", "", about);
}

char *cli_candidates_need(struct cli_candidates *out, char *text)
{
    out->lines.failed |= !text;
    return text;
}

/* The last word of a command's name. */
static const char *own_name(const struct cli_command *command)
{
    const char *blank = strrchr(command->name, ' ');
    return blank ? blank + 1 : command->name;
}

static const struct cli_command *find(const struct cli_command *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(own_name(*list), name) == 0) return *list;
    return NULL;
}

static void add_commands(struct cli_candidates *out, const struct cli_command *const *list)
{
    for (; *list; list++) cli_candidates_add(out, own_name(*list), (*list)->summary);
}

/* "--key", or "--no-key" of a flag that is on by itself. */
static void add_flags(struct cli_candidates *out, const struct cli_command *command)
{
    for (int32_t i = 0; i < command->option_count; i++) {
        const struct tr_option *option = &command->options[i];
        if (option->flags & TR_OPTION_POSITIONAL) continue;
        bool on = option->type == TR_OPTION_BOOL && option->fallback && strcmp(option->fallback, "true") == 0;
        char name[80];
        snprintf(name, sizeof name, "%s%s", on ? "--no-" : "--", option->key);
        for (char *at = name; *at; at++)
            if (*at == '_') *at = '-';
        cli_candidates_add(out, name, option->help);
    }
}

/* The option that a word "--key", "--key=..." or "-x..." names, NULL for none; *value is what is attached to
   it, or NULL. */
static const struct tr_option *option_of(const struct cli_command *command, const char *word,
                                         const char **value)
{
    size_t length = strcspn(word, "=");
    *value = word[length] ? word + length + 1 : NULL;
    for (int32_t i = 0; i < command->option_count; i++) {
        const struct tr_option *option = &command->options[i];
        if (option->flags & TR_OPTION_POSITIONAL) continue;
        if (word[1] != '-' && option->letter && word[1] == option->letter) {
            *value = word[2] ? word + 2 : NULL;
            return option;
        }
        if (word[1] != '-' || strlen(option->key) != length - 2) continue;
        size_t k = 0;
        while (k < length - 2 && (word[2 + k] == '-' ? '_' : word[2 + k]) == option->key[k]) k++;
        if (k == length - 2) return option;
    }
    return NULL;
}

static const struct tr_option *positional(const struct cli_command *command, int index)
{
    for (int32_t i = 0; i < command->option_count; i++) {
        const struct tr_option *option = &command->options[i];
        if (!(option->flags & TR_OPTION_POSITIONAL)) continue;
        if (index-- == 0 || option->type == TR_OPTION_STRING_LIST) return option;
    }
    return NULL;
}

/* The word under the cursor is an option of the command, its value, or a positional argument. */
static void complete_word(struct cli_candidates *out, const struct cli_command *command,
                          const struct tr_option *awaits, int position, bool ended)
{
    const char *value;
    if (awaits) {
        cli_complete_value(out, command, awaits, "");
    } else if (!ended && out->word[0] == '-' && out->word[1] == '-' && strchr(out->word, '=')) {
        const struct tr_option *option = option_of(command, out->word, &value);
        if (!option) return;
        char *head = cli_candidates_need(out, tr_format("%.*s", (int)(value - out->word), out->word));
        if (head) cli_complete_value(out, command, option, head);
        tr_free(head);
    } else if (!ended && out->word[0] == '-') {
        add_flags(out, command);
    } else {
        const struct tr_option *option = positional(command, position);
        if (option) cli_complete_value(out, command, option, "");
    }
}

/* `words` [count] follow the name of the command. */
static void complete_command(struct cli_candidates *out, const struct cli_command *command,
                             const char *const *words, int count)
{
    const struct tr_option *awaits = NULL;
    int position = 0;
    bool ended = false;
    for (int i = 0; i + 1 < count; i++) {
        const char *word = words[i], *value;
        const struct cli_command *passed = command->passes_arguments ? find(cli_commands, word) : NULL;
        if (awaits) {
            awaits = NULL;
        } else if (passed && !ended) {
            complete_command(out, passed, words + i + 1, count - i - 1);
            return;
        } else if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended && word[0] == '-' && word[1]) {
            const struct tr_option *option = option_of(command, word, &value);
            if (option && option->type != TR_OPTION_BOOL && !option->bare && !value) awaits = option;
        } else {
            position++;
        }
    }
    complete_word(out, command, awaits, position, ended);
}

tr_status cli_complete(const char *const *words, int count, struct cli_candidates *out)
{
    *out = (struct cli_candidates){.word = count > 0 ? words[count - 1] : ""};
    tr_text_add(&out->lines, "");
    const struct cli_command *command = count > 1 ? find(cli_commands, words[0]) : NULL;
    if (count <= 1) {
        add_commands(out, cli_commands);
        if (out->word[0] == '-') cli_candidates_add(out, "--help", cli_help.summary);
        if (out->word[0] == '-') cli_candidates_add(out, "--version", cli_version.summary);
    } else if (command && command->children && count == 2) {
        add_commands(out, command->children);
    } else if (command) {
        int used = 1;
        if (command->children) {
            command = find(command->children, words[1]);
            used = 2;
        }
        if (command) complete_command(out, command, words + used, count - used);
    }
    return out->lines.failed ? TR_ENOMEM : TR_OK;
}
