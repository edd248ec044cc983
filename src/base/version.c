/* The version, from the build. */
#include "trireme/trireme.h"

const char *tr_version(void)
{
    return TRIREME_VERSION;
}
