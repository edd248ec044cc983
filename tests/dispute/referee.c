#include "dispute/referee.h"

#include "support/training.h"

#include "base/files/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

static int run(const char *directory, const char *text, const char *from)
{
    char path[SCRATCH_PATH], command[2 * SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, directory, "case"), text, strlen(text)));
    snprintf(command, sizeof command, "%s %s%s > /dev/null", TEST_REFEREE, from, path);
    const int code = system(command);
    assert_true(WIFEXITED(code));
    return WEXITSTATUS(code);
}

int referee_on(const char *directory, const char *text)
{
    return run(directory, text, "");
}

int referee_on_input(const char *directory, const char *text)
{
    return run(directory, text, "< ");
}
