/* Completion: what the program answers, and that the scripts bring it about in the shells that are here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/complete/complete.h"
#include "cli/program/commands.h"
#include "cli/session.h"

/* ---- answers ---- */

static int set_up(void **state)
{
    if (place_make(state) != 0) return -1;
    mkdir("runs", 0777);
    mkdir("runs/first", 0777);
    mkdir("runs/empty", 0777);
    mkdir("results", 0777);
    write_text("runs/first/journal.jsonl", "{}\n");
    /* Names that would be several candidates, or a candidate and its help. */
    write_text("two\nlines.yaml", "");
    write_text("a\ttab.yaml", "");
    write_text("a\rreturn.yaml", "");
    return 0;
}

/* Whether `candidate` is a whole line of the answer, the first of which says what the shell adds. */
static bool is_in(const char *answer, const char *candidate)
{
    size_t length = strlen(candidate);
    for (const char *at = answer; (at = strstr(at, candidate)); at++)
        if ((at == answer || at[-1] == '\n') && at[length] == '\n') return true;
    return false;
}

static void the_word_decides(void **state)
{
    (void)state;
    static const struct {
        const char *words[6], *there[3], *absent;
    } cases[] = {
        {{""}, {"train", "data", "completion"}, "list"},
        {{"tr"}, {"train"}, "launch"},
        {{"data", ""}, {"list", "convert"}, "train"},
        {{"data", "list", "--d"}, {"--dir"}, "--json"},
        {{"train", "--res"}, {"--resume", "--resume-changed"}, "--model"},
        {{"train", ""}, {"mnist-quick", "tiny.yaml", "runs/"}, "images.idx"},
        {{"train", "tiny.yaml", "--log", ""}, {"text", "json", "none"}, "tiny.yaml"},
        {{"train", "--log=j"}, {"--log=json"}, "--log=text"},
        {{"train", "--set", "optimizer.r"}, {"optimizer.rate=", "optimizer.rule="}, "train.batch="},
        {{"train", "-s", "train.shuffle="}, {"train.shuffle=true", "train.shuffle=false"}, "train.shuffle="},
        {{"train", "--set", "strategy="}, {"strategy=pipeline"}, "strategy.pipeline.stages="},
        {{"train", "--set", "strategy.pipe"}, {"strategy.pipeline.stages="}, "strategy="},
        {{"train", "--strategy", "parameter-server,mode="},
         {"parameter-server,mode=async", "parameter-server,mode=sync"},
         "parameter-server"},
        {{"compare", "--strategies", "local-sgd,"},
         {"local-sgd,every=", "local-sgd,gossip"},
         "local-sgd,stages="},
        {{"compare", "--strategies", ""}, {"all", "allreduce", "pipeline"}, "pipeline,"},
        {{"compare", "--strategies", "pipeline,"}, {"pipeline,allreduce"}, "pipeline,all"},
        {{"train", "--strategy", ""}, {"allreduce", "pipeline"}, "all"},
        {{"eval", ""}, {"runs/first", "runs/", "results/"}, "runs/empty"},
        {{"eval", "runs/"}, {"runs/first", "runs/empty/"}, "runs/"},
        {{"eval", "runs/first", "--set-name", "t"}, {"test", "train"}, "validation"},
        {{"launch", "-n", "2", "tr"}, {"train"}, "mnist-quick"},
        {{"launch", "-n", "2", "train", "--ove"}, {"--overwrite"}, "--on-loss"},
        {{"data", "fetch", "fa"}, {"fashion-mnist"}, "mnist"},
        {{"help", "c"}, {"compare", "cheatsheet"}, "train"},
        {{"completion", ""}, {"bash", "zsh", "fish"}, "train"},
        {{"train", "--device", "c"}, {"cpu"}, "ref"},
        {{"inspect", ""}, {"mnist-quick", "tiny.yaml", "runs/first"}, "runs/empty"},
        {{"verify", ""}, {"runs/first"}, "tiny.yaml"},
        {{"receipt", ""}, {"runs/first"}, "tiny.yaml"},
        {{"log", ""}, {"runs/first"}, "tiny.yaml"},
        {{"dispute", ""}, {"runs/first"}, "tiny.yaml"},
        {{"dispute", "runs/first", ""}, {"runs/first"}, "tiny.yaml"},
        {{"diff", "runs/first", ""}, {"runs/first"}, "tiny.yaml"},
        {{"report", ""}, {"runs/first"}, "tiny.yaml"},
        {{"train", "--replay", ""}, {"runs/first"}, "tiny.yaml"},
        {{"train", "--resume", ""}, {"runs/first"}, "tiny.yaml"},
        {{"train", "--from", ""}, {"runs/first"}, "tiny.yaml"},
        {{"train", "--teacher", ""}, {"runs/first"}, "tiny.yaml"},
        {{"import", "--base", ""}, {"runs/first"}, "tiny.yaml"},
        {{"train", "--schedule", ""}, {"files"}, "runs/first"},
        {{"import", ""}, {"files"}, "runs/first"},
        {{"plan", "--json", ""}, {"files"}, "runs/first"},
        {{"train", "--out", ""}, {"directories"}, "runs/first"},
        {{"train", "--parameters-on", ""}, {"cpu", "ref"}, "avx2"},
        {{"train", "--isa", ""}, {"avx2", "plain"}, "cpu"},
        {{"train", "--transport", ""}, {"none", "local"}, "thread"},
        {{"data", "show", ""}, {"mnist", "fashion-mnist"}, "train"},
        {{"data", "convert", ""}, {"mnist", "fashion-mnist"}, "train"},
        {{"data", "verify", ""}, {"mnist", "fashion-mnist"}, "optimizer.rate="},
        {{"launch", ""}, {"train"}, "help"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        const char *const *w = cases[i].words;
        int code = run(&session, "completion", "bash", "--", w[0], w[1], w[2], w[3], w[4], w[5], NULL);
        assert_int_equal(code, 0);
        for (int k = 0; k < 3 && cases[i].there[k]; k++)
            if (!is_in(session.text[0], cases[i].there[k]))
                fail_msg("case %zu lacks %s: %s", i, cases[i].there[k], session.text[0]);
        if (is_in(session.text[0], cases[i].absent))
            fail_msg("case %zu has %s: %s", i, cases[i].absent, session.text[0]);
        session_release(&session);
    }
}

static void names_that_no_shell_can_take_are_left_out(void **state)
{
    (void)state;
    write_text("other.yml", "");
    write_text(".hidden.yaml", "");
    struct session session;
    assert_int_equal(run(&session, "completion", "bash", "--", "train", "", NULL), 0);
    assert_true(is_in(session.text[0], "tiny.yaml"));
    assert_true(is_in(session.text[0], "other.yml"));
    assert_null(strstr(session.text[0], "hidden"));
    assert_null(strstr(session.text[0], "lines.yaml"));
    assert_null(strstr(session.text[0], "tab.yaml"));
    assert_null(strstr(session.text[0], "return.yaml"));
    session_release(&session);
}

/* Options of texts that can be anything; all others have something to offer. */
static bool is_free(const char *command, const char *key)
{
    static const char *const texts[][2] = {
        {"", "data"},    {"", "shares"},   {"", "slow"},           {"", "title"},   {"", "prompt"},
        {"", "text"},    {"", "launched"}, {"", "hosts"},          {"", "rename"},  {"", "name"},
        {"", "mirror"},  {"", "part"},     {"", "format"},         {"", "packing"}, {"", "until"},
        {"", "budget"},  {"", "by"},       {"", "words"},          {"", "seed"},    {"", "index"},
        {"", "prefix"},  {"", "values"},   {"", "encoding"},       {"", "share"},   {"", "expect"},
        {"", "burn_in"}, {"", "special"},  {"generate", "source"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if ((!*texts[i][0] || strcmp(texts[i][0], command) == 0) && strcmp(texts[i][1], key) == 0)
            return true;
    return false;
}

static void walk(const struct cli_command *command)
{
    for (int i = 0; command->children && command->children[i]; i++) walk(command->children[i]);
    for (int32_t i = 0; i < command->option_count; i++) {
        const struct tr_option *option = &command->options[i];
        bool text = option->type == TR_OPTION_STRING || option->type == TR_OPTION_STRING_LIST ||
                    option->type == TR_OPTION_CHOICE;
        if (text && !cli_complete_knows(command, option) && !is_free(command->name, option->key))
            fail_msg("`trireme %s`: completion does not know what --%s takes", command->name, option->key);
    }
    /* Every option of a command in groups is below one heading, and no heading names what is not there. */
    for (int32_t i = 0; command->groups && i < command->option_count; i++) {
        int times = 0;
        const struct tr_option *option;
        for (int32_t g = 0; command->groups[g].heading; g++)
            for (int32_t k = 0; (option = tr_options_grouped(command->options, command->option_count,
                                                             command->groups, g, k));
                 k++)
                times += option == &command->options[i];
        if (times != !(command->options[i].flags & TR_OPTION_POSITIONAL))
            fail_msg("--%s is below %d headings", command->options[i].key, times);
    }
}

static void every_option_is_known(void **state)
{
    (void)state;
    for (int i = 0; cli_commands[i]; i++) walk(cli_commands[i]);
}

/* ---- in shells ---- */

struct shell {
    const char *name, *arguments[4], *begin;
};

/* Reads the terminal until `part` comes; false after two minutes, or where the shell has ended. */
static bool wait_for(int terminal, const char *part, char *text, size_t size)
{
    size_t length = 0;
    time_t end = time(NULL) + 120;
    while (time(NULL) < end) {
        struct pollfd ready = {.fd = terminal, .events = POLLIN};
        if (poll(&ready, 1, 1000) <= 0) continue;
        ssize_t count = read(terminal, text + length, size - 1 - length);
        if (count <= 0) return false;
        length += (size_t)count;
        text[length] = '\0';
        if (strstr(text, part)) return true;
        if (length + 1 >= size) length = 0;
    }
    return false;
}

static void type(int terminal, const char *keys)
{
    assert_int_equal(write(terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
}

static void try_shell(const struct shell *shell)
{
    static const char *const cases[][2] = {
        {"trireme tra", "trireme train"},
        {"trireme train mnist-q", "trireme train mnist-quick"},
        {"trireme train tin", "trireme train tiny.yaml"},
        {"trireme train --epo", "trireme train --epochs"},
        {"trireme train tiny.yaml --log j", "trireme train tiny.yaml --log json"},
        {"trireme train tiny.yaml --set optimizer.rat", "trireme train tiny.yaml --set optimizer.rate="},
        {"trireme train tiny.yaml --set train.shuffle=f",
         "trireme train tiny.yaml --set train.shuffle=false"},
        {"trireme train --strategy local-sgd,ev", "trireme train --strategy local-sgd,every="},
        {"trireme eval runs/fi", "trireme eval runs/first"},
        {"trireme data lis", "trireme data list"},
        {"trireme export runs/first --onnx tiny.y", "trireme export runs/first --onnx tiny.yaml"},
    };
    static char text[1 << 16];
    struct winsize size = {.ws_row = 40, .ws_col = 200};
    int terminal;
    pid_t process = forkpty(&terminal, NULL, NULL, &size);
    assert_true(process >= 0);
    if (process == 0) {
        char path[4096];
        snprintf(path, sizeof path, "%.*s:%s", (int)(strrchr(TRIREME_PROGRAM, '/') - TRIREME_PROGRAM),
                 TRIREME_PROGRAM, getenv("PATH"));
        setenv("PATH", path, 1);
        setenv("HOME", ".", 1);
        setenv("TERM", "dumb", 1);
        setenv("XDG_CONFIG_HOME", "config", 1);
        setenv("XDG_DATA_HOME", "config", 1);
        execlp(shell->name, shell->name, shell->arguments[0], shell->arguments[1], shell->arguments[2], NULL);
        _exit(127);
    }
    type(terminal, shell->begin);
    if (!wait_for(terminal, "it is ready", text, sizeof text)) fail_msg("%s: %s", shell->name, text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char shown[256];
        /* Tab, and then the line becomes the argument of echo, in the answer's brackets. */
        type(terminal, cases[i][0]);
        type(terminal, "\t");
        type(terminal, "\001echo 'a''nswer' \005 :end\r");
        snprintf(shown, sizeof shown, "answer %s", cases[i][1]);
        if (!wait_for(terminal, "answer ", text, sizeof text)) fail_msg("%s: %s", shell->name, text);
        char *line = strstr(text, "answer ");
        size_t have = strlen(text);
        while (!strstr(line, ":end") && have + 1 < sizeof text) {
            char *rest = text + have;
            if (!wait_for(terminal, ":end", rest, sizeof text - have)) break;
            have += strlen(rest);
        }
        if (strncmp(line, shown, strlen(shown)) != 0 || !strchr(" :", line[strlen(shown)]))
            fail_msg("%s, \"%s\" and tab: %s", shell->name, cases[i][0], line);
    }
    type(terminal, "exit\r");
    kill(process, SIGHUP);
    close(terminal);
    waitpid(process, NULL, 0);
}

static bool is_installed(const char *name)
{
    char command[64];
    snprintf(command, sizeof command, "command -v %s > /dev/null 2>&1", name);
    return system(command) == 0;
}

static void shells_complete(void **state)
{
    (void)state;
    static const struct shell shells[] = {
        {"bash", {"--norc", "--noprofile", "-i"}, "source <(trireme completion bash); echo it is 'r'eady\r"},
        {"zsh",
         {"-f", "-i", NULL},
         "unsetopt zle_bracketed_paste prompt_sp; bindkey -e; autoload -Uz compinit; compinit -D -u; "
         "source <(trireme completion zsh); echo it is 'r'eady\r"},
        {"fish",
         {"--no-config", "-i", NULL},
         "set -g fish_autosuggestion_enabled 0; trireme completion fish | source; echo it is 'r'eady\r"},
    };
    int tried = 0;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (!is_installed(shells[i].name)) {
            print_message("skipped: %s is not here\n", shells[i].name);
            continue;
        }
        try_shell(&shells[i]);
        tried++;
    }
    if (tried == 0) skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_word_decides),
        cmocka_unit_test(names_that_no_shell_can_take_are_left_out),
        cmocka_unit_test(every_option_is_known),
        cmocka_unit_test(shells_complete),
    };
    return cmocka_run_group_tests(tests, set_up, place_remove);
}
