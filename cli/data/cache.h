/* The data cache on the command line: where it is, and the options that commands share. */
#ifndef CLI_DATA_CACHE_H
#define CLI_DATA_CACHE_H

#include "cli/program/command.h"

struct cli_data_cache {
    bool use;
    char *directory; /* NULL: the default */
    int64_t megabytes;
};

#define CLI_OPTION_CACHE_DIRECTORY(object)                                                                   \
    {                                                                                                        \
        .key = "data_cache_dir", .type = TR_OPTION_STRING, .offset = offsetof(object, cache.directory),      \
        .fallback = "",                                                                                      \
        .help = "directory of the data cache; default: trireme in $XDG_CACHE_HOME or ~/.cache; variable "    \
                "TRIREME_DATA_CACHE_DIR",                                                                    \
        .flags = TR_OPTION_ENVIRONMENT, .value_name = "DIR"                                                  \
    }
#define CLI_OPTION_DATA_CACHE(object)                                                                        \
    {.key = "data_cache",                                                                                    \
     .type = TR_OPTION_BOOL,                                                                                 \
     .offset = offsetof(object, cache.use),                                                                  \
     .fallback = "true",                                                                                     \
     .help = "use unpacked data of the data cache, and keep them there for the next run; variable "          \
             "TRIREME_DATA_CACHE",                                                                           \
     .flags = TR_OPTION_ENVIRONMENT},                                                                        \
        CLI_OPTION_CACHE_DIRECTORY(object),                                                                  \
    {                                                                                                        \
        .key = "data_cache_size", .type = TR_OPTION_INT64, .offset = offsetof(object, cache.megabytes),      \
        .fallback = "10240", .least = 1, .most = 1e12,                                                       \
        .help = "MiB that the data cache may take; the least recently used entries go first; variable "      \
                "TRIREME_DATA_CACHE_SIZE",                                                                   \
        .flags = TR_OPTION_ENVIRONMENT, .value_name = "MIB"                                                  \
    }

/* The directory that the options choose. *out is NULL if no cache is to be used, or there is no home
   directory for it. Returned, free with tr_free(). TR_ENOMEM. */
tr_status cli_data_cache_directory(const struct cli_data_cache *cache, char **out);
/* The directory inside it for programs of devices, NULL if `directory` is NULL. Returned, free with
   tr_free(); TR_ENOMEM. */
tr_status cli_program_cache_directory(const char *directory, char **out);
/* Its size in bytes. */
int64_t cli_data_cache_bytes(const struct cli_data_cache *cache);

#endif
