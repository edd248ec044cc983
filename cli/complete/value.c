/* The values that options take: by their type, by the placeholder of their value in --help, and by name. */
#include "cli/complete/complete.h"

#include "cli/program/commands.h"
#include "cli/complete/set.h"
#include "cli/program/shipped.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/options/registry.h"
#include "comm/transport.h"
#include "device/device.h"
#include "device/isas.h"
#include "strategy/class.h"
#include "trireme/data.h"

#include <string.h>

enum kind {
    NOTHING, /* a number, or any text */
    CHOICES,
    MODELS,
    RUNS,
    MODELS_AND_RUNS,
    SETTINGS,
    STRATEGY,
    STRATEGIES,
    DEVICES,
    ISAS,
    TRANSPORTS,
    DATA_SETS,
    PARTS,
    COMMANDS,
    FILES,
    DIRECTORIES
};

static const struct {
    const char *command; /* NULL: any */
    const char *key;
    enum kind kind;
} kinds[] = {
    {"inspect", "path", MODELS_AND_RUNS},
    {"verify", "path", RUNS},
    {"receipt", "path", RUNS},
    {"log", "path", RUNS},
    {"dispute", "a", RUNS},
    {"dispute", "b", RUNS},
    {"dispute", "answer", RUNS},
    {NULL, "replay", RUNS},
    {NULL, "schedule", FILES},
    {NULL, "resume", RUNS},
    {NULL, "from", RUNS},
    {NULL, "teacher", RUNS},
    {NULL, "checkpoint", RUNS},
    {NULL, "runs", RUNS},
    {NULL, "run_a", RUNS},
    {NULL, "run_b", RUNS},
    {NULL, "set_name", PARTS},
    {NULL, "strategy", STRATEGY},
    {NULL, "strategies", STRATEGIES},
    {NULL, "device", DEVICES},
    {NULL, "parameters_on", DEVICES},
    {NULL, "isa", ISAS},
    {"train", "transport", TRANSPORTS},
    {"data fetch", "set", DATA_SETS},
    {"data verify", "set", DATA_SETS},
    {NULL, "set", SETTINGS},
    {NULL, "model", MODELS},
    {"launch", "command", COMMANDS},
    {"help", "command", COMMANDS},
    {"import", "file", FILES},
    {"import", "base", RUNS},
    {"export", "peft", DIRECTORIES},
    {"data convert", "path", FILES},
    {"data tokens", "tokenizer", FILES},
};

static enum kind kind_of(const struct cli_command *command, const struct tr_option *option)
{
    const char *value = option->value_name ? option->value_name : "";
    if (option->type == TR_OPTION_CHOICE) return CHOICES;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool here = !kinds[i].command || strcmp(kinds[i].command, command->name) == 0;
        if (here && strcmp(kinds[i].key, option->key) == 0) return kinds[i].kind;
    }
    if (strcmp(value, "FILE") == 0) return FILES;
    if (strcmp(value, "DIR") == 0) return DIRECTORIES;
    if (strcmp(value, "SET|TEXT") == 0) return DATA_SETS;
    return NOTHING;
}

bool cli_complete_knows(const struct cli_command *command, const struct tr_option *option)
{
    return kind_of(command, option) != NOTHING;
}

/* The beginning of the value up to its last '/', "" if it has none. Returned, free with tr_free(). */
static char *folder_of(const char *value)
{
    const char *slash = strrchr(value, '/');
    return tr_format("%.*s", slash ? (int)(slash - value + 1) : 0, value);
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), own = strlen(suffix);
    return length > own && strcmp(name + length - own, suffix) == 0;
}

enum { WITH_MODELS = 1, WITH_RUNS = 2, WITH_FOLDERS = 4 };

/* The entries of `folder` ("" or with its last '/') that are a model file, the directory of a run, or any
   directory. */
