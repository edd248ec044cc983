/* Functions that a test runs in a process of their own, and hears. */
#ifndef TESTS_CLI_PROGRAM_APART_H
#define TESTS_CLI_PROGRAM_APART_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Closes ends[1], which the child writes to, takes what it writes as a text of up to `size` bytes, and waits.
   Returns its code, or minus the signal that ended it. */
static inline int apart_end(pid_t child, const int ends[2], char *said, size_t size)
{
    int status;
    size_t length = 0;
    close(ends[1]);
    for (ssize_t count; (count = read(ends[0], said + length, size - 1 - length)) > 0;)
        length += (size_t)count;
    said[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#endif
