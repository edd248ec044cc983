#include "cli/program/shipped.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/build_folder.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".yaml"

tr_status cli_shipped_directory(char **out)
{
    /* As the kernel reports it, not as argv[0] does. */
    char program[PATH_MAX] = "", build[PATH_MAX], below[2 * PATH_MAX], real[PATH_MAX];
    if (!realpath("/proc/self/exe", program)) program[0] = '\0';
    const char *slash = strrchr(program, '/');
    if (tr_build_folder(program, build))
        snprintf(below, sizeof below, "%s/sources", build);
    else
        snprintf(below, sizeof below, "%.*s/" TRIREME_SHIPPED_BELOW, slash ? (int)(slash - program) : 0,
                 program);
    *out = tr_strdup(realpath(below, real) ? real : TRIREME_SHIPPED);
    if (!*out) return TR_ENOMEM;
    if (tr_file_is_directory(*out)) return TR_OK;
    tr_status status = tr_fail(TR_ENOTFOUND,
                               "there is no directory \"%s\", in which this program has its models and data; "
                               "install them, too (package trireme-data)",
                               *out);
    tr_free(*out);
    *out = NULL;
    return status;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Leaves the names without the suffix, in their order; drops other files. */
static void keep_models(struct tr_file_names *names)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < names->count; i++) {
        char *name = names->name[i], *end = strrchr(name, '.');
        if (end && end > name && strcmp(end, SUFFIX) == 0) {
            *end = '\0';
            names->name[kept++] = name;
        } else {
            tr_free(name);
        }
    }
    names->count = kept;
    if (kept > 1) qsort(names->name, (size_t)kept, sizeof *names->name, by_bytes);
}

tr_status cli_shipped_models(char **directory, struct tr_file_names *names)
{
    char *shipped;
    *directory = NULL;
    *names = (struct tr_file_names){0};
    TR_TRY(cli_shipped_directory(&shipped));
    *directory = tr_path_join(shipped, "models");
    tr_free(shipped);
    if (!*directory) return TR_ENOMEM;
    tr_status status = tr_file_list(NULL, *directory, names);
    if (status == TR_OK) {
        keep_models(names);
        return TR_OK;
    }
    tr_free(*directory);
    *directory = NULL;
    return status;
}

/* A path contains a folder or a suffix. */
static bool may_be_name(const char *text)
{
    return *text && !strpbrk(text, "/.") && !tr_file_exists(text);
}

tr_status cli_shipped_find_model(char **path)
{
    char *directory, *file = NULL;
    struct tr_file_names names;
    if (!*path || !may_be_name(*path)) return TR_OK;
    if (cli_shipped_models(&directory, &names) != TR_OK)
        return TR_OK; /* a missing file is reported when it is opened */
    tr_status status = TR_ENOTFOUND;
    for (int64_t i = 0; i < names.count && status == TR_ENOTFOUND; i++) {
        if (strcmp(names.name[i], *path) != 0) continue;
        file = tr_format("%s/%s" SUFFIX, directory, *path);
        status = file ? TR_OK : TR_ENOMEM;
    }
    if (status == TR_OK) {
        tr_free(*path);
        *path = file;
    } else if (status == TR_ENOTFOUND) {
        const char *nearest = tr_text_nearest(*path, (const char *const *)names.name, (int32_t)names.count);
        tr_fail(status,
                "there is no file \"%s\" here, and no model of that name ships with Trireme%s%s%s; "
                "`trireme models` lists those that do",
                *path, nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
    }
    tr_file_names_free(&names);
    tr_free(directory);
    return status;
}

tr_status cli_shipped_find_data(const char *directory, const char *set, char **out)
{
    char *here = tr_path_join(directory, set), *shipped = NULL, *there = NULL;
    tr_status status = here ? TR_OK : TR_ENOMEM;
    *out = NULL;
    if (here && strcmp(directory, CLI_DATA_DIRECTORY) == 0 && !tr_file_exists(here))
        status = cli_shipped_directory(&shipped);
    if (shipped && !(there = tr_format("%s/data/%s", shipped, set))) status = TR_ENOMEM;
    if (status != TR_ENOMEM)
        *out = there && tr_file_is_directory(there) ? tr_path_parent(there) : tr_strdup(directory);
    tr_free(there);
    tr_free(shipped);
    tr_free(here);
    return *out ? TR_OK : TR_ENOMEM;
}
