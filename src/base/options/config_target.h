/* The path of an override, `path=value`, and the place in a tree that it means. */
#ifndef TR_BASE_CONFIG_TARGET_H
#define TR_BASE_CONFIG_TARGET_H

#include "base/options/config_tree.h"

struct config_step {
    const char *text;
    size_t length;
    bool bracket;
};

struct config_override {
    const char *text; /* the assignment */
    size_t length;    /* of the path in it */
    struct config_step step[TR_CONFIG_DEPTH_MAX];
    int32_t count;
};

/* Where the value goes: position `index` of `parent`; index == parent->count appends. `used` steps of the
   path lead there; the other steps need new mappings. */
struct config_target {
    tr_config *parent;
    int32_t index, used;
    const char *key; /* of the new child where parent is a mapping */
    size_t key_length;
    enum tr_config_short form; /* the abbreviation of the present value */
    const char *first;         /* the key of its full form */
};

/* A function that knows the abbreviations. */
struct config_shorts {
    tr_config_forms of;
    void *user;
};

#define PATH_ARGUMENTS(path) (int)(path)->length, (path)->text
#define STEP_ARGUMENTS(step) (int)(step)->length, (step)->text

/* Refuses a path for the reason `why`. */
tr_status config_bad_path(const struct config_override *path, const char *why);
/* Parses `assignment`, which the path borrows. TR_EINVAL. */
tr_status config_split_path(const char *assignment, struct config_override *path);
/* Finds where the value of the path goes. TR_EINVAL names the path as far as it exists. */
tr_status config_find_target(const struct config_override *path, const struct config_shorts *forms,
                             tr_config *root, struct config_target *out);

#endif
