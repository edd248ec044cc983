/* Reads the tensors of a checkpoint into memory, once they are known to be the expected ones. */
#include "base/fail.h"
#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <string.h>

/* TR_EMISMATCH unless the group consists of `tensors`. */
static tr_status compare(const tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                         const struct tr_stored_tensor *tensors, int64_t count)
{
    static const char advice[] = "; it is a checkpoint of another model or optimizer";
    const tr_safetensors *file = tr_checkpoint_tensors(checkpoint, group);
    char stored[TR_STORED_TEXT], wanted[TR_STORED_TEXT];
    for (int64_t i = 0; i < count; i++) {
        const struct tr_safetensors_entry *entry = tr_safetensors_find(file, tensors[i].name);
        if (!entry)
            return tr_fail(TR_EMISMATCH, "\"%s\" has no tensor \"%s\" in %s, where %s is expected%s",
                           tr_checkpoint_path(checkpoint), tensors[i].name, tr_checkpoint_group_file[group],
                           tr_stored_describe(&tensors[i], wanted), advice);
        if (!tr_stored_alike(&entry->tensor, &tensors[i]))
            return tr_fail(TR_EMISMATCH, "\"%s\": tensor \"%s\" is %s, where %s is expected%s",
                           tr_checkpoint_path(checkpoint), tensors[i].name,
                           tr_stored_describe(&entry->tensor, stored),
                           tr_stored_describe(&tensors[i], wanted), advice);
    }
    /* All expected tensors are there, so surplus ones show in the number, and are then found by name. */
    for (int64_t e = 0; tr_safetensors_count(file) != count && e < tr_safetensors_count(file); e++) {
        const struct tr_stored_tensor *tensor = &tr_safetensors_at(file, e)->tensor;
        int64_t i = 0;
        while (i < count && strcmp(tensors[i].name, tensor->name) != 0) i++;
        if (i == count)
            return tr_fail(TR_EMISMATCH, "\"%s\" has a tensor \"%.200s\", %s, in %s, which is not expected%s",
                           tr_checkpoint_path(checkpoint), tensor->name, tr_stored_describe(tensor, stored),
                           tr_checkpoint_group_file[group], advice);
    }
    return TR_OK;
}

tr_status tr_checkpoint_load(tr_checkpoint *checkpoint, enum tr_checkpoint_group group,
                             const struct tr_stored_tensor *tensors, int64_t count)
{
    TR_TRY(compare(checkpoint, group, tensors, count));
    for (int64_t i = 0; i < count; i++) {
        if (!tensors[i].data) continue;
        const struct tr_safetensors_entry *entry =
            tr_safetensors_find(tr_checkpoint_tensors(checkpoint, group), tensors[i].name);
        TR_TRY(tr_checkpoint_read(checkpoint, group, entry, tensors[i].data));
    }
    return TR_OK;
}
