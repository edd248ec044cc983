/* A table's own description: types, --help, the manual. */
#include "base/options/help.h"
#include "base/options/table.h"

#include <string.h>

#define WIDTH 100
/* Column of an option's help; it is beside the name only where the terminal is wide enough. */
#define HELP_COLUMN   28
#define NARROW_COLUMN 10
#define NARROW        72

void option_add_choices(const struct tr_option *option, const char *before, const char *after,
                        const char *between, struct tr_text *text)
{
    struct tr_choice choice;
    for (int32_t i = 0; (choice = tr_option_choice(option, i)).name; i++)
        tr_text_addf(text, "%s%s%s%s", i ? between : "", before, choice.name, after);
}

void option_add_only(const struct tr_option *table, const struct tr_option *option, const char *before,
                     const char *after, struct tr_text *text)
{
    const char *between = "";
    struct tr_choice choice;
    for (int32_t i = 0; (choice = tr_option_choice(&table[0], i)).name; i++) {
        if (!(option->only >> (unsigned)choice.value & 1)) continue;
        tr_text_addf(text, "%s%s%s%s", between, before, choice.name, after);
        between = ", ";
    }
}

void option_add_dashed(struct tr_text *text, const char *key)
{
    for (; *key; key++) tr_text_add_bytes(text, *key == '_' ? "-" : key, 1);
}

void option_add_type(const struct tr_option *option, struct tr_text *text)
{
    switch (option->type) {
    case TR_OPTION_BOOL:
        tr_text_add(text, "true or false");
        break;
    case TR_OPTION_INT32:
    case TR_OPTION_INT64:
        tr_text_add(text, "an integer");
        break;
    case TR_OPTION_FLOAT:
    case TR_OPTION_DOUBLE:
        tr_text_add(text, "a number");
        break;
    case TR_OPTION_STRING:
        tr_text_add(text, "a text");
        break;
    case TR_OPTION_PAIR:
        tr_text_add(text, "an integer or a list of two");
        break;
    case TR_OPTION_INT_LIST:
        tr_text_add(text, "a list of integers");
        break;
    case TR_OPTION_FLOAT_LIST:
        tr_text_add(text, "a list of numbers");
        break;
    case TR_OPTION_STRING_LIST:
        tr_text_add(text, "a list of texts");
        break;
    case TR_OPTION_NODE:
        tr_text_add(text, "a section");
        break;
    case TR_OPTION_CHOICE:
        tr_text_add(text, "one of ");
        option_add_choices(option, "", "", ", ", text);
        break;
    }
}

/* ---- --help ---- */

/* Appends words of `string` to a line that has *column columns, breaking before column `width` and starting
   new lines at `indent`; keeps *column. */
static void add_wrapped(struct tr_text *text, const char *string, size_t indent, size_t width, size_t *column)
{
    const char *at = string;
    while (*(at += strspn(at, " ")) != '\0') {
        size_t length = strcspn(at, " ");
        bool begins = *column <= indent;
        if (!begins && *column + 1 + length > width) {
            tr_text_add(text, "\n");
            *column = 0;
            begins = true;
        }
        if (*column < indent) {
            tr_text_pad(text, ' ', indent - *column);
            *column = indent;
        }
        if (!begins) tr_text_add(text, " ");
        tr_text_add_bytes(text, at, length);
        *column += length + !begins;
        at += length;
    }
}

static void add_upper(struct tr_text *text, const char *key)
{
    for (; *key; key++) {
        char c = tr_text_upper(*key);
        tr_text_add_bytes(text, &c, 1);
    }
}

static void add_placeholder(struct tr_text *text, const struct tr_option *option)
{
    if (option->value_name) {
        tr_text_add(text, option->value_name);
    } else if (option->flags & TR_OPTION_POSITIONAL) {
        add_upper(text, option->key);
    } else {
        static const char *const names[] = {[TR_OPTION_BOOL] = "",
                                            [TR_OPTION_INT32] = "N",
                                            [TR_OPTION_INT64] = "N",
                                            [TR_OPTION_FLOAT] = "X",
                                            [TR_OPTION_DOUBLE] = "X",
                                            [TR_OPTION_STRING] = "TEXT",
                                            [TR_OPTION_CHOICE] = "NAME",
                                            [TR_OPTION_PAIR] = "N[,N]",
                                            [TR_OPTION_INT_LIST] = "N,...",
                                            [TR_OPTION_FLOAT_LIST] = "X,...",
                                            [TR_OPTION_STRING_LIST] = "TEXT",
                                            [TR_OPTION_NODE] = ""};
        tr_text_add(text, names[option->type]);
    }
}

