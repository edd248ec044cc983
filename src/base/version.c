/* The versions: of the program, from the build, and of the arithmetic. */
#include "trireme/trireme.h"

const char *tr_version(void)
{
    return TRIREME_VERSION;
}

/* Increased by one for every entry under Hashes of CHANGELOG.md in a release. */
int tr_numerics_version(void)
{
    return 3;
}
