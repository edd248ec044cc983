/* Texts that lie as files beside the sources and that the build puts into the program: those that cli/CMakeLists.txt
 * lists, each called as its file up to the first dot.
 */
#ifndef CLI_TEXTS_H
#define CLI_TEXTS_H

#include "trireme/status.h"

/* A text. *out is terminated; free with tr_free(). TR_ENOTFOUND for a name that is not listed, TR_ENOMEM. */
tr_status cli_text(const char *name, char **out);

#endif