/* "one of a, b (range; default: x)", as far as these exist. */
static void add_facts(struct tr_text *facts, const struct tr_option *option)
{
    char range[OPTION_RANGE_SIZE];
    bool is_bool = option->type == TR_OPTION_BOOL;
    option_range_for_people(option, range);
    const char *between = "";
    if (option->type == TR_OPTION_CHOICE) {
        option_add_type(option, facts);
        between = "; ";
    }
    if (range[0]) {
        tr_text_addf(facts, "%s%s", between, range);
        between = "; ";
    }
    if (option_is_on(option)) {
        tr_text_addf(facts, "%sdefault: --", between);
        option_add_dashed(facts, option->key);
    } else if (option->fallback && *option->fallback && !is_bool) {
        tr_text_addf(facts, "%sdefault: %s", between, option->fallback);
        between = "; ";
    }
    if (!option->fallback && !(option->flags & TR_OPTION_POSITIONAL))
        tr_text_addf(facts, "%srequired", between);
}

/* " -q, --quiet"; both forms for a flag that is on by default: " --progress / -p, --no-progress". */
static void add_names(struct tr_text *text, const struct tr_option *option)
{
    bool on = option_is_on(option);
    if (on) {
        tr_text_add(text, "      --");
        option_add_dashed(text, option->key);
        tr_text_add(text, " / ");
    }
    if (option->letter)
        tr_text_addf(text, "%s-%c, ", on ? "" : "  ", option->letter);
    else if (!on)
        tr_text_add(text, "      ");
    tr_text_add(text, on ? "--no-" : "--");
    option_add_dashed(text, option->key);
}

void tr_option_add_names(struct tr_text *text, const struct tr_option *option)
{
    if (option->flags & TR_OPTION_POSITIONAL) {
        tr_text_add(text, "  ");
        add_placeholder(text, option);
        return;
    }
    add_names(text, option);
    if (option->type != TR_OPTION_BOOL) tr_text_add(text, option->bare ? "[=" : " ");
    add_placeholder(text, option);
    if (option->bare) tr_text_add(text, "]");
}

void tr_option_add_about(struct tr_text *text, const struct tr_option *option)
{
    struct tr_text facts = TR_TEXT_INIT;
    tr_text_add(text, option->help);
    add_facts(&facts, option);
    if (facts.length > 0) tr_text_addf(text, " (%s)", facts.bytes);
    if (facts.failed) text->failed = true;
    tr_text_release(&facts);
}

static void add_option_help(struct tr_text *text, const struct tr_option *option, size_t width)
{
    struct tr_text left = TR_TEXT_INIT, right = TR_TEXT_INIT;
    tr_option_add_names(&left, option);
    tr_option_add_about(&right, option);
    if (left.failed || right.failed) text->failed = true;
    if (!text->failed) {
        size_t column = left.length, indent = width < NARROW ? NARROW_COLUMN : HELP_COLUMN;
        tr_text_add(text, left.bytes);
        if (column + 2 > indent) {
            tr_text_add(text, "\n");
            column = 0;
        }
        add_wrapped(text, right.bytes, indent, width, &column);
        tr_text_add(text, "\n");
    }
    tr_text_release(&left);
    tr_text_release(&right);
}

void tr_options_add_usage(struct tr_text *text, const char *command, const struct tr_option *table,
                          int32_t count)
{
    bool options = false;
    for (int32_t i = 0; i < count; i++) options = options || !(table[i].flags & TR_OPTION_POSITIONAL);
    tr_text_addf(text, "%s%s", command, options ? " [options]" : "");
    for (int32_t i = 0; i < count; i++) {
        if (!(table[i].flags & TR_OPTION_POSITIONAL)) continue;
        bool optional = table[i].fallback;
        tr_text_add(text, optional ? " [" : " ");
        add_placeholder(text, &table[i]);
        tr_text_addf(text, "%s%s", option_is_list(&table[i]) ? "..." : "", optional ? "]" : "");
    }
}

/* The words of `keys` one by one: *at moves after the word, whose length is returned; 0 at the end. */
static size_t next_key(const char **at, const char **word)
{
    *word = *at + strspn(*at, " ");
    size_t length = strcspn(*word, " ");
    *at = *word + length;
    return length;
}

static bool is_named(const struct tr_option *option, const struct tr_option_group *group)
{
    const char *at = group->keys ? group->keys : "", *word;
    for (size_t length; (length = next_key(&at, &word)) > 0;)
        if (strlen(option->key) == length && memcmp(option->key, word, length) == 0) return true;
    return false;
}

const struct tr_option *tr_options_grouped(const struct tr_option *table, int32_t count,
                                           const struct tr_option_group *groups, int32_t group, int32_t index)
{
    const char *at = groups[group].keys, *word;
    for (size_t length; at && (length = next_key(&at, &word)) > 0;) {
        for (int32_t i = 0; i < count; i++) {
            if (strlen(table[i].key) != length || memcmp(table[i].key, word, length) != 0) continue;
            if (index-- == 0) return &table[i];
        }
    }
    for (int32_t i = 0; !at && i < count; i++) {
        bool named = table[i].flags & TR_OPTION_POSITIONAL || table[i].type == TR_OPTION_NODE;
        for (const struct tr_option_group *other = groups; other->heading && !named; other++)
            named = is_named(&table[i], other);
        if (!named && index-- == 0) return &table[i];
    }
    return NULL;
}

