/* Nothing that the caller of the program chooses, like argv[0], decides where modules are looked for, and
 * none is loaded that others can have written. */
#include "base/files/module.h"

#include "base/fail.h"
#include "base/files/trust.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REASON_SIZE (PATH_MAX + 200)

/* Loads the module from `directory`. If there is a file that does not serve, `reason` says why. */
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

/* What was loaded where an address lies. */
struct loaded {
    uintptr_t address;
    int before;       /* objects that were looked at */
    const char *name; /* NULL for the program, the first of all: what it is called is up to its caller */
};

static int find_loaded(struct dl_phdr_info *object, size_t size, void *user)
{
    struct loaded *loaded = user;
    bool is_program = loaded->before++ == 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || loaded->address - (object->dlpi_addr + part->p_vaddr) >= part->p_memsz)
            continue;
        if (!is_program) loaded->name = object->dlpi_name;
        return 1;
    }
    return 0;
}

/* The file that this code was loaded from, "" where that is not known: the program, or the shared library. */
static bool find_self(char path[PATH_MAX])
{
    struct loaded self = {.address = (uintptr_t)tr_module_load};
    path[0] = '\0';
    dl_iterate_phdr(find_loaded, &self);
    bool is_library = self.name && self.name[0] == '/';
    if (!realpath(is_library ? self.name : "/proc/self/exe", path)) path[0] = '\0';
    return is_library;
}

static bool lies_below(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

tr_status tr_module_load(const struct tr_module *module, const void **out)
{
    char self[PATH_MAX], beside[2 * PATH_MAX], reason[REASON_SIZE] = "";
    *out = NULL;
    bool is_library = find_self(self);
    /* An installation may be moved: its program and library know the way from where they are. */
    const char *slash = strrchr(self, '/');
    int directory = slash ? (int)(slash - self) : 0;
    snprintf(beside, sizeof beside, "%.*s/%s", directory, self,
             is_library ? "trireme" : TRIREME_MODULE_BELOW);
    if (slash && load_from(module, beside, self, reason, out)) return TR_OK;
    if (lies_below(self, TRIREME_BUILD_DIR) &&
        load_from(module, TRIREME_BUILD_DIR "/modules", self, reason, out))
        return TR_OK;
    if (load_from(module, TRIREME_MODULE_DIR, self, reason, out)) return TR_OK;
    if (reason[0])
        return tr_fail(TR_EUNSUPPORTED, "%s the module %s, which cannot be loaded: %s; %s", module->purpose,
                       module->file, reason, module->advice);
    if (lies_below(self, TRIREME_BUILD_DIR))
        return tr_fail(TR_EUNSUPPORTED,
                       "%s the module %s, which was not found in " TRIREME_BUILD_DIR
                       "/modules; %s, then build again: "
                       "cmake " TRIREME_BUILD_DIR " && cmake --build " TRIREME_BUILD_DIR,
                       module->purpose, module->file, module->advice);
    return tr_fail(TR_EUNSUPPORTED,
                   "%s the module %s, which was not found in " TRIREME_MODULE_DIR
                   "; %s, then build and install again",
                   module->purpose, module->file, module->advice);
}
