/* The conformance suite on ranks that are threads. */
#include "strategy/conformance/conformance.h"

int main(void)
{
    return conformance_run("strategy.conformance");
}
