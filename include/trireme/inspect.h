/* Looking at model files, checkpoints and devices without running anything. Texts are returned and freed with
 * tr_text_free(). Any thread. */
#ifndef TRIREME_INSPECT_H
#define TRIREME_INSPECT_H

#include "trireme/data.h"
#include "trireme/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The layers of a model file or checkpoint as a table: name, kind, output shape, parameters, memory,
   floating-point operations per example; then totals: memory of a training step and operations of a step.
   `set` [set_count] are overrides as for training. */
TR_API tr_status tr_inspect(const char *path, const char *const *set, int set_count, char **text);
/* The same as one JSON object. */
TR_API tr_status tr_inspect_json(const char *path, const char *const *set, int set_count, char **text);

/* The devices of this machine, and which instruction sets the cpu device can use. */
TR_API tr_status tr_devices(char **text);
TR_API tr_status tr_devices_json(char **text);
/* The same, as text or (`json` not 0) as JSON, after every device with a driver of its own has been tested
   for exact arithmetic, which takes seconds for one that was not tested before; `program_cache` as in struct
   tr_train_settings. */
TR_API tr_status tr_devices_tested(const char *program_cache, int json, char **text);

/* The kinds of layers with their options. */
TR_API tr_status tr_layers(char **text);
/* The reference of the model file as Markdown, from the tables that read it. */
TR_API tr_status tr_manual(char **markdown);

#ifdef __cplusplus
}
#endif
#endif
