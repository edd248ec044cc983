/* Whom a file has to be trusted with that is about to be run. */
#ifndef TR_BASE_TRUST_H
#define TR_BASE_TRUST_H

#include "trireme/status.h"

/* Checks that code in the file `path`, absolute and without links, can only come from those who can
   change the running program, too: root, this user, and the owner of `program` (its path, alike). The file
   and the directories on the way to it must be theirs and not be writable by others; directories that have
   the program in them, too, are not looked at. A group counts as others unless it is the private one of the
   owner. TR_EUNSUPPORTED with what is wrong and how to mend it. Any thread. */
tr_status tr_trust_check(const char *path, const char *program);

#endif