static void add_entries(struct cli_candidates *out, const char *head, const char *folder, int wanted)
{
    struct tr_file_names names;
    const tr_status status = tr_file_list(NULL, *folder ? folder : ".", &names);
    out->lines.failed |= status == TR_ENOMEM;
    if (status != TR_OK) return;
    for (int64_t i = 0; i < names.count; i++) {
        const char *name = names.name[i];
        if (name[0] == '.') continue;
        char *path = cli_candidates_need(out, tr_format("%s%s", folder, name)),
             *journal = cli_candidates_need(out, tr_format("%s%s/journal.jsonl", folder, name));
        if (path && journal &&
            strncmp(path, out->word + strlen(head), strlen(out->word + strlen(head))) == 0) {
            if (wanted & WITH_MODELS && (ends_in(name, ".yaml") || ends_in(name, ".yml")))
                cli_candidates_join(out, head, path, "", "model file");
            else if (wanted & WITH_RUNS && tr_file_exists(journal))
                cli_candidates_join(out, head, path, "", "a run");
            else if (wanted & WITH_FOLDERS && tr_file_is_directory(path))
                cli_candidates_join(out, head, path, "/", NULL);
        }
        tr_free(path);
        tr_free(journal);
    }
    tr_file_names_free(&names);
}

static void add_paths(struct cli_candidates *out, const char *head, int wanted)
{
    char *folder = cli_candidates_need(out, folder_of(out->word + strlen(head)));
    if (!folder) return;
    add_entries(out, head, folder, wanted | WITH_FOLDERS);
    if (!*folder && wanted & WITH_RUNS) add_entries(out, head, "runs/", WITH_RUNS);
    tr_free(folder);
}

static void add_models(struct cli_candidates *out, const char *head)
{
    char *directory;
    struct tr_file_names names;
    const tr_status status = cli_shipped_models(&directory, &names);
    out->lines.failed |= status == TR_ENOMEM;
    if (status != TR_OK) return;
    for (int64_t i = 0; i < names.count; i++)
        cli_candidates_join(out, head, names.name[i], "", "ships with Trireme");
    tr_file_names_free(&names);
    tr_free(directory);
}

static void add_registry(struct cli_candidates *out, const char *head, const struct tr_registry *registry)
{
    for (const struct tr_entry *const *entry = registry->entries; *entry; entry++)
        cli_candidates_join(out, head, (*entry)->name, "", (*entry)->help);
}

static void add_words(struct cli_candidates *out, const char *head, const char *const *words)
{
    for (; *words; words++) cli_candidates_join(out, head, *words, "", NULL);
}

static void add_data_sets(struct cli_candidates *out, const char *head)
{
    const struct tr_data_set_info *set;
    for (int i = 0; (set = tr_data_set_at(i)) != NULL; i++)
        cli_candidates_join(out, head, set->name, "", set->title);
}

static void add_commands(struct cli_candidates *out, const struct cli_command *command, const char *head)
{
    bool help = command == &cli_help;
    for (int i = 0; cli_commands[i]; i++)
        if (help || cli_commands[i] == &cli_train)
            cli_candidates_join(out, head, cli_commands[i]->name, "", cli_commands[i]->summary);
    if (help) cli_candidates_join(out, head, "cheatsheet", "", "what one wants to do, and what to type");
}

void cli_complete_value(struct cli_candidates *out, const struct cli_command *command,
                        const struct tr_option *option, const char *head)
{
    static const char *const parts[] = {"test", "validation", "train", NULL};
    static const char *const isas[] = {TR_ISAS(TR_ISA_NAME) NULL};
    switch (kind_of(command, option)) {
    case CHOICES:
        cli_complete_choices(out, head, option);
        break;
    case MODELS:
        add_models(out, head);
        add_paths(out, head, WITH_MODELS);
        break;
    case RUNS:
        add_paths(out, head, WITH_RUNS);
        break;
    case MODELS_AND_RUNS:
        add_models(out, head);
        add_paths(out, head, WITH_MODELS | WITH_RUNS);
        break;
    case SETTINGS:
        cli_complete_setting(out, head);
        break;
    case STRATEGY:
        cli_complete_strategy(out, head, false);
        break;
    case STRATEGIES:
        cli_complete_strategy(out, head, true);
        break;
    case DEVICES:
        add_registry(out, head, &tr_device_kinds);
        break;
    case ISAS:
        add_words(out, head, isas);
        break;
    case TRANSPORTS:
        add_registry(out, head, &tr_transports);
        break;
    case DATA_SETS:
        add_data_sets(out, head);
        break;
    case PARTS:
        add_words(out, head, parts);
        break;
    case COMMANDS:
        add_commands(out, command, head);
        break;
    case FILES:
        out->paths = CLI_COMPLETE_FILES;
        break;
    case DIRECTORIES:
        out->paths = CLI_COMPLETE_DIRECTORIES;
        break;
    case NOTHING:
        break;
    }
}
