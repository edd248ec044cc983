/* A program of somebody else's: loads the library that its argument names, which loads the module of the
 * tests. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments)
{
    if (count != 2) return 2;
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "module_use") : NULL;
    if (!found) {
        const char *why = dlerror();
        puts(why ? why : "no function");
        return 3;
    }
    int (*use)(void);
    memcpy(&use, &found, sizeof use);
    return use();
}
