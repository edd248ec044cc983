/* Prints, to the bit, what an exported network makes of made-up examples: for a comparison of processors. The
 * network, `net`, lies in network.c. */
#define NET_DECLARATIONS
#include "network.c"

#include <stdio.h>

static uint32_t next(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u;
}

int main(void)
{
    static float output[NET_OUTPUTS], workspace[NET_WORKSPACE];
    uint32_t state = 1;
    for (int32_t example = 0; example < 20; example++) {
#ifdef NET_INPUTS
        static float input[NET_INPUTS];
        for (int k = 0; k < NET_INPUTS; k++) input[k] = (float)(next(&state) >> 24);
        net_predict(input, output, workspace);
#else
        int32_t tokens[20];
        for (int32_t t = 0; t < example; t++) tokens[t] = (int32_t)(next(&state) >> 26);
        net_predict(tokens, example, output, workspace);
#endif
        for (int k = 0; k < NET_OUTPUTS; k++) printf("%a ", (double)output[k]);
        net_probabilities(output, output);
        for (int k = 0; k < NET_OUTPUTS; k++) printf("%a ", (double)output[k]);
        printf("\n");
    }
    return 0;
}
