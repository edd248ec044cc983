/* Command lines and the environment. */
#include "base/options/table.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/foreign.h"

#include <assert.h>
#include <string.h>

struct command_line {
    const struct tr_option *table;
    int32_t count;
    int argc;
    const char *const *argv;
    void *object;
    int next;                   /* next argument */
    int32_t positional;         /* option to try for the next positional argument */
    bool given[TR_OPTIONS_MAX]; /* by option */
    bool leaves;                /* an option was given without which required options would be demanded */
};

/* Whether an argument's name, `length` bytes, is the key; '-' stands for '_'. */
static bool same_key(const char *key, const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (key[i] != (name[i] == '-' ? '_' : name[i])) return false;
    }
    return key[length] == '\0';
}

/* The option called by `length` bytes of `name`, or -1. */
static int32_t find_long(const struct command_line *line, const char *name, size_t length)
{
    for (int32_t i = 0; i < line->count; i++) {
        if (!(line->table[i].flags & TR_OPTION_POSITIONAL) && same_key(line->table[i].key, name, length))
            return i;
    }
    return -1;
}

static tr_status fail_meant(const char *word, const char *meant)
{
    struct tr_text dashed = TR_TEXT_INIT;
    option_add_dashed(&dashed, meant);
    tr_status status = dashed.failed
                           ? TR_ENOMEM
                           : tr_fail(TR_EINVAL, "unknown option %s; did you mean --%s?", word, dashed.bytes);
    tr_text_release(&dashed);
    return status;
}

/* The value that belongs to an unknown option, "" if there is none. */
static const char *value_behind(const struct command_line *line, const char *argument)
{
    const char *equals = strchr(argument, '=');
    return equals ? equals + 1 : line->next < line->argc ? line->argv[line->next] : "";
}

static tr_status fail_unknown(const struct command_line *line, const char *argument)
{
    char called[72], *word = called + 2;
    size_t dashes = strspn(argument, "-"), length = strcspn(argument + dashes, "=");
    if (length > sizeof called - 3) length = sizeof called - 3;
    memcpy(called, "--", 2);
    memcpy(word, argument + dashes, length);
    word[length] = '\0';
    const char *keys[TR_OPTIONS_MAX], *arguments[TR_OPTIONS_MAX], *path = NULL;
    int32_t count = 0, positional = 0;
    for (int32_t i = 0; i < line->count; i++) {
        if (line->table[i].flags & TR_OPTION_POSITIONAL)
            arguments[positional++] = line->table[i].key;
        else
            keys[count++] = line->table[i].key;
    }
    if (find_long(line, "set", 3) >= 0) path = tr_foreign_path(word);
    const char *meant = tr_foreign_word(word, keys, count), *value = value_behind(line, argument);
    if (meant) return fail_meant(called, meant);
    if (path) return tr_fail(TR_EINVAL, "unknown option %s; did you mean --set %s=VALUE?", called, path);
    int32_t i = find_long(line, value, strlen(value));
    if (i >= 0) return fail_meant(called, line->table[i].key);
    meant = tr_foreign_meant(word, arguments, positional);
    if (meant)
        return tr_fail(TR_EINVAL, "unknown option %s; the %s stands by itself, without a word before it",
                       called, meant);
    meant = tr_text_nearest(word, keys, count);
    return meant ? fail_meant(called, meant)
                 : tr_fail(TR_EINVAL, "unknown option %s; --help lists the options", called);
}

/* Gives option `i` the text `value`; `name` is the option as it was written. */
static tr_status take(struct command_line *line, int32_t i, const char *value, const char *name)
{
    const struct tr_option *option = &line->table[i];
    /* A list on the command line first replaces the fallback; each further mention appends. */
    if (option_is_list(option) && !line->given[i]) option_clear(option, line->object);
    TR_TRY(option_add(option, value, name, line->object));
    line->given[i] = true;
    if (option->flags & TR_OPTION_LEAVES) line->leaves = true;
    return TR_OK;
}

/* The value of an option without an attached one: the next argument, or the option's own default for that. */
static tr_status take_next(struct command_line *line, int32_t i, const char *name)
{
    if (line->table[i].bare) return take(line, i, line->table[i].bare, name);
    if (line->next >= line->argc)
        return tr_fail(TR_EINVAL, "%s: needs a value (%s)", name, line->table[i].help);
    return take(line, i, line->argv[line->next++], name);
}

