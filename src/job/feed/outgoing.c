#include "job/feed/outgoing.h"

#include "base/fail.h"

tr_status tr_outgoing_make(tr_device *device, size_t bytes, struct tr_outgoing *outgoing)
{
    for (int i = 0; i < 2; i++) TR_TRY(tr_device_alloc_pinned(device, bytes, &outgoing->memory[i]));
    return TR_OK;
}

void tr_outgoing_release(tr_device *device, struct tr_outgoing *outgoing)
{
    for (int i = 0; i < 2; i++) tr_device_free_pinned(device, outgoing->memory[i]);
}

tr_status tr_outgoing_take(tr_device *device, struct tr_outgoing *outgoing, void **out)
{
    outgoing->turn ^= 1;
    if (outgoing->used[outgoing->turn]) TR_TRY(tr_device_wait_for(device, outgoing->sent[outgoing->turn]));
    *out = outgoing->memory[outgoing->turn];
    return TR_OK;
}

tr_status tr_outgoing_send(tr_device *device, struct tr_outgoing *outgoing, void *to, size_t bytes)
{
    TR_TRY(tr_device_to_device(device, to, outgoing->memory[outgoing->turn], bytes));
    outgoing->used[outgoing->turn] = true;
    return tr_device_record(device, &outgoing->sent[outgoing->turn]);
}
