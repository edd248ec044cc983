/* Modules: parts of the program in separate shared objects, so that the libraries they are made of are
 * needed only by those who use them.
 *
 * A module shares no code with the library. It exports one constant structure whose first member is `int
 * version`; it takes and gives plain C types and reports failures as text.
 */
#ifndef TR_BASE_MODULE_H
#define TR_BASE_MODULE_H

#include "trireme/status.h"

struct tr_module {
    const char *file;    /* "trireme-fetch.so" */
    const char *symbol;  /* name of the structure it exports */
    int version;         /* required value of the first member of the structure */
    const char *purpose; /* "downloads need": begins the message when it cannot be loaded */
    const char *advice;  /* "install libcurl4": what to do before building again, near the end of the
                            message */
};

/* Loads a module and writes the address of its structure, which stays valid until the process ends:
   modules are never unloaded. Looks in the modules' directory of the installation, relative to this
   program or library; or in its build folder; and in the library directory that it was built for. Files
   and directories that other users can write are refused, see base/files/trust.h. TR_EUNSUPPORTED with the
   reason and the advice. Any thread. */
tr_status tr_module_load(const struct tr_module *module, const void **out);

#endif