/* The option that a word "--..." means, or -1, and the text of its value; NULL: the value is missing. */
static int32_t find_named(const struct command_line *line, const char *argument, const char **value)
{
    const char *name = argument + 2, *equals = strchr(name, '=');
    size_t length = strcspn(name, "=");
    int32_t i = find_long(line, name, length);
    *value = equals ? equals + 1 : NULL;
    if (i < 0 && !equals && strncmp(name, "no-", 3) == 0) {
        i = find_long(line, name + 3, length - 3);
        if (i >= 0 && line->table[i].type != TR_OPTION_BOOL) return -1;
        *value = "false";
    }
    if (i >= 0 && !*value && line->table[i].type == TR_OPTION_BOOL) *value = "true";
    return i;
}

static int32_t find_letter(const struct command_line *line, char letter)
{
    for (int32_t i = 0; i < line->count; i++)
        if (line->table[i].letter == letter) return i;
    return -1;
}

static tr_status read_long(struct command_line *line, const char *argument)
{
    const char *value;
    int32_t i = find_named(line, argument, &value);
    if (i < 0) return fail_unknown(line, argument);
    if (!value) return take_next(line, i, argument);
    char *called = tr_format("%.*s", (int)strcspn(argument, "="), argument);
    if (!called) return TR_ENOMEM;
    tr_status status = take(line, i, value, called);
    tr_free(called);
    return status;
}

/* An unknown letter; after a single dash, a long word was meant as other programs have them, with two
   dashes. */
static tr_status fail_letter(const struct command_line *line, const char *name, const char *argument)
{
    const char *word = argument + 1;
    size_t length = strcspn(word, "=");
    if (length > 1 && find_long(line, word, length) >= 0)
        return tr_fail(TR_EINVAL, "unknown option %.*s; did you mean -%.*s?", (int)length + 1, argument,
                       (int)length + 1, argument);
    if (name[1] <= ' ' || name[1] > '~')
        return tr_fail(TR_EINVAL, "unknown option \"%s\"; --help lists the options", argument);
    if (length > 1 && tr_foreign_path(word)) return fail_unknown(line, argument);
    return length == 1
               ? tr_fail(TR_EINVAL, "unknown option %s; --help lists the options", name)
               : tr_fail(TR_EINVAL, "unknown option %s in \"%s\"; --help lists the options", name, argument);
}

/* -x, -x value, -xvalue, and flags together: -xyz. */
static tr_status read_short(struct command_line *line, const char *argument)
{
    for (const char *at = argument + 1; *at; at++) {
        char name[3] = {'-', *at, '\0'};
        int32_t i = find_letter(line, *at);
        if (i < 0) {
            return fail_letter(line, name, argument);
        }
        if (line->table[i].type == TR_OPTION_BOOL) {
            TR_TRY(take(line, i, option_is_on(&line->table[i]) ? "false" : "true", name));
        } else {
            return at[1] ? take(line, i, at + 1, name) : take_next(line, i, name);
        }
    }
    return TR_OK;
}

/* The argument may have been meant as the value of the last option. */
static tr_status fail_unexpected(const struct command_line *line, const char *argument)
{
    const char *before = line->next > 1 ? line->argv[line->next - 2] : "";
    int32_t i = strncmp(before, "--", 2) == 0 ? find_long(line, before + 2, strlen(before + 2)) : -1;
    if (i >= 0 && line->table[i].bare)
        return tr_fail(TR_EINVAL, "unexpected argument \"%s\"; a value of %s is written %s=%s", argument,
                       before, before, argument);
    return tr_fail(TR_EINVAL, "unexpected argument \"%s\"; --help shows the usage", argument);
}

static tr_status read_positional(struct command_line *line, const char *argument)
{
    for (; line->positional < line->count; line->positional++) {
        const struct tr_option *option = &line->table[line->positional];
        if (!(option->flags & TR_OPTION_POSITIONAL)) continue;
        int32_t i = line->positional;
        if (!option_is_list(option)) line->positional++;
        return take(line, i, argument, option->key);
    }
    return fail_unexpected(line, argument);
}

