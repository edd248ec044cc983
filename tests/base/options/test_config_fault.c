/* What is wrong with a text that is no YAML, said in words about the text, with its place and its line. */
#include "base/options/config.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define N60         "012345678901234567890123456789012345678901234567890123456789"
#define NO_KEY      "no key can stand here, since the value in the line before goes on; check how both lines are "
#define NO_COLON    "a colon is missing: a line is `key: value`, or `- value` in a list"
#define BELONGS     "this belongs to nothing: the keys of the mapping from line 1 begin in column 1, and a value "
#define NEEDS_QUOTE "a value that begins with * or & needs quotes"

static const struct {
    const char *text, *place, *fault, *line; /* `fault` may be only the beginning */
} cases[] = {
    /* behind the last line: its end is shown */
    {"a: [1,\n", "1:7", "a value is missing here", "a: [1,"},
    {"\xC3\xA9: [1,\n", "1:7", "a value is missing here", "\xC3\xA9: [1,"},
    {"a: 1\nb: {c: 1, d: [\n", "2:15", "a value is missing here", "b: {c: 1, d: ["},
    {"a: [", "1:5", "a value is missing here", "a: ["},
    {"a: ]\n", "1:4", "a value is missing before ]", "a: ]"},
    {"a: ,\n", "1:4", "a value is missing before ,", "a: ,"},
    {"a:\n  b: 1\n c: 2\n", "3:2", BELONGS "ends with its quotes or brackets", " c: 2"},
    {"a:\r\n  b: 1\r\n c: 2\r\n", "3:2", BELONGS "ends with its quotes or brackets", " c: 2"},
    {"a: \"x\" y\n", "1:8", BELONGS "ends with its quotes or brackets", "a: \"x\" y"},
    {"a: 1\n} \n", "2:1", "the } closes nothing that is open", "}"},
    {"a: 1\n] \n", "2:1", "the ] closes nothing that is open", "]"},
    {"a: 1\nbc\n", "2:1", NO_COLON, "bc"},
    {"a: 1\nb # d\n", "2:1", NO_COLON, "b # d"},
    {"a: 1\nb c:d\n", "2:1", NO_COLON, "b c:d"},
    {"- a\n-b\n", "2:1", NO_COLON, "-b"},
    {"a: 1\nb:2\n", "2:1", "a blank is missing after the colon: write `b: ...`", "b:2"},
    {"a: 1\n" N60 "0123:2\n", "2:1", "a blank is missing after the colon: write `" N60 "0123: ...`",
     N60 "0123:2"},
    {"a: 1\n" N60 "01234:2\n", "2:1", "a blank is missing after the colon: write `" N60 "0123: ...`",
     N60 "01234:2"},
    {"a:1\nb: 2\n", "2:2", NO_KEY "indented", "b: 2"},
    {"a: 1\nb: 2\n  c: 3\n", "3:4", NO_KEY "indented", "  c: 3"},
    {"a: b: c\n", "1:5", "a second colon in one value; put quotes around a text that has one", "a: b: c"},
    {"a:b c: d: e\n", "1:9", "a second colon in one value; put quotes", "a:b c: d: e"},
    {"a: 'open\n", "1:4", "the quote ' that begins here has no end", "a: 'open"},
    {"a: \"open\n", "1:4", "the quote \" that begins here has no end", "a: \"open"},
    {"a: \"x\\q\"\n", "1:6", "no such escape after \\ in double quotes; write \\\\, or use single quotes",
     "a: \"x\\q\""},
    {"a: - b\n", "1:4", "a list cannot begin here: put its items in the lines below the key", "a: - b"},
    {"a: [1 2}\n", "1:8", "a comma or ] is missing before this place; the [ is in column 4", "a: [1 2}"},
    {"a: {b: 1 c: 2}\n", "1:11", "a comma or } is missing before this place; the { is in column 4",
     "a: {b: 1 c: 2}"},
    {"a: [1, 2\n", "1:4", "the [ that stands here is not closed: ] is missing", "a: [1, 2"},
    {"a: [\n1,\n2\n", "1:4", "the [ that stands here is not closed: ] is missing", "a: ["},
    {"{a: 1", "1:1", "the { that stands here is not closed: } is missing", "{a: 1"},
    {"a: {\nb: 1\nc: 2}\n", "1:4",
     "the { that stands here is not closed: } is missing, or a comma before line 3", "a: {"},
    {"- a\nb: 1\n", "2:1",
     "this is no item of the list that begins in line 1: its items begin with - in column 1", "b: 1"},
    {"a: 1\nb:\n  - - c\n   -d\n", "4:4", "a blank is missing after the dash: an item of a list is `- value`",
     "   -d"},
    {"a: &\n", "1:5", NEEDS_QUOTE, "a: &"},
    {"a: *\n", "1:5", NEEDS_QUOTE, "a: *"},
    {"a: `x\n", "1:4", "no value begins with `; put quotes around it", "a: `x"},
    {"a: 1\nb: 1\n\tc: 2\n", "3:1", "a tab stands here; lines are indented by blanks alone", "\\tc: 2"},
    {"a: |\n x\n\ty\nb\n", "3:1", "a tab stands here; lines are indented by blanks alone", "\\ty"},
};

static void faults_are_explained(void **state)
{
    (void)state;
    char expected[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *root;
        assert_int_equal(tr_config_parse(cases[i].text, strlen(cases[i].text), "m", &root), TR_EFORMAT);
        const char *message = tr_error_message(), *line = strstr(message, "; the line is: ");
        snprintf(expected, sizeof expected, "m:%s: %s", cases[i].place, cases[i].fault);
        if (strncmp(message, expected, strlen(expected)) != 0)
            fail_msg("%s: \"%s\" is not \"%s\"", cases[i].text, message, expected);
        if (!line || strcmp(line + strlen("; the line is: "), cases[i].line) != 0)
            fail_msg("\"%s\" does not end with \"%s\"", message, cases[i].line);
    }
}

/* The text need not end with a NUL: what is behind it is not looked at. */
static void what_follows_the_text_is_not_seen(void **state)
{
    (void)state;
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char behind[] = "]}\"'- x: y\n";
        const size_t length = strlen(cases[i].text);
        tr_config *root;
        if (length + sizeof behind > sizeof text) continue;
        memcpy(text, cases[i].text, length);
        memcpy(text + length, behind, sizeof behind);
        assert_int_equal(tr_config_parse(text, length, "m", &root), TR_EFORMAT);
        const char *line = strstr(tr_error_message(), "; the line is: ");
        assert_non_null(line);
        assert_string_equal(line + strlen("; the line is: "), cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_explained),
        cmocka_unit_test(what_follows_the_text_is_not_seen),
    };
    return cmocka_run_group_tests_name("base.config_fault", tests, NULL, NULL);
}
