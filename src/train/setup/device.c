#include "train/setup/device.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

#define NAME_SIZE 64

/* This rank's name, with the number of a device where there are several. */
static tr_status name_of(const char *names, const tr_comm *comm, char out[NAME_SIZE])
{
    int rank = comm ? tr_comm_rank(comm) : 0, local = comm ? tr_comm_local_rank(comm) : 0, items = 1;
    const char *begin = names;
    for (const char *at = names; *at; at++) items += *at == ',';
    for (int i = 0; i < rank % items; i++) begin = strchr(begin, ',') + 1;
    size_t length = strcspn(begin, ",");
    if (length + 8 >= NAME_SIZE)
        return tr_fail(TR_ENOTFOUND, "device \"%.*s\": there is none with such a long name", (int)length,
                       begin);
    snprintf(out, NAME_SIZE, "%.*s", (int)length, begin);
    const struct tr_entry *entry = tr_registry_find(&tr_device_kinds, out);
    const struct tr_device_kind *kind = (const struct tr_device_kind *)entry;
    int count = kind && kind->count ? kind->count() : 0;
    if (count > 0) snprintf(out + length, NAME_SIZE - length, ":%d", local % count);
    return TR_OK;
}

tr_status tr_train_open_device(const char *names, const struct tr_train_settings *settings,
                               const tr_comm *comm, int threads, tr_device **out)
{
    char name[NAME_SIZE];
    *out = NULL;
    TR_TRY(name_of(names, comm, name));
    const struct tr_device_choice choice = {
        .name = name,
        .threads = threads,
        .isa = settings->isa,
        .cache = settings->program_cache,
        .timed = settings->trace || settings->profile,
    };
    return tr_device_open(&choice, out);
}

bool tr_train_is_device(const char *names, const tr_comm *comm, const tr_device *opened)
{
    char name[NAME_SIZE], found[TR_DEVICE_NAME];
    return name_of(names, comm, name) == TR_OK && tr_device_find(name, found) == TR_OK &&
           strcmp(found, opened->name) == 0;
}