static void add_positional(struct tr_text *text, const struct tr_option *table, int32_t count, size_t width)
{
    bool any = false;
    for (int32_t i = 0; i < count; i++) {
        if (!(table[i].flags & TR_OPTION_POSITIONAL)) continue;
        if (!any) tr_text_add(text, "\nArguments:\n");
        any = true;
        add_option_help(text, &table[i], width);
    }
}

static const struct tr_option_group all_options[] = {{"Options", NULL}, {NULL, NULL}};

tr_status tr_options_help_in(const char *command, const char *about, const struct tr_option *table,
                             int32_t count, const struct tr_option_group *groups, int width, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    size_t room = (size_t)width, column = 0;
    if (!groups) groups = all_options;
    tr_text_add(&text, "Usage: ");
    tr_options_add_usage(&text, command, table, count);
    tr_text_add(&text, "\n\n");
    add_wrapped(&text, about, 0, room, &column);
    tr_text_add(&text, "\n");
    add_positional(&text, table, count, room);
    for (int32_t group = 0; groups[group].heading; group++) {
        const struct tr_option *option;
        for (int32_t i = 0; (option = tr_options_grouped(table, count, groups, group, i)); i++) {
            if (i == 0) tr_text_addf(&text, "\n%s:\n", groups[group].heading);
            add_option_help(&text, option, room);
        }
    }
    return tr_text_finish(&text, out);
}

tr_status tr_options_help(const char *command, const char *about, const struct tr_option *table,
                          int32_t count, char **out)
{
    return tr_options_help_in(command, about, table, count, NULL, WIDTH, out);
}

/* ---- the manual ---- */

/* Appends `string`, with characters that would end a cell of a table escaped. */
static void add_cell(struct tr_text *text, const char *string)
{
    for (; *string; string++) tr_text_addf(text, *string == '|' ? "\\%c" : "%c", *string);
}

/* Choices with longer explanations than this get a separate table below that of the options. */
#define CELL_MOST 200

static bool is_long(const struct tr_option *option)
{
    size_t length = 0;
    struct tr_choice choice;
    if (option->type != TR_OPTION_CHOICE) return false;
    for (int32_t i = 0; (choice = tr_option_choice(option, i)).name; i++)
        length += choice.help ? strlen(choice.help) : 0;
    return length > CELL_MOST;
}

static void add_choices_table(struct tr_text *text, const struct tr_option *option)
{
    struct tr_choice choice;
    tr_text_addf(text, "\n| `%s` | meaning |\n|---|---|\n", option->key);
    for (int32_t i = 0; (choice = tr_option_choice(option, i)).name; i++) {
        tr_text_addf(text, "| `%s` | ", choice.name);
        if (choice.help) add_cell(text, choice.help);
        tr_text_add(text, " |\n");
    }
}

static void add_row(struct tr_text *text, const struct tr_option *table, const struct tr_option *option)
{
    char range[OPTION_RANGE_SIZE];
    tr_text_addf(text, "| `%s` | ", option->key);
    if (option->type == TR_OPTION_CHOICE) {
        option_add_choices(option, "`", "`", ", ", text);
    } else {
        option_add_type(option, text);
    }
    if (*option_range_for_people(option, range)) tr_text_addf(text, ", %s", range);
    tr_text_add(text, " | ");
    if (!option->fallback) {
        tr_text_add(text, "required");
    } else if (*option->fallback) {
        tr_text_add(text, "`");
        add_cell(text, option->fallback);
        tr_text_add(text, "`");
    }
    tr_text_add(text, " | ");
    if (option->only) {
        option_add_only(table, option, "`", "`", text);
        tr_text_add(text, ": ");
    }
    add_cell(text, option->help);
    if (is_long(option)) {
        tr_text_add(text, "; see below");
    } else if (option->type == TR_OPTION_CHOICE) {
        const char *between = ". ";
        struct tr_choice choice;
        for (int32_t i = 0; (choice = tr_option_choice(option, i)).name; i++) {
            if (!choice.help) continue;
            tr_text_addf(text, "%s`%s`: ", between, choice.name);
            add_cell(text, choice.help);
            between = "; ";
        }
    }
    tr_text_add(text, " |\n");
}

tr_status tr_options_markdown(const char *title, const struct tr_option *table, int32_t count, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "### %s\n\n", title);
    if (count == 0) tr_text_add(&text, "No options.\n");
    if (count > 0) tr_text_add(&text, "| key | value | default | meaning |\n|---|---|---|---|\n");
    for (int32_t i = 0; i < count; i++) add_row(&text, table, &table[i]);
    for (int32_t i = 0; i < count; i++)
        if (is_long(&table[i])) add_choices_table(&text, &table[i]);
    return tr_text_finish(&text, out);
}
