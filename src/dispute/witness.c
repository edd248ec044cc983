#include "dispute/witness.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Memory of the device. */
struct range {
    void *memory;
    size_t bytes;
};

struct witness {
    tr_device base;
    tr_device *inner;
    struct tr_evidence *evidence; /* or NULL */
    struct range *range;          /* [ranges] in order of allocation */
    int64_t ranges;
};

static struct witness *witness_of(tr_device *device)
{
    return (struct witness *)device;
}

tr_device *tr_witness_inner(tr_device *device)
{
    return witness_of(device)->inner;
}

void tr_witness_watch(tr_device *device, struct tr_evidence *evidence)
{
    witness_of(device)->evidence = evidence;
}

tr_status tr_witness_keep(tr_device *device, struct tr_evidence *evidence)
{
    const struct witness *witness = witness_of(device);
    for (int64_t i = 0; i < witness->ranges; i++)
        TR_TRY(tr_evidence_keep(evidence, witness->range[i].memory, (int64_t)witness->range[i].bytes));
    return TR_OK;
}

/* ---- memory and copies ---- */

static tr_status witness_alloc(tr_device *device, size_t bytes, void **out)
{
    struct witness *witness = witness_of(device);
    if (!tr_grow(&witness->range, witness->ranges, sizeof *witness->range)) return TR_ENOMEM;
    TR_TRY(tr_device_alloc(witness->inner, bytes, out));
    witness->range[witness->ranges++] = (struct range){*out, bytes};
    return TR_OK;
}

static void witness_free(tr_device *device, void *memory)
{
    struct witness *witness = witness_of(device);
    int64_t i = 0;
    while (i < witness->ranges && witness->range[i].memory != memory) i++;
    assert(i < witness->ranges);
    memmove(witness->range + i, witness->range + i + 1,
            (size_t)(--witness->ranges - i) * sizeof *witness->range);
    tr_device_free(witness->inner, memory);
}

static tr_status witness_to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    struct witness *witness = witness_of(device);
    if (bytes == 0) return TR_OK;
    TR_TRY(tr_device_to_device(witness->inner, to, from, bytes));
    TR_TRY(tr_device_wait(witness->inner));
    if (!witness->evidence) return TR_OK;
    return tr_evidence_memory(witness->evidence, TR_EVIDENCE_UPLOAD, "upload", to, (int64_t)bytes);
}

static tr_status witness_to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    struct witness *witness = witness_of(device);
    if (bytes == 0) return TR_OK;
    TR_TRY(tr_device_to_host(witness->inner, to, from, bytes));
    TR_TRY(tr_device_wait(witness->inner));
    if (!witness->evidence) return TR_OK;
    /* Memory that was never written needs no commitment. */
    int64_t byte;
    const int64_t end = witness->evidence->entries;
    if (tr_evidence_writer(witness->evidence, from, end, &byte) < 0 ||
        tr_evidence_writer(witness->evidence, (const char *)from + bytes - 1, end, &byte) < 0)
        return TR_OK;
    return tr_evidence_memory(witness->evidence, TR_EVIDENCE_DOWNLOAD, "download", from, (int64_t)bytes);
}

static tr_status witness_wait(tr_device *device)
{
    return tr_device_wait(witness_of(device)->inner);
}

static tr_status witness_create_like(const tr_device *device, int threads, tr_device **out)
{
    tr_device *inner;
    *out = NULL;
    TR_TRY(tr_device_create_like(((const struct witness *)device)->inner, threads, &inner));
    return tr_witness_create(inner, out);
}

static void witness_destroy(tr_device *device)
{
    struct witness *witness = witness_of(device);
    tr_device_destroy(&witness->inner);
    tr_free(witness->range);
    tr_free(witness);
}

/* ---- operations ---- */

static tr_status note(tr_device *device, enum tr_operation_number number, const void *arguments, size_t size)
{
    struct witness *witness = witness_of(device);
    if (!witness->evidence) return TR_OK;
    TR_TRY(tr_device_wait(witness->inner));
    return tr_evidence_operation(witness->evidence, number, arguments, size);
}

#define WITNESS(op)                                                                                          \
    static tr_status witness_##op(tr_device *device, const struct tr_op_##op *arguments)                     \
    {                                                                                                        \
        TR_TRY(tr_device_##op(witness_of(device)->inner, arguments));                                        \
        return note(device, TR_OPERATION_##op, arguments, sizeof *arguments);                                \
    }
TR_DEVICE_CORE_OPS(WITNESS)
TR_DEVICE_HOST_OPS(WITNESS)
#undef WITNESS

static const struct tr_device_class witness_class = {.name = "witness",
                                                     .version = TR_DEVICE_VERSION,
                                                     .alloc = witness_alloc,
                                                     .free = witness_free,
                                                     .to_device = witness_to_device,
                                                     .to_host = witness_to_host,
                                                     .wait = witness_wait,
                                                     .create_like = witness_create_like,
                                                     .destroy = witness_destroy,
#define SLOT(op) .op = witness_##op,
                                                     TR_DEVICE_CORE_OPS(SLOT) TR_DEVICE_HOST_OPS(SLOT)
#undef SLOT
};

tr_status tr_witness_create(tr_device *inner, tr_device **out)
{
    struct witness *witness = tr_alloc_zero(1, sizeof *witness);
    *out = NULL;
    if (!witness) {
        tr_device_destroy(&inner);
        return TR_ENOMEM;
    }
    witness->base = *inner;
    witness->base.class = &witness_class;
    witness->base.timed = false;
    witness->inner = inner;
    *out = &witness->base;
    return TR_OK;
}
