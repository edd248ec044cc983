/* Names of files, and texts in them, that a terminal would obey: every command is walked with them, as it
 * works and as it fails, and writes no control character to stdout or stderr.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/text/text.h"
#include "cli/program/commands.h"
#include "cli/session.h"

/* Erases the screen, names the window, rings, deletes; and ESC [ as one character of eight bits. */
#define EVIL "e\033[2J\033]0;x\007\177\xc2\x9bl"
/* The same in YAML, and one that is no UTF-8: ESC [ as one byte. */
#define EVIL_YAML "e\\e[2J\\e]0;x\\a\\x7f\\u009bl"
#define EVIL_BYTE EVIL "\x9b"
/* What is left to see of its beginning, as text and in JSON. */
#define SEEN    "e?[2J"
#define ESCAPED "e\\u001b[2J"

#define TABLE EVIL "/table.yaml"
#define RUN   EVIL "/run"

static void write_table(void)
{
    write_text(EVIL "/table.csv",
               "a,b,kind\n1,2,bi\033[2Jrd\n2,1,fi\033]0;x\007sh\n1,3,bi\033[2Jrd\n3,1,fi\033]0;x\007sh\n");
    write_text(TABLE, "name: \"e\\e[2Jvil\"\n"
                      "data:\n"
                      "  train: {csv: {path: table.csv, label_columns: kind}}\n"
                      "  test: {csv: {path: table.csv, label_columns: kind}}\n"
                      "layers: [{dense: {name: \"l\\e[2J\", units: 2}}]\n"
                      "loss: softmax_cross_entropy\n"
                      "optimizer: {rule: sgd, rate: 0.1}\n"
                      "train: {batch: 2, steps: 4, log_every: 1}\n");
}

/* A file of one tensor, whose name is no better. */
static void write_tensors(void)
{
    static const char header[] = "{\"e\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    uint8_t length[8] = {sizeof header - 1};
    FILE *file = fopen(EVIL "/tensors", "wb");
    assert_non_null(file);
    fwrite(length, 1, sizeof length, file);
    fwrite(header, 1, sizeof header - 1, file);
    fwrite("\0\0\0\0", 1, 4, file);
    assert_int_equal(fclose(file), 0);
}

static int make_evil(void **state)
{
    if (place_make(state) != 0) return -1;
    assert_int_equal(mkdir(EVIL, 0755), 0);
    assert_int_equal(rename("images.idx", EVIL "/images.idx"), 0);
    assert_int_equal(rename("labels.idx", EVIL "/labels.idx"), 0);
    assert_int_equal(rename("tiny.yaml", EVIL "/tiny.yaml"), 0);
    write_table();
    write_tensors();
    write_text(EVIL "/broken.yaml", "name: tiny\nlayers: [{\"e\\e[2J\": 3}]\n");
    return 0;
}

/* The number of the first byte that a terminal may obey, or that is no UTF-8; -1 if there is none. */
static int find_control(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        uint32_t character = 0;
        length = tr_text_utf8(text + at, &character);
        bool blank = character == '\n' || character == '\t';
        if (length == 0 || (character < ' ' && !blank) || (character >= 0x7f && character < 0xa0))
            return (int)at;
    }
    return -1;
}

