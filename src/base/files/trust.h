/* Checks who could have changed a file whose code is about to run. */
#ifndef TR_BASE_TRUST_H
#define TR_BASE_TRUST_H

#include "trireme/status.h"

/* Checks that code in the file `path`, absolute and without links, can only come from users who can also
   change the running program: root, this user, and the owner of `program` (an absolute path without
   links). The file and all directories above it must belong to them and not be writable by others;
   directories that also contain the program are not checked. A group counts as others unless it is the
   owner's private one. TR_EUNSUPPORTED with the fault and its remedy. Any thread. */
tr_status tr_trust_check(const char *path, const char *program);

#endif
