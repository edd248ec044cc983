#include "comm/transport.h"

#include "base/fail.h"

static tr_status join_nobody(const char *ticket, const struct tr_comm_settings *settings, tr_comm **out)
{
    (void)ticket, (void)settings;
    *out = NULL;
    return TR_OK;
}

static const struct tr_transport none = {
    .name = "none",
    .help = "this process alone",
    .create = join_nobody,
};

static tr_status join_local(const char *ticket, const struct tr_comm_settings *settings, tr_comm **out)
{
    if (ticket) return tr_comm_local_create(ticket, settings, out);
    return tr_fail(TR_EINVAL, "transport \"local\" needs the ticket of a launcher, as in local:TICKET");
}

static const struct tr_transport local = {
    .name = "local",
    .help = "the processes of one host that a launcher started",
    .create = join_local,
};

static tr_status join_mpi(const char *ticket, const struct tr_comm_settings *settings, tr_comm **out)
{
    (void)ticket;
    return tr_comm_mpi_create(settings, out);
}

static const struct tr_transport mpi = {
    .name = "mpi",
    .help = "the processes that mpirun or SLURM started",
    .create = join_mpi,
};

static const struct tr_entry *const entries[] = {&none.entry, &local.entry, &mpi.entry, NULL};

const struct tr_registry tr_transports = {.kind = "transport", .entries = entries};
