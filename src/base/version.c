/* The versions: of the program, from the build, and of the arithmetic. */
#include "trireme/trireme.h"

const char *tr_version(void)
{
    return TRIREME_VERSION;
}

/* One more with every entry under Hashes of CHANGELOG.md that a release brings. */
int tr_numerics_version(void)
{
    return 2;
}
