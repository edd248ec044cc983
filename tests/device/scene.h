/* One call of one operation on one device: its buffers, filled in a reproducible way, and every byte that was
 * there afterwards.
 *
 * Invariants: the contents of buffer b of case i of an operation depend on nothing but these numbers and the
 * flavor, so the same scene is set on every device. Each buffer lies between two guard bands and begins at an
 * odd multiple of its element size; all of it (inputs and guards too) is kept and compared. All functions
 * fail the running cmocka test when the device fails.
 */
#ifndef TESTS_DEVICE_SCENE_H
#define TESTS_DEVICE_SCENE_H

#include "device/device.h"

#include <stdbool.h>

#define SCENE_BUFFERS 16
#define SCENE_LEAVES  16

/* What the numbers in floating-point inputs look like. */
enum scene_flavor {
    SCENE_PLAIN, /* uniform in (-1, 1) */
    SCENE_EDGES, /* both zeros, subnormals, equal numbers, magnitudes from 2^-30 to 2^6 */
    SCENE_HUGE,  /* up to the largest float, infinities, NaN */
    SCENE_FLAVORS
};

enum scene_kind { SCENE_FLOATS, SCENE_BYTES, SCENE_WORKSPACE };

struct scene_buffer {
    const char *name;
    enum scene_kind kind;
    size_t bytes, lead, all; /* contents; guard before them; everything */
    unsigned char guard;     /* the byte that guards are made of */
    unsigned char *memory;   /* on the device, `all` bytes */
    unsigned char *before;   /* on the host: what was there before the operation ran, */
    unsigned char *after;    /* and after it */
};

struct scene {
    tr_device *device;
    const struct scene *model; /* NULL, or the same case on another device */
    enum scene_flavor flavor;
    uint32_t operation, number; /* which case */
    char name[160];             /* for people: shapes and options */
    int buffers;
    struct scene_buffer buffer[SCENE_BUFFERS];
    /* what the cut of the scene points to */
    int64_t row[SCENE_LEAVES + 1];
    int32_t bound[SCENE_LEAVES + 1];
};

/* Begins an empty scene on a device, borrowed until scene_release(). */
void scene_begin(struct scene *scene, tr_device *device, enum scene_flavor flavor, uint32_t operation,
                 uint32_t number);
/* Begins the same scene on another device. Numbers are copied from the model, borrowed until scene_release(),
   which is quicker than drawing them again. */
void scene_begin_like(struct scene *scene, tr_device *device, const struct scene *model);
void scene_name(struct scene *scene, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Buffers of `count` elements, in device memory of the scene. */
float *scene_in(struct scene *scene, const char *name, int64_t count);
float *scene_positive(struct scene *scene, const char *name, int64_t count); /* magnitudes of scene_in() */
float *scene_out(struct scene *scene, const char *name, int64_t count);
uint8_t *scene_out_bytes(struct scene *scene, const char *name, int64_t count);
/* With given contents, borrowed for the call; `element` is the size that alignment is a multiple of. */
void *scene_data(struct scene *scene, const char *name, size_t bytes, size_t element, const void *contents);
/* Memory whose contents afterwards do not matter; its guards do. */
void *scene_workspace(struct scene *scene, int64_t bytes, size_t element);
/* Numbers below `limit`. */
int32_t *scene_indices(struct scene *scene, const char *name, int64_t count, int32_t limit);
/* The same; where labels are missing some are negative. */
int32_t *scene_labels(struct scene *scene, const char *name, int64_t count, int32_t limit, bool missing);
struct tr_step_scalars *scene_scalars(struct scene *scene);
/* Offsets [examples + 1] of sequences whose lengths vary up to `longest`, some empty if `empty`. The host
   copy is returned in `offset`, which has room for them. */
int32_t *scene_offsets(struct scene *scene, int64_t examples, int32_t longest, bool empty, int32_t *offset);

/* Some ways to cut rows into microbatches and nodes: one and many microbatches, empty ones, none at all,
   parts of larger trees. */
int scene_cuts(void);
int64_t scene_cut_rows(int index);
/* The stride is left to the caller. */
struct tr_cut scene_cut(struct scene *scene, int index);
/* A result of `count` floats per node, at a stride with a gap. */
float *scene_nodes(struct scene *scene, const char *name, int64_t count, struct tr_cut *cut);

/* Waits for the device and keeps every byte of every buffer on the host. `status` is what the operation
 * returned. */
void scene_end(struct scene *scene, tr_status status);
/* Where two scenes of one case differ first, or a guard band was written: says so in `text` and returns true.
   All NaN count as equal. */
bool scene_differs(const struct scene *expected, const struct scene *got, char *text, size_t size);
/* Goes on with a hash (FNV-1a by words or bytes) over the contents of all buffers but workspaces. All NaN
   count as equal. */
uint64_t scene_hash(const struct scene *scene, uint64_t hash);
void scene_release(struct scene *scene);

#endif
