/* Where modules are looked for does not depend on anything that the program's caller controls, such as
 * argv[0]; and no module is loaded that other users can write.
 */
#include "base/files/module.h"

#include "base/fail.h"
#include "base/files/build_folder.h"
#include "base/files/trust.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REASON_SIZE (PATH_MAX + 200)

/* Loads the module from `directory`. If there is a file that cannot be used, `reason` says why. */
static bool load_from(const struct tr_module *module, const char *directory, const char *program,
                      char *reason, const void **out)
{
    char name[PATH_MAX], path[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s/%s", directory, module->file);
    if (length < 0 || (size_t)length >= sizeof name || !realpath(name, path)) return false;
    if (tr_trust_check(path, program) != TR_OK) {
        snprintf(reason, REASON_SIZE, "%s", tr_error_message());
        return false;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        snprintf(reason, REASON_SIZE, "%s", why ? why : path);
        return false;
    }
    const int *version = dlsym(handle, module->symbol);
    if (!version || *version != module->version) {
        snprintf(reason, REASON_SIZE, "%s is of another version of Trireme", path);
        dlclose(handle);
        return false;
    }
    *out = version;
    return true;
}

/* The file that this code was loaded from, "" where that is not known: the program or the shared library.
 * The kernel reports its full path, however the loader was given it.
 */
static bool find_self(char path[PATH_MAX])
{
    char program[PATH_MAX] = "", line[PATH_MAX + 128];
    uintptr_t here = (uintptr_t)tr_module_load;
    FILE *maps = fopen("/proc/self/maps", "re");
    path[0] = '\0';
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t begin, end;
        int name = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &name) != 2) continue;
        if (here < begin || here >= end) continue;
        if (!name || !realpath(line + name, path)) path[0] = '\0';
        break;
    }
    if (maps) fclose(maps);
    if (!realpath("/proc/self/exe", program)) program[0] = '\0';
    return path[0] && strcmp(path, program) != 0;
}

tr_status tr_module_load(const struct tr_module *module, const void **out)
{
    char self[PATH_MAX], build[PATH_MAX], place[2 * PATH_MAX], reason[REASON_SIZE] = "";
    *out = NULL;
    bool is_library = find_self(self), is_built = tr_build_folder(self, build);
    /* An installation may be moved: program and library find the directory relative to themselves. */
    const char *slash = strrchr(self, '/');
    int directory = slash ? (int)(slash - self) : 0;
    if (is_built)
        snprintf(place, sizeof place, "%s/modules", build);
    else
        snprintf(place, sizeof place, "%.*s/%s", directory, self,
                 is_library ? "trireme" : TRIREME_MODULE_BELOW);
    if (slash && load_from(module, place, self, reason, out)) return TR_OK;
    if (load_from(module, TRIREME_MODULE_DIR, self, reason, out)) return TR_OK;
    if (reason[0])
        return tr_fail(TR_EUNSUPPORTED, "%s the module %s, which cannot be loaded: %s; %s", module->purpose,
                       module->file, reason, module->advice);
    if (is_built)
        return tr_fail(TR_EUNSUPPORTED,
                       "%s the module %s, which was not found in %s; %s, then build again: "
                       "cmake %s && cmake --build %s",
                       module->purpose, module->file, place, module->advice, build, build);
    return tr_fail(TR_EUNSUPPORTED,
                   "%s the module %s, which was not found in " TRIREME_MODULE_DIR
                   "; %s, then build and install again",
                   module->purpose, module->file, module->advice);
}
