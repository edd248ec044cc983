/* The launcher's side of a group, and the tickets of its ranks. */
#include "comm/local/area.h"
#include "comm/local/ticket.h"

#include "base/fail.h"
#include "base/text/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct tr_local_group {
    struct local_area area;
};

tr_status tr_local_group_create(int size, tr_local_group **out)
{
    *out = NULL;
    if (size < 1 || size > TR_LOCAL_RANKS_MOST)
        return tr_fail(TR_EINVAL, "processes of one host: %d is out of range; choose 1 to %d", size,
                       TR_LOCAL_RANKS_MOST);
    tr_local_group *group = tr_alloc_zero(1, sizeof *group);
    if (!group) return TR_ENOMEM;
    tr_status status = tr_local_area_create(size, &group->area);
    if (status == TR_OK)
        *out = group;
    else
        tr_free(group);
    return status;
}

int tr_local_group_descriptor(const tr_local_group *group)
{
    return group->area.descriptor;
}

static tr_status check_rank(const tr_local_group *group, int rank, size_t size, size_t needed)
{
    if (rank >= 0 && rank < group->area.size && size >= needed) return TR_OK;
    return tr_fail(TR_EINVAL, "a ticket for rank %d of %d, in %zu bytes (%zu are needed)", rank,
                   group->area.size, size, needed);
}

tr_status tr_local_group_transport(const tr_local_group *group, int rank, int descriptor, char *text,
                                   size_t size)
{
    TR_TRY(check_rank(group, rank, size, TR_LOCAL_TRANSPORT_SIZE));
    snprintf(text, size, "local:%d:%d:%d", descriptor < 0 ? group->area.descriptor : descriptor, rank,
             group->area.size);
    return TR_OK;
}

tr_status tr_local_group_ticket(const tr_local_group *group, int rank, char *text, size_t size)
{
    TR_TRY(check_rank(group, rank, size, TR_LOCAL_TICKET_SIZE));
    snprintf(text, size, "%d:%d:%d", group->area.descriptor, rank, group->area.size);
    return TR_OK;
}

void tr_local_group_ended(tr_local_group *group, int rank)
{
    if (rank >= 0 && rank < group->area.size) tr_local_bury(&group->area, rank);
}

void tr_local_group_destroy(tr_local_group **handle)
{
    tr_local_group *group = *handle;
    if (!group) return;
    tr_local_area_close(&group->area);
    tr_free(group);
    *handle = NULL;
}

/* ---- tickets ---- */

/* Reads a number up to `end` and steps after it; -1 if there is none. */
static int read_number(const char **text, char end)
{
    char digits[12];
    int64_t value;
    size_t length = strcspn(*text, ":");
    if (length >= sizeof digits || (*text)[length] != end || **text == '-' || **text == '+') return -1;
    memcpy(digits, *text, length);
    digits[length] = 0;
    *text += length + 1;
    return tr_text_int64(digits, &value) || value > INT_MAX ? -1 : (int)value;
}

bool tr_local_ticket_read(const char *text, struct local_ticket *out)
{
    struct local_ticket ticket;
    if ((ticket.descriptor = read_number(&text, ':')) < 0) return false;
    if ((ticket.rank = read_number(&text, ':')) < 0) return false;
    if ((ticket.size = read_number(&text, 0)) < 0) return false;
    if (ticket.rank >= ticket.size || ticket.size > TR_LOCAL_RANKS_MOST) return false;
    *out = ticket;
    return true;
}

const char *tr_comm_local_ticket(const char *const *environment)
{
    size_t length = strlen(TR_LOCAL_VARIABLE);
    for (; *environment; environment++)
        if (strncmp(*environment, TR_LOCAL_VARIABLE "=", length + 1) == 0) return *environment + length + 1;
    return NULL;
}

bool tr_comm_local_world(const char *const *environment, int *rank, int *size)
{
    struct local_ticket ticket;
    const char *text = tr_comm_local_ticket(environment);
    if (!text || !tr_local_ticket_read(text, &ticket)) return false;
    *rank = ticket.rank;
    *size = ticket.size;
    return true;
}
