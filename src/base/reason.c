#include "base/reason.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

const char *tr_errno_text(int error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain ? strerror_l(error, plain) : "the reason is not known";
}
