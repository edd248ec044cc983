/* The conformance suite on ranks that are processes of this host. */
#include "strategy/conformance/conformance.h"

int main(void)
{
    ranks_become(RANKS_ARE_PROCESSES);
    return conformance_run("strategy.conformance_processes");
}