static tr_status check_required(const struct command_line *line)
{
    for (int32_t i = 0; i < line->count; i++) {
        const struct tr_option *option = &line->table[i];
        if (option->fallback || line->given[i]) continue;
        if (option->flags & TR_OPTION_POSITIONAL)
            return tr_fail(TR_EINVAL, "missing argument: %s (%s); --help shows the usage", option->key,
                           option->help);
        struct tr_text dashed = TR_TEXT_INIT;
        option_add_dashed(&dashed, option->key);
        tr_status status = dashed.failed
                               ? TR_ENOMEM
                               : tr_fail(TR_EINVAL, "missing option: --%s (%s)", dashed.bytes, option->help);
        tr_text_release(&dashed);
        return status;
    }
    return TR_OK;
}

/* Two options with the same key or letter could not be told apart on the command line. */
static bool are_distinct(const struct tr_option *table, int32_t count)
{
    for (int32_t i = 1; i < count; i++)
        for (int32_t k = 0; k < i; k++)
            if (strcmp(table[i].key, table[k].key) == 0 ||
                (table[i].letter && table[i].letter == table[k].letter))
                return false;
    return true;
}

tr_status tr_options_arguments(const struct tr_option *table, int32_t count, int argc,
                               const char *const *argv, void *object)
{
    assert(count <= TR_OPTIONS_MAX && are_distinct(table, count));
    struct command_line line = {.table = table, .count = count, .argc = argc, .argv = argv, .object = object};
    bool only_positional = false;
    while (line.next < argc) {
        const char *argument = argv[line.next++];
        /* "-" alone is an argument: standard input, by custom. */
        bool dash = !only_positional && argument[0] == '-' && argument[1] != '\0';
        if (dash && strcmp(argument, "--") == 0) {
            only_positional = true;
        } else if (dash && argument[1] == '-') {
            TR_TRY(read_long(&line, argument));
        } else if (dash) {
            TR_TRY(read_short(&line, argument));
        } else {
            TR_TRY(read_positional(&line, argument));
        }
    }
    return line.leaves ? TR_OK : check_required(&line);
}

int tr_options_unknown(const struct tr_option *table, int32_t count, int argc, const char *const *argv)
{
    const struct command_line line = {.table = table, .count = count};
    for (int at = 0; at < argc && strcmp(argv[at], "--") != 0; at++) {
        const char *argument = argv[at], *value = NULL;
        if (argument[0] != '-' || argument[1] == '\0') continue;
        int32_t i = argument[1] == '-' ? find_named(&line, argument, &value) : -1;
        for (const char *letter = argument + 1; argument[1] != '-' && *letter && !value; letter++) {
            i = find_letter(&line, *letter);
            if (i < 0) break;
            /* The rest after a letter that is not a flag is its value. */
            if (table[i].type != TR_OPTION_BOOL && letter[1]) value = letter + 1;
        }
        if (i < 0) return at;
        at += !value && !table[i].bare && table[i].type != TR_OPTION_BOOL;
    }
    return -1;
}

/* The value of variable <prefix><KEY> if `entry` ("NAME=value") defines it, else NULL. */
static const char *variable_value(const char *entry, const char *prefix, const char *key)
{
    size_t length = strlen(prefix);
    if (strncmp(entry, prefix, length) != 0) return NULL;
    entry += length;
    for (; *key; key++, entry++) {
        if (*entry != tr_text_upper(*key)) return NULL;
    }
    return *entry == '=' ? entry + 1 : NULL;
}

tr_status tr_options_environment(const struct tr_option *table, int32_t count, const char *prefix,
                                 const char *const *environment, void *object)
{
    for (; *environment; environment++) {
        for (int32_t i = 0; i < count; i++) {
            if (!(table[i].flags & TR_OPTION_ENVIRONMENT)) continue;
            const char *value = variable_value(*environment, prefix, table[i].key);
            if (!value || !*value) continue;
            char *name =
                tr_format("environment variable %.*s", (int)strcspn(*environment, "="), *environment);
            if (!name) return TR_ENOMEM;
            if (option_is_list(&table[i])) option_clear(&table[i], object);
            tr_status status = option_add(&table[i], value, name, object);
            tr_free(name);
            if (status != TR_OK) return status;
        }
    }
    return TR_OK;
}