/* In this order; later ones use what earlier ones made. */
static const struct walk {
    int code;
    const char *arguments[14];
    bool silent; /* it has no reason to name what was given */
} walks[] = {
    {0, {"train", EVIL "/tiny.yaml", "--out", EVIL "/tiny", "--steps", "4", "--record-digests=1"}},
    {0, {"train", TABLE, "--out", RUN, "--profile"}},
    {0, {"train", TABLE, "--out", EVIL "/json", "--log", "json"}},
    {0, {"train", TABLE, "--out", EVIL "/again", "--from", RUN}},
    {0, {"train", "--resume", RUN, "--steps", "6"}},
    {2, {"train", TABLE, "--out", RUN}},
    {2, {"train", EVIL "/missing.yaml"}},
    {2, {"train", EVIL_BYTE "/missing.yaml"}},
    {2, {"train", EVIL "/broken.yaml"}},
    {2, {"train", TABLE, "--set", EVIL "=1"}},
    {2, {"train", TABLE, "--set", "data.train.csv.label_columns=\"e\\e[2J\""}},
    {2, {"train", "--resume", EVIL "/missing"}},
    {0, {"launch", "-n", "1", "train", TABLE, "--out", EVIL "/launched"}},
    {2, {"launch", "-n", "2", "train", EVIL "/missing.yaml"}},
    {2, {"launch", "--hostfile", EVIL "/missing", "train", TABLE}, true},
    {0,
     {"compare", TABLE, "--workers", "1", "--strategies", "allreduce", "--csv", EVIL "/compare.csv"},
     true},
    {2, {"compare", EVIL "/missing.yaml"}},
    {0,
     {"plan", TABLE, "--workers", "1", "--seconds", "0", "--strategies", "allreduce", "--page",
      EVIL "/plan.html"},
     true},
    {2, {"plan", EVIL "/missing.yaml"}},
    {0, {"sweep", TABLE, "--set", "optimizer.rate=0.1,0.2", "--out", EVIL "/sweep"}},
    {2, {"sweep", EVIL "/missing.yaml"}},
    {0, {"eval", RUN}},
    {0, {"eval", RUN, "--confusion"}},
    {0, {"eval", RUN, "--json"}},
    {2, {"eval", RUN, "--set-name", EVIL}},
    {2, {"eval", EVIL "/missing"}},
    {0, {"predict", RUN, "--values", "1,2"}},
    {0, {"predict", RUN, "--values", "1,2", "--json"}},
    {0, {"predict", RUN, "--set-name", "train", "--output", EVIL "/predicted.csv"}},
    {2, {"predict", RUN, "--set-name", "train", "--output", EVIL}},
    {2, {"predict", EVIL "/tiny", "--image", EVIL "/missing.png"}},
    {2, {"generate", EVIL "/missing"}},
    {0, {"inspect", TABLE}},
    {2, {"inspect", EVIL "/broken.yaml"}},
    {0, {"export", RUN, "--c", EVIL "/net.c", "--safetensors", EVIL "/net.safetensors", "--name", "net"}},
    {0, {"export", RUN, "--c", EVIL "/net2.c", "--name", EVIL}},
    {2, {"import", EVIL "/tensors", "--model", TABLE, "--out", EVIL "/imported"}},
    {0, {"import", EVIL "/net.safetensors", "--model", TABLE, "--out", EVIL "/imported"}},
    {0, {"report", RUN, EVIL "/tiny", "--out", EVIL "/report.html"}},
    {2, {"report", EVIL "/missing"}},
    {1, {"diff", RUN, EVIL "/again"}, true},
    {2, {"diff", RUN, EVIL "/missing"}},
    {2, {"log", EVIL "/missing"}},
    {2, {"log", EVIL}},
    {2, {"verify", EVIL "/missing"}},
    {2, {"dispute", EVIL "/missing", EVIL "/missing"}},
    {1, {"dispute", "|printf '" EVIL "'", "|echo hello"}},
    {2, {"dispute", "--answer", EVIL "/missing"}},
    {2, {"receipt", EVIL "/missing"}},
    {2, {"data", "list", "--dir", "missing", EVIL}},
    {2, {"data", "verify", "mnist", "--dir", EVIL}},
    {2, {"data", "verify", EVIL}},
    {2, {"data", "show", EVIL}},
    {2, {"data", "show", "{csv: {path: \"" EVIL_YAML "/table.csv\", label_columns: \"e\\e[2J\"}}"}},
    {0, {"data", "show", "{csv: {path: \"" EVIL_YAML "/table.csv\", label_columns: kind}}"}},
    {0, {"data", "convert", "mnist", EVIL "/digits", "--part", "test"}},
    {2, {"data", "tokenizer", EVIL "/missing"}},
    {2, {"data", "tokens", EVIL "/missing", EVIL "/missing"}},
    {2, {"data", "fetch", EVIL}},
    {0, {"data", "cache", "--data-cache-dir", EVIL "/cache"}},
    {0, {"data", "cache", "--data-cache-dir", EVIL "/cache", "--clear"}},
    {2, {"data", EVIL}},
    {2, {"models", EVIL}},
    {2, {"devices", "--" EVIL}},
    {2, {"completion", EVIL}},
    {2, {"version", "--" EVIL}},
    {2, {"help", EVIL}},
    {2, {EVIL}},
};

