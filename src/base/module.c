#include "base/module.h"

#include "base/fail.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REASON_SIZE (PATH_MAX + 100)

/* Loads the module from `directory`/`below`. If there is a file that does not serve, `reason` says why. */
static bool load_from(const struct tr_module *module, const char *directory, const char *below, char *reason,
                      const void **out)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s%s", directory, below, module->file);
    if (length < 0 || (size_t)length >= sizeof path || access(path, R_OK) != 0) return false;
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

/* Cuts a path to its directory. */
static bool cut_to_directory(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}

tr_status tr_module_load(const struct tr_module *module, const void **out)
{
    static const char *const below[] = {"", "trireme/", "modules/", "../modules/", TRIREME_MODULE_BELOW};
    char place[2][PATH_MAX], reason[REASON_SIZE] = "";
    int places = 0;
    *out = NULL;
    ssize_t length = readlink("/proc/self/exe", place[places], PATH_MAX - 1);
    if (length > 0) {
        place[places][length] = 0;
        places += cut_to_directory(place[places]);
    }
    Dl_info self;
    if (dladdr((const void *)tr_module_load, &self) != 0 && self.dli_fname) {
        snprintf(place[places], PATH_MAX, "%s", self.dli_fname);
        places += cut_to_directory(place[places]);
    }
    for (int i = 0; i < places; i++) {
        for (size_t k = 0; k < sizeof below / sizeof below[0]; k++)
            if (load_from(module, place[i], below[k], reason, out)) return TR_OK;
    }
    if (load_from(module, TRIREME_MODULE_DIR, "", reason, out)) return TR_OK;
    if (reason[0])
        return tr_fail(TR_EUNSUPPORTED, "%s the module %s, which cannot be loaded: %s; %s", module->purpose,
                       module->file, reason, module->advice);
    return tr_fail(TR_EUNSUPPORTED,
                   "%s the module %s, which was not found beside the program or in " TRIREME_MODULE_DIR
                   "; %s",
                   module->purpose, module->file, module->advice);
}
