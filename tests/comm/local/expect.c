#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/local/launch.h"

#include <stdio.h>
#include <string.h>

void launch_expect_loss(const char *output, int victim, int ranks, const char *what, const char *how)
{
    char text[80];
    for (int rank = 0; rank < ranks; rank++) {
        if (rank == victim) continue;
        snprintf(text, sizeof text, "rank %d says: ", rank);
        const char *line = strstr(output, text);
        if (!line) fail_msg("%s: rank %d says nothing; output:\n%s", what, rank, output);
        snprintf(text, sizeof text, "rank %d on host ", victim);
        const char *named = strstr(line, text), *explained = strstr(line, how), *end = strchr(line, '\n');
        if (!named || !explained || named > end || explained > end)
            fail_msg("%s: rank %d does not say that %s... %s, but \"%.*s\"", what, rank, text, how,
                     end ? (int)(end - line) : 400, line);
    }
}