static bool is_walked(const char *command)
{
    bool walked = false;
    for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        char words[160];
        const char *const *a = walks[i].arguments;
        snprintf(words, sizeof words, "%s %s", a[0], strchr(command, ' ') && a[1] ? a[1] : "");
        size_t length = strlen(command);
        walked |= strncmp(words, command, length) == 0 && (words[length] == ' ' || words[length] == '\0');
    }
    return walked;
}

static void test_every_command_is_walked(void **state)
{
    (void)state;
    for (int i = 0; cli_commands[i]; i++) {
        const struct cli_command *const *children = cli_commands[i]->children;
        if (!is_walked(cli_commands[i]->name)) fail_msg("\"%s\" is not walked", cli_commands[i]->name);
        for (int k = 0; children && children[k]; k++)
            if (!is_walked(children[k]->name)) fail_msg("\"%s\" is not walked", children[k]->name);
    }
}

static void test_nothing_reaches_the_terminal(void **state)
{
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        struct session session;
        session_start(&session, &(struct setup){.arguments = walks[i].arguments});
        int code = session_end(&session);
        bool seen = walks[i].silent, good = code == walks[i].code;
        for (int which = 0; which < 2; which++) {
            const char *text = session.text[which];
            int at = find_control(text, session.size[which]);
            seen |= strstr(text, SEEN) || strstr(text, ESCAPED) || strstr(text, "bi?[2Jrd") ||
                    strstr(text, "bi\\u001b[2Jrd");
            if (at >= 0)
                print_error("byte %d of %s is 0x%02x\n", at, which ? "stderr" : "stdout", text[at] & 0xff);
            good &= at < 0;
        }
        if (!good || !seen) {
            bad++;
            session_show(&session);
            print_error("walk %zu, %s: exit code %d%s\n", i, walks[i].arguments[0], code,
                        seen ? "" : "; the name is not to be seen at all");
        }
        session_release(&session);
    }
    assert_int_equal(bad, 0);
}

/* There the program draws: what it draws is its own. */
static void test_nothing_reaches_a_progress_line(void **state)
{
    static const char *const
        train[] = {"train", TABLE, "--out", EVIL "/drawn", NULL},
        *const sweep[] = {"sweep", TABLE, "--set", "optimizer.rate=0.1,0.2", "--out", EVIL "/drawn-sweep",
                          NULL},
        *const eval[] = {"eval", RUN, "--confusion", NULL}, *const *const runs[] = {train, sweep, eval};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct session session;
        session_start(&session, &(struct setup){.arguments = runs[i], .columns = 120});
        (void)session_end(&session);
        static const char *const forbidden[] = {"\033[2J", "\033]", "\007", "\177", "\xc2\x9b", "\x9b"};
        for (size_t k = 0; k < sizeof forbidden / sizeof forbidden[0]; k++)
            if (strstr(session.text[0], forbidden[k])) {
                session_show(&session);
                fail_msg("%s writes sequence %zu to a terminal", runs[i][0], k);
            }
        if (!strstr(session.text[0], SEEN)) session_show(&session);
        assert_non_null(strstr(session.text[0], SEEN));
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_command_is_walked),
        cmocka_unit_test(test_nothing_reaches_the_terminal),
        cmocka_unit_test(test_nothing_reaches_a_progress_line),
    };
    return cmocka_run_group_tests(tests, make_evil, place_remove);
}
