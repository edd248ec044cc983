/* The nodes of a configuration, shared by the files that read, change and write it; not for others. */
#ifndef TR_BASE_CONFIG_TREE_H
#define TR_BASE_CONFIG_TREE_H

#include "base/options/config.h"

#include <stdbool.h>

/* Names of the files (and overrides) that the nodes of a tree came from. */
struct config_source {
    struct config_source *next;
    char name[];
};

struct tr_config {
    enum tr_config_kind kind;
    char *text;        /* SCALAR */
    char *key;         /* where the parent is a mapping */
    tr_config *parent; /* NULL for the root */
    tr_config **child; /* SEQUENCE, MAPPING; owned */
    int32_t count, capacity;
    int32_t line, column;          /* of the value, from 1; 0 for values of overrides */
    int32_t key_line, key_column;  /* of the key; likewise */
    const char *file;              /* in a source of the root */
    struct config_source *sources; /* owned; of the root only */
};

/* A node without parent; NULL when memory fails. Destroy with config_destroy(). */
tr_config *config_new(enum tr_config_kind kind, const char *file, int32_t line, int32_t column);
/* Destroys a node and all below it; accepts NULL. Does not touch the parent. */
void config_destroy(tr_config *node);
/* Makes room for another child. TR_ENOMEM. */
tr_status config_reserve(tr_config *parent);
/* Appends `child`, which is taken; there must be room. */
void config_append(tr_config *parent, tr_config *child);
/* The child of a mapping with this key, or NULL. */
tr_config *config_find(const tr_config *mapping, const char *key, size_t length);
/* Depth of the tree below and with `node`: 1 for a scalar. */
int32_t config_height(const tr_config *node);
/* Counts the nodes below and with `node` and the bytes of their keys and texts, adding to *nodes and *bytes.
 */
void config_measure(const tr_config *node, int32_t *nodes, size_t *bytes);
/* The only value of a mapping with a single key, else NULL. */
tr_config *config_single(const tr_config *node);
/* Reads a value that a person gave in one line: nodes have `name` as their file, and messages about
   invalid YAML begin with `where`. Errors as those of tr_config_parse(). */
tr_status config_parse_line(const char *text, const char *name, const char *where, tr_config **out);
/* Whether a plain scalar means "no value". */
bool config_is_null_word(const char *text, size_t length);

#endif
