#include "launch_place.h"

#include "base/file.h"
#include "base/file_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME "trireme-launch-"
/* A place this young may not be held yet. */
#define YOUNG_SECONDS 60

static const char *const above[] = {"/dev/shm", "/tmp"};
static const char *const variables[CLI_PLACE_VARIABLES] = {"OMPI_MCA_orte_tmpdir_base",
                                                           "OMPI_MCA_btl_vader_backing_directory"};

/* Removes a place of somebody who was killed; what is not ours cannot be opened or removed. */
static void remove_abandoned(const char *path)
{
    struct stat facts;
    int lock;
    if (lstat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() ||
        time(NULL) - facts.st_mtime < YOUNG_SECONDS || tr_file_lock(path, &lock) != TR_OK)
        return;
    tr_file_discard(NULL, path);
    if (lock >= 0) close(lock);
}

static void look_for_abandoned(const char *directory)
{
    struct tr_file_names names;
    if (tr_file_list(NULL, directory, &names) != TR_OK) return;
    for (int64_t i = 0; i < names.count; i++) {
        char path[300];
        if (strncmp(names.name[i], NAME, strlen(NAME)) != 0) continue;
        int length = snprintf(path, sizeof path, "%s/%s", directory, names.name[i]);
        if (length > 0 && (size_t)length < sizeof path) remove_abandoned(path);
    }
    tr_file_names_free(&names);
}

void cli_place_make(struct cli_place *place)
{
    *place = (struct cli_place){.lock = -1};
    for (size_t i = 0; i < sizeof above / sizeof above[0] && !place->path[0]; i++) {
        look_for_abandoned(above[i]);
        snprintf(place->path, sizeof place->path, "%s/" NAME "XXXXXX", above[i]);
        if (!mkdtemp(place->path)) place->path[0] = '\0';
    }
    if (!place->path[0]) return;
    if (tr_file_lock(place->path, &place->lock) != TR_OK) place->lock = -1;
    for (int i = 0; i < CLI_PLACE_VARIABLES; i++)
        place->told[i] = !getenv(variables[i]) && setenv(variables[i], place->path, 1) == 0;
}

void cli_place_remove(struct cli_place *place)
{
    for (int i = 0; i < CLI_PLACE_VARIABLES; i++)
        if (place->told[i]) unsetenv(variables[i]);
    if (place->path[0]) tr_file_discard(NULL, place->path);
    if (place->lock >= 0) close(place->lock);
    *place = (struct cli_place){.lock = -1};
}
