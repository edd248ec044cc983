/* Linked into every test program: one that ends with unfreed blocks of the library fails, and prints their
 * number. AddressSanitizer shows which they are (TRIREME_SANITIZE=address). Processes that a test forks
 * are left out: they have the blocks of the test.
 */
#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static pid_t test;

__attribute__((constructor)) static void begin(void)
{
    test = getpid();
}

__attribute__((destructor)) static void look(void)
{
    int64_t live = tr_alloc_live();
    if (getpid() != test || live == 0) return;
    fflush(NULL);
    fprintf(stderr, "%" PRId64 " blocks of tr_alloc() were not freed\n", live);
    _exit(1);
}
