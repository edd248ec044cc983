#include "base/files/trust.h"

#include "base/fail.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A group with the owner's name and no other members: distributions create one for each user, and let
 * groups write.
 */
static bool is_private(gid_t group, uid_t owner)
{
    char names[2][4096];
    struct passwd user, *found_user = NULL;
    struct group members, *found_group = NULL;
    if (getpwuid_r(owner, &user, names[0], sizeof names[0], &found_user) != 0 || !found_user) return false;
    if (getgrgid_r(group, &members, names[1], sizeof names[1], &found_group) != 0 || !found_group)
        return false;
    if (strcmp(user.pw_name, members.gr_name) != 0) return false;
    for (char **name = members.gr_mem; name && *name; name++)
        if (strcmp(*name, user.pw_name) != 0) return false;
    return true;
}

static tr_status check(const char *path, uid_t trusted)
{
    struct stat facts;
    if (lstat(path, &facts) != 0) return tr_fail(TR_EUNSUPPORTED, "%s: %s", path, strerror(errno));
    if (facts.st_uid != 0 && facts.st_uid != geteuid() && facts.st_uid != trusted)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s belongs to user %u, who is neither root nor the owner of the program", path,
                       (unsigned)facts.st_uid);
    /* In such a directory (sticky, like /tmp) users can create files but not replace those of others. */
    if (S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX)) return TR_OK;
    if (facts.st_mode & S_IWOTH)
        return tr_fail(TR_EUNSUPPORTED, "%s can be written by everybody; chmod o-w it", path);
    if ((facts.st_mode & S_IWGRP) && !is_private(facts.st_gid, facts.st_uid))
        return tr_fail(TR_EUNSUPPORTED, "%s can be written by its group; chmod g-w it", path);
    return TR_OK;
}

/* Whether the program lies in `directory`, or below. */
static bool has_program(const char *directory, const char *program)
{
    size_t length = strlen(directory);
    return strncmp(directory, program, length) == 0 && program[length] == '/';
}

tr_status tr_trust_check(const char *path, const char *program)
{
    char part[PATH_MAX];
    struct stat facts;
    uid_t trusted = *program && stat(program, &facts) == 0 ? facts.st_uid : 0;
    int length = snprintf(part, sizeof part, "%s", path);
    if (length < 0 || (size_t)length >= sizeof part)
        return tr_fail(TR_EUNSUPPORTED, "%.80s...: the path is too long", path);
    do {
        TR_TRY(check(part, trusted));
        *strrchr(part, '/') = '\0';
    } while (*part && !has_program(part, program));
    return TR_OK;
}
