/* Functions of the library that take the settings of commands, replaced by ones that write them down
 * (cli/noting.h) and fail with TR_EUNSUPPORTED. The test is linked with --wrap for each.
 */
#ifndef TESTS_CLI_NOTED_H
#define TESTS_CLI_NOTED_H

#include <stdbool.h>

/* A predictor is made in any case, and tells nothing of itself unless this is set. */
extern bool predictors_inform;

#endif
