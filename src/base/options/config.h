/* Configuration: a tree of mappings, sequences and scalars, read from YAML.
 *
 * Input is one document in UTF-8. Scalars are texts; the option table that reads a text determines its
 * type (number, choice, ...; base/options/option.h). So quotes matter in one case only: a plain empty
 * scalar, `~` or `null` is no value, while "" is an empty text. Anchors and aliases are allowed (an alias
 * becomes a copy); tags, second documents, duplicate keys, NUL characters, and keys that are not scalars
 * are errors.
 *
 * The input may be hostile: size, depth, number of nodes and total text after expansion of aliases are
 * limited.
 *
 * Invariants: a node belongs to exactly one parent; the root owns all nodes. Every node stores its place
 * in the file and its path from the root ("layers[2].conv.kernel"). Any number of threads may read a tree
 * while none changes it.
 */
#ifndef TR_BASE_CONFIG_H
#define TR_BASE_CONFIG_H

#include "base/text/text.h"
#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tr_config tr_config;

enum tr_config_kind {
    TR_CONFIG_NULL, /* a key without a value, ~, or null */
    TR_CONFIG_SCALAR,
    TR_CONFIG_SEQUENCE,
    TR_CONFIG_MAPPING
};

#define TR_CONFIG_BYTES_MAX (1 << 20) /* of a document */
#define TR_CONFIG_DEPTH_MAX 32        /* the root has depth 1 */
#define TR_CONFIG_NODES_MAX 20000     /* of a tree */
#define TR_CONFIG_WIDTH_MAX 1024      /* keys of one mapping */
#define TR_CONFIG_KEY_MAX   128       /* bytes of a key */
#define TR_CONFIG_TEXT_MAX  (4 << 20) /* bytes of all keys and scalars of a tree */
#define TR_CONFIG_PATH_SIZE 256       /* room for a path in a message; longer ones are cut */

/* Reads a file. Errors: TR_ENOTFOUND, TR_EIO; TR_EFORMAT with file:line:column; TR_ENOMEM. Returned, free
 * with tr_config_destroy(). */
tr_status tr_config_read(const char *path, tr_config **out);
/* Reads `length` bytes of `text`; messages call it `name`. Both are borrowed for the call. Errors and
   ownership as above. */
tr_status tr_config_parse(const char *text, size_t length, const char *name, tr_config **out);
/* Destroys a whole tree. Accepts NULL, nulls the handle. Only for a root. */
void tr_config_destroy(tr_config **root);

enum tr_config_kind tr_config_kind(const tr_config *node);
/* "nothing", "a text", "a list", "a mapping": for messages. Static storage. */
const char *tr_config_kind_name(const tr_config *node);
/* Children of a sequence or mapping, 0 for the others. */
int32_t tr_config_count(const tr_config *node);
/* Child `index` (0 .. count - 1, in the order of the file) of a sequence, or value `index` of a mapping.
   Borrowed from the tree. */
const tr_config *tr_config_at(const tr_config *node, int32_t index);
/* Key `index` of a mapping. Borrowed from the tree. */
const char *tr_config_key(const tr_config *mapping, int32_t index);
/* The value of `key`; NULL if there is none, or `node` is NULL or not a mapping. Borrowed from the tree. */
const tr_config *tr_config_get(const tr_config *node, const char *key);
/* The text of a scalar, which contains no NUL; NULL for the other kinds. Borrowed from the tree. */
const char *tr_config_text(const tr_config *node);

/* Writes "file:line:column: path" ("file:line:column" for the root; without line and column for values of
 * tr_config_set()), cut to `size`, and returns `buffer`.
 */
const char *tr_config_location(const tr_config *node, char *buffer, size_t size);
/* Writes the path alone, cut to `size`, "" for the root, and returns `buffer`. */
const char *tr_config_path(const tr_config *node, char *buffer, size_t size);
/* Records the message "file:line:column: path: <format...>" and returns `status`. */
tr_status tr_config_fail(tr_status status, const tr_config *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the place of the node's key, for messages about the key itself; `node` is a value of a
 * mapping. */
tr_status tr_config_fail_key(tr_status status, const tr_config *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Carries out one override "path=value" (borrowed for the call). The value is YAML ("1e-3", "[5, 3]",
   "{constant: 0.1}", nothing for null). Steps of the path are keys, joined by dots, and numbers of list
   items (from 0), as "layers[3].dense.units" or "layers.3.dense.units". There are three more forms, to
   address layers easily:
     - An item of a list may be called by its name: "layers.conv1.filters" finds the item with `name: conv1`
       at its own level or one below ({conv: {name: conv1, ...}}), and continues where the name was found.
     - An item without a name is called by its only key and a number: "layers.dense2" is the second item
       that reads `dense` or {dense: ...}.
     - The key of an item with a single key may be left out: "layers[3].units" is "layers[3].dense.units".
   Missing mappings are created; missing list items are not. An existing value is replaced in place.
   TR_EINVAL with the reason and the path as far as it exists; the tree is then unchanged. */
tr_status tr_config_set(tr_config *root, const char *assignment);

/* How a section may be abbreviated. */
enum tr_config_short {
    TR_CONFIG_NO_SHORT, /* not at all */
    TR_CONFIG_BY_NAME,  /* `relu` or {relu: ...}: a name, which contains its keys */
    TR_CONFIG_FIRST_KEY /* 10 for {units: 10}: the value of its first key */
};
/* Function of the tree's user: how `node` may be abbreviated and, for FIRST_KEY, which key it stands for,
   in *key (static storage). */
typedef enum tr_config_short (*tr_config_forms)(void *user, const tr_config *node, const char **key);
/* The same for trees whose sections may be abbreviated: a path that continues below such a section first
   makes it a mapping, so that "layers[3].use_bias" turns `dense: 10` into {units: 10, use_bias: ...}, and
   a name may be left out: "strategy.bucket" is "strategy.allreduce.bucket" where that is the strategy. */
tr_status tr_config_set_in(tr_config *root, const char *assignment, tr_config_forms forms, void *user);

/* For values of the program itself: sets `key` of the mapping `section` of the root (NULL: of the root
   itself), replacing the present value; a missing section is created. All strings are borrowed for the
   call. TR_EINVAL where the section is no mapping, TR_ENOMEM; the present value is then unchanged. */
tr_status tr_config_put_text(tr_config *root, const char *section, const char *key, const char *text);
tr_status tr_config_put_integer(tr_config *root, const char *section, const char *key, int64_t value);
tr_status tr_config_put_nothing(tr_config *root, const char *section, const char *key);
/* A list of `count` texts. */
tr_status tr_config_put_texts(tr_config *root, const char *section, const char *key, int32_t count,
                              const char *const *texts);

/* Writes the tree in canonical form: block style, two blanks per level, keys in the order written, without
   comments and anchors, scalars plain where that is unambiguous and double-quoted elsewhere. Trees are
   equal exactly if their canonical forms are, and the form parses back to an equal tree; it does not
   depend on any library's version, so that its hash may be kept. Returned, free with tr_free(). */
tr_status tr_config_dump(const tr_config *node, char **out);
/* Appends the tree as JSON on one line: texts that are JSON numbers or true and false as such, the others
 * quoted. */
void tr_config_json(const tr_config *node, struct tr_text *text);

#endif
