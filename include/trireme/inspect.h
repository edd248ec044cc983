/* Reports about model files, checkpoints and devices without a run. Texts are returned and freed with
 * tr_text_free(). Any thread.
 */
#ifndef TRIREME_INSPECT_H
#define TRIREME_INSPECT_H

#include "trireme/data.h"
#include "trireme/sized.h"
#include "trireme/state.h"
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

/* The object to report, exactly one: a path, a text, or a checkpoint in memory. Initialize with
   TR_INSPECT_SETTINGS_INIT; all is borrowed for the call. */
struct tr_inspect_settings {
    size_t size;            /* sizeof(struct tr_inspect_settings) */
    const char *path;       /* a model file, a checkpoint, or a directory of checkpoints */
    const char *const *set; /* [set_count] overrides, as for training */
    int set_count;          /* of `set` */
    const char *model_text; /* a model file itself; this and the next three as in struct tr_train_settings */
    size_t model_length;    /* its bytes; 0: up to its NUL */
    const char *model_name; /* its name in messages and in the answer; NULL: "model" */
    const char *directory;  /* start of relative paths in it; NULL: the current directory */
    struct tr_run_state state;          /* a checkpoint in memory */
    const struct tr_named_source *data; /* [data_count] from memory, if the input follows from these */
    int data_count;                     /* of `data` */
    int json;                           /* not 0: one JSON object instead of a table */
};
#define TR_INSPECT_SETTINGS_INIT TR_SIZED_INIT(struct tr_inspect_settings)
/* As tr_inspect() and tr_inspect_json(), for objects without a path. TR_EINVAL unless exactly one is
   given; otherwise as these. */
TR_API tr_status tr_inspect_model(const struct tr_inspect_settings *settings, char **text);

/* The devices of this machine, and which instruction sets the cpu device can use. */
TR_API tr_status tr_devices(char **text);
TR_API tr_status tr_devices_json(char **text);
/* The same, as text or (`json` not 0) as JSON, after every device with a separate driver has been tested
   for exact arithmetic. This takes seconds for a device that was not tested before; `program_cache` as in
   struct tr_train_settings. */
TR_API tr_status tr_devices_tested(const char *program_cache, int json, char **text);

/* The kinds of layers with their options. */
TR_API tr_status tr_layers(char **text);
/* The reference of the model file as Markdown, from the tables that read it. */
TR_API tr_status tr_manual(char **markdown);

#ifdef __cplusplus
}
#endif
#endif
