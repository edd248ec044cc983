#include "export/c/program.h"

#include "scratch.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* The second asks for all that could merge products and sums. */
static const char *const all[] = {
    "gcc -std=c99 -O2",
    "gcc -std=gnu17 -O3 -march=native -ffp-contract=fast",
    "clang -std=c99 -O2",
    "clang -std=gnu17 -O3 -march=native -ffp-contract=on",
};
enum { COMPILERS = sizeof all / sizeof all[0] };

#define WARNINGS "-Wall -Wextra -Werror -pedantic"

static bool is_there(const char *compiler)
{
    char command[256];
    snprintf(command, sizeof command, "%.*s --version > /dev/null 2>&1", (int)strcspn(compiler, " "),
             compiler);
    return system(command) == 0;
}

const char *const *program_compilers(void)
{
    static const char *have[COMPILERS + 1];
    if (have[0]) return have;
    int count = 0;
    for (int i = 0; i < COMPILERS; i++) {
        if (is_there(all[i]))
            have[count++] = all[i];
        else
            fprintf(stderr, "skipped: %s, which is not there\n", all[i]);
    }
    if (!count) fail_msg("neither gcc nor clang is there to compile with");
    return have;
}

void *program_open(const char *compiler, const char *source)
{
    static int opened; /* the loader takes a path that it knows for the same object */
    char object[SCRATCH_PATH + 32], command[3 * SCRATCH_PATH];
    snprintf(object, sizeof object, "%s.%d.so", source, opened++);
    snprintf(command, sizeof command, "%s " WARNINGS " -shared -fPIC -o '%s' '%s' -lm", compiler, object,
             source);
    if (system(command) != 0) fail_msg("failed: %s", command);
    void *program = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!program) fail_msg("%s", dlerror());
    return program;
}

void program_run(const char *compiler, const char *path, const char *first, const char *second)
{
    char command[4 * SCRATCH_PATH];
    snprintf(command, sizeof command, "%s " WARNINGS " -o '%s' '%s' '%s' -lm && '%s'", compiler, path, first,
             second, path);
    if (system(command) != 0) fail_msg("failed: %s", command);
}

void program_close(void *program)
{
    dlclose(program);
}

void (*program_function(void *program, const char *name))(void)
{
    void (*function)(void);
    void *symbol = dlsym(program, name);
    if (!symbol) fail_msg("%s", dlerror());
    memcpy(&function, &symbol, sizeof function);
    return function;
}
