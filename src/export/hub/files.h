/* The weights of a directory: model.safetensors, or several files that model.safetensors.index.json lists:
 *
 *     {"metadata": {...}, "weight_map": {name of a tensor: name of the file in the directory that has it,
 * ...}}
 *
 * Used by one thread at a time.
 */
#ifndef TR_EXPORT_HUB_FILES_H
#define TR_EXPORT_HUB_FILES_H

#include "io/safetensors.h"

struct tr_hub_files;

/* TR_ENOTFOUND, TR_EFORMAT (also for an index that names files elsewhere). Returned, close with
   tr_hub_files_close(). */
tr_status tr_hub_files_open(const char *directory, struct tr_hub_files **out);
/* Accepts NULL, nulls the handle. */
void tr_hub_files_close(struct tr_hub_files **files);

/* A tensor and its file, both borrowed; NULL for none. */
const struct tr_safetensors_entry *tr_hub_files_find(const struct tr_hub_files *files, const char *name,
                                                     tr_safetensors **file);
/* The name of the whole for messages: the path of the file, or of the index. */
const char *tr_hub_files_name(const struct tr_hub_files *files);

#endif
