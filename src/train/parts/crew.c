#include "train/parts/crew.h"

#include "base/fail.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

tr_status trainer_crew_survivors(struct trainer_crew *crew, tr_comm **part)
{
    TR_TRY(tr_comm_survivors(crew->whole, part));
    crew->part[crew->parts++] = *part;
    return TR_OK;
}

tr_status trainer_crew_form(struct trainer_crew *crew, const struct tr_train_settings *settings,
                            tr_comm *comm)
{
    crew->comm = comm;
    if (!settings->outlives || !comm || tr_comm_size(comm) == 1) return TR_OK;
    if (settings->trace || settings->profile || settings->record_digests)
        return tr_fail(TR_EINVAL, "traces, profiles and digests need all ranks, but this job goes on without "
                                  "ranks that die; leave one of the two out");
    crew->whole = comm;
    return trainer_crew_survivors(crew, &crew->comm);
}

void trainer_crew_release(struct trainer_crew *crew)
{
    if (crew->whole) {
        bool all = crew->parts > 0 && tr_comm_size(crew->part[crew->parts - 1]) == tr_comm_size(crew->whole);
        while (crew->parts > 0) tr_comm_destroy(&crew->part[--crew->parts]);
        if (!all) tr_comm_dissolve(crew->whole);
    }
    crew->whole = crew->comm = NULL;
    tr_comm_destroy(&crew->own);
}

void trainer_crew_tell_others(const struct trainer_crew *crew)
{
    if (!crew->comm) return;
    char why[TR_MESSAGE_SIZE];
    snprintf(why, sizeof why, "%s", tr_error_message());
    tr_comm_abort(crew->comm, why);
    if (crew->whole) tr_comm_abort(crew->whole, why);
}

bool trainer_crew_may_shrink(const struct trainer_crew *crew, tr_status status)
{
    return status == TR_EPEER && crew->whole && tr_comm_lost_member(crew->comm);
}

tr_status trainer_crew_check_root(const struct trainer_crew *crew)
{
    int root = tr_comm_number(crew->comm, 0);
    if (tr_comm_life(crew->whole, root, NULL, 0) != TR_COMM_LEFT) return TR_OK;
    return tr_fail(TR_EPEER, "rank %d on host %s has ended the run", root, tr_comm_host(crew->whole, root));
}

void trainer_crew_name_lost(const struct trainer_crew *crew, const tr_comm *part, char *text, size_t size)
{
    const tr_comm *before = crew->comm;
    struct tr_text lost = TR_TEXT_INIT;
    int now = 0, count = 0;
    for (int r = 0; r < tr_comm_size(before); r++) {
        bool here = now < tr_comm_size(part) && tr_comm_number(part, now) == tr_comm_number(before, r);
        now += here;
        if (!here)
            tr_text_addf(&lost, "%srank %d on host %s", count++ ? ", " : "", tr_comm_number(before, r),
                         tr_comm_host(before, r));
    }
    snprintf(text, size, "%s died; %d of %d ranks go on", lost.bytes ? lost.bytes : "nobody",
             tr_comm_size(part), tr_comm_size(crew->whole));
    if (tr_comm_number(before, 0) != tr_comm_number(part, 0)) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, ", and rank %d reports and saves", tr_comm_number(part, 0));
    }
    tr_text_release(&lost);
}
