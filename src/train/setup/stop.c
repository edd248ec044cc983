#include "train/setup/stop.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <unistd.h>

tr_status tr_stop_create(tr_stop **out)
{
    *out = tr_alloc_zero(1, sizeof **out);
    return *out ? TR_OK : TR_ENOMEM;
}

void tr_stop_destroy(tr_stop **stop)
{
    tr_free(*stop);
    *stop = NULL;
}

void tr_stop_set(tr_stop *stop, int asked)
{
    stop->asked = asked != 0;
}

tr_status tr_stop_check(const tr_stop *stop, const char *doing)
{
    if (!stop || !stop->asked) return TR_OK;
    return tr_fail(TR_EINTERRUPTED, "%s was ended by the stop of the settings", doing);
}

tr_status tr_process_check(pid_t process, const char *thing)
{
    const pid_t here = getpid();
    if (here == process) return TR_OK;
    return tr_fail(
        TR_EUNSUPPORTED,
        "the %s was made in process %ld, and this is process %ld, forked from it, without its threads; "
        "create a %s in the child",
        thing, (long)process, (long)here, thing);
}
