/* What a table says about itself: types, --help, the manual. */
#include "base/options/table.h"

#include <string.h>

#define WIDTH       100
#define HELP_COLUMN 28

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

/* Appends words of `string` to a line that has *column columns, breaking before column WIDTH and starting new
   lines at `indent`; keeps *column. */
static void add_wrapped(struct tr_text *text, const char *string, size_t indent, size_t *column)
{
    const char *at = string;
    while (*(at += strspn(at, " ")) != '\0') {
        size_t length = strcspn(at, " ");
        bool begins = *column <= indent;
        if (!begins && *column + 1 + length > WIDTH) {
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

/* "one of a, b (range; default: x)" as far as there is something to say. */
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

/* "  -q, --quiet"; both ways where a flag is on by itself: "      --progress / -p, --no-progress". */
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

static void add_option_help(struct tr_text *text, const struct tr_option *option)
{
    struct tr_text left = TR_TEXT_INIT, right = TR_TEXT_INIT, facts = TR_TEXT_INIT;
    if (option->flags & TR_OPTION_POSITIONAL) {
        tr_text_add(&left, "  ");
        add_placeholder(&left, option);
    } else {
        add_names(&left, option);
        if (option->type != TR_OPTION_BOOL) tr_text_add(&left, option->bare ? "[=" : " ");
        add_placeholder(&left, option);
        if (option->bare) tr_text_add(&left, "]");
    }
    tr_text_add(&right, option->help);
    add_facts(&facts, option);
    if (facts.length > 0) tr_text_addf(&right, " (%s)", facts.bytes);
    if (left.failed || right.failed || facts.failed) text->failed = true;
    if (!text->failed) {
        size_t column = left.length;
        tr_text_add(text, left.bytes);
        if (column + 2 > HELP_COLUMN) {
            tr_text_add(text, "\n");
            column = 0;
        }
        add_wrapped(text, right.bytes, HELP_COLUMN, &column);
        tr_text_add(text, "\n");
    }
    tr_text_release(&left);
    tr_text_release(&right);
    tr_text_release(&facts);
}

/* Appends the lines of all options which are positional, or which are not, under a heading. */
static void add_section(struct tr_text *text, const char *heading, const struct tr_option *table,
                        int32_t count, bool positional)
{
    bool any = false;
    for (int32_t i = 0; i < count; i++) {
        if ((table[i].flags & TR_OPTION_POSITIONAL ? true : false) != positional ||
            table[i].type == TR_OPTION_NODE)
            continue;
        if (!any) tr_text_addf(text, "\n%s:\n", heading);
        any = true;
        add_option_help(text, &table[i]);
    }
}

tr_status tr_options_help(const char *command, const char *about, const struct tr_option *table,
                          int32_t count, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    bool options = false;
    for (int32_t i = 0; i < count; i++) options = options || !(table[i].flags & TR_OPTION_POSITIONAL);
    tr_text_addf(&text, "Usage: %s%s", command, options ? " [options]" : "");
    for (int32_t i = 0; i < count; i++) {
        if (!(table[i].flags & TR_OPTION_POSITIONAL)) continue;
        bool optional = table[i].fallback;
        tr_text_add(&text, optional ? " [" : " ");
        add_placeholder(&text, &table[i]);
        tr_text_addf(&text, "%s%s", option_is_list(&table[i]) ? "..." : "", optional ? "]" : "");
    }
    tr_text_add(&text, "\n\n");
    size_t column = 0;
    add_wrapped(&text, about, 0, &column);
    tr_text_add(&text, "\n");
    add_section(&text, "Arguments", table, count, true);
    add_section(&text, "Options", table, count, false);
    return tr_text_finish(&text, out);
}

/* ---- the manual ---- */

/* Appends `string` with what would end a cell of a table escaped. */
static void add_cell(struct tr_text *text, const char *string)
{
    for (; *string; string++) tr_text_addf(text, *string == '|' ? "\\%c" : "%c", *string);
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
    if (option->type == TR_OPTION_CHOICE) {
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
    return tr_text_finish(&text, out);
}
