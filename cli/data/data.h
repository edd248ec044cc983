/* The commands of `trireme data`, and what they share. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "cli/program/command.h"
#include "cli/program/shipped.h"

#include "trireme/data.h"

extern const struct cli_command cli_data_list, cli_data_verify, cli_data_show, cli_data_convert,
    cli_data_fetch, cli_data_cache, cli_data_tokenizer, cli_data_tokens;

#define CLI_OPTION_DIRECTORY(object)                                                                         \
    {                                                                                                        \
        .key = "dir", .type = TR_OPTION_STRING, .offset = offsetof(object, directory),                       \
        .fallback = CLI_DATA_DIRECTORY,                                                                      \
        .help = "directory of the data sets, each in a directory of its name; without this option, missing " \
                "sets are looked for among those that ship with Trireme",                                    \
        .value_name = "DIR"                                                                                  \
    }
#define CLI_OPTION_PART(object, otherwise, meaning)                                                          \
    {                                                                                                        \
        .key = "part", .type = TR_OPTION_STRING, .offset = offsetof(object, part), .fallback = otherwise,    \
        .help = "part of the set, as `trireme data list` names them", .letter = 'p', .value_name = "NAME"    \
    }
#define CLI_OPTION_WHAT(object)                                                                              \
    {                                                                                                        \
        .key = "what", .type = TR_OPTION_STRING, .offset = offsetof(object, what), .fallback = NULL,         \
        .help = "name of a data set, or a description as in a model file, with paths from here: "            \
                "'{idx: {images: FILE, labels: FILE}}'",                                                     \
        .flags = TR_OPTION_POSITIONAL, .value_name = "SET|TEXT"                                              \
    }

/* Opens a part of a known set, or a description (it begins with '{'). Returned, close with
   tr_source_close(). */
tr_status cli_data_open(const char *what, const char *part, const char *directory, tr_source **out);

#endif
