/* A command of the program: its name, its option table, and its function.
 *
 * One file per command defines one `const struct cli_command`; commands.h lists them. Common to all are
 * defaults, environment and command line (arguments.h), --help (command_help.h), error messages and exit
 * codes (dispatch.h).
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/options/help.h"
#include "base/threads/team.h"
#include "cli/program/exit_codes.h"

/* The head of every command's struct of options. */
struct cli_common {
    bool help;
};

struct cli_command {
    const char *name;    /* "train", "data list" */
    const char *summary; /* a line in the list of commands */
    const char *about;   /* the paragraph in --help */
    const struct tr_option *options;
    int32_t option_count;
    size_t options_size; /* of the struct that the table fills; begins with struct cli_common */
    size_t model;        /* offset in it of the char * that is a model file or the name of one that ships
                            (shipped.h); 0: there is none */
    /* Runs the command; `options` is borrowed for the call. On failure the thread's message is printed as
       "trireme NAME: message" and the exit code follows from the status. */
    tr_status (*run)(const void *options);
    const struct tr_option_group *groups; /* headings of --help; NULL: one */
    bool takes_runs;                      /* instead of a model file the directory of a run is accepted */
    bool passes_arguments; /* from its first positional argument on, the words are another command's */
    const struct cli_command *const *children; /* ends with NULL; a command with children has only name,
                                                  summary and about */
};

/* The members `options`, `option_count` and `options_size`. */
#define CLI_OPTIONS(table, object)                                                                           \
    .options = (table), .option_count = TR_OPTION_COUNT(table), .options_size = sizeof(object)

/* Entries that several tables share. */
#define CLI_OPTION_HELP(object)                                                                              \
    {                                                                                                        \
        .key = "help", .type = TR_OPTION_BOOL, .offset = offsetof(object, common.help), .fallback = "false", \
        .help = "print this text", .flags = TR_OPTION_LEAVES, .letter = 'h'                                  \
    }
#define CLI_OPTION_JSON(object)                                                                              \
    {                                                                                                        \
        .key = "json", .type = TR_OPTION_BOOL, .offset = offsetof(object, json), .fallback = "false",        \
        .help = "print JSON"                                                                                 \
    }
#define CLI_OPTION_SET(object)                                                                               \
    {                                                                                                        \
        .key = "set", .type = TR_OPTION_STRING_LIST, .offset = offsetof(object, set), .fallback = "",        \
        .help = "changes a field of the model file, for instance optimizer.rate=1e-3; may be given "         \
                "several times",                                                                             \
        .letter = 's', .value_name = "KEY=VALUE"                                                             \
    }
#define CLI_MODEL_HELP "model file, or the name of one that ships (`trireme models`); a file here comes first"
/* A model that must be given, and strategies to try: strings. */
#define CLI_OPTION_MODEL(object)                                                                             \
    {                                                                                                        \
        .key = "model", .type = TR_OPTION_STRING, .offset = offsetof(object, model), .fallback = NULL,       \
        .help = CLI_MODEL_HELP, .flags = TR_OPTION_POSITIONAL                                                \
    }
#define CLI_OPTION_STRATEGIES(object)                                                                        \
    {                                                                                                        \
        .key = "strategies", .type = TR_OPTION_STRING, .offset = offsetof(object, strategies),               \
        .fallback = "all",                                                                                   \
        .help = "all, or a list such as allreduce,local-sgd,every=4,pipeline, where an item with = is an "   \
                "option of the preceding strategy",                                                          \
        .value_name = "LIST"                                                                                 \
    }
/* For commands that repeat a run from its receipt: a model file in its place, the checkpoint that the run
   began with, and overrides. */
#define CLI_OPTIONS_REPEATED_RUN(object)                                                                     \
    {.key = "model",                                                                                         \
     .type = TR_OPTION_STRING,                                                                               \
     .offset = offsetof(object, model),                                                                      \
     .fallback = "",                                                                                         \
     .help = "model file to use instead of the receipt's; its settings must be the same",                    \
     .letter = 'm',                                                                                          \
     .value_name = "FILE"},                                                                                  \
        CLI_OPTION_SET(object),                                                                              \
    {                                                                                                        \
        .key = "from", .type = TR_OPTION_STRING, .offset = offsetof(object, from), .fallback = "",           \
        .help = "the checkpoint that the run started from (train --from), if there was one",                 \
        .value_name = "DIR"                                                                                  \
    }
/* A bool. */
#define CLI_OPTION_MEMORY_CHECK(object)                                                                      \
    {                                                                                                        \
        .key = "memory_check", .type = TR_OPTION_BOOL, .offset = offsetof(object, memory_check),             \
        .fallback = "true",                                                                                  \
        .help = "refuse a run that needs more memory than the machine or its control group has free; "       \
                "variable TRIREME_MEMORY_CHECK",                                                             \
        .flags = TR_OPTION_ENVIRONMENT                                                                       \
    }
/* An int64_t; -1 without one. */
#define CLI_OPTION_SEED(object)                                                                              \
    {                                                                                                        \
        .key = "seed", .type = TR_OPTION_INT64, .offset = offsetof(object, seed), .fallback = "-1",          \
        .least = -1, .most = TR_OPTION_WHOLE,                                                                \
        .help = "seed instead of the model file's; -1: as the file says"                                     \
    }
/* For commands that start processes; each describes the purpose of the threads. */
#define CLI_OPTION_THREADS(object, text)                                                                     \
    {                                                                                                        \
        .key = "threads", .type = TR_OPTION_INT32, .offset = offsetof(object, threads), .fallback = "0",     \
        .least = 0, .most = TR_TEAM_MAX, .help = text, .letter = 't'                                         \
    }
/* Options of devices and threads: the environment may set these, too. */
struct cli_device {
    char *device, *isa;
    int32_t threads;
};
#define CLI_OPTION_DEVICE(object)                                                                            \
    {.key = "threads",                                                                                       \
     .type = TR_OPTION_INT32,                                                                                \
     .offset = offsetof(object, device.threads),                                                             \
     .fallback = "0",                                                                                        \
     .least = 0,                                                                                             \
     .most = TR_TEAM_MAX,                                                                                    \
     .help = "threads; 0: one per core; any number gives the same bits; variable TRIREME_THREADS",           \
     .flags = TR_OPTION_ENVIRONMENT,                                                                         \
     .letter = 't'},                                                                                         \
        {.key = "device",                                                                                    \
         .type = TR_OPTION_STRING,                                                                           \
         .offset = offsetof(object, device.device),                                                          \
         .fallback = "cpu",                                                                                  \
         .help =                                                                                             \
             "device that computes, see `trireme devices`: cpu, ref, gpu, cuda, opencl, or cuda:1 for the "  \
             "second; variable TRIREME_DEVICE",                                                              \
         .flags = TR_OPTION_ENVIRONMENT,                                                                     \
         .value_name = "NAME"},                                                                              \
    {                                                                                                        \
        .key = "isa", .type = TR_OPTION_STRING, .offset = offsetof(object, device.isa), .fallback = "",      \
        .help =                                                                                              \
            "instruction set of the cpu device (avx512, avx2, neon, plain, sse2) instead of the best one; "  \
            "variable TRIREME_ISA",                                                                          \
        .flags = TR_OPTION_ENVIRONMENT, .value_name = "NAME"                                                 \
    }

#endif
