/* Options: one table per struct describes its fields; it provides defaults, reading of model files and
 * command lines, range checks, --help, the reference manual and the dump in the run log.
 *
 *     static const struct tr_choice padding[] = {{"same", SAME, "..."}, {"valid", VALID, "..."}, {0}};
 *     static const struct tr_option conv_options[] = {
 *         {.key = "filters", .type = TR_OPTION_INT32, .offset = offsetof(struct conv, filters),
 *          .fallback = NULL, .least = 1, .most = 65536, .help = "number of output channels"},
 *         {.key = "padding", .type = TR_OPTION_CHOICE, .offset = offsetof(struct conv, padding),
 *          .fallback = "valid", .choices = padding, .help = "..."},
 *     };
 *
 * Keys are words joined by '_'; on a command line '-' may stand for '_'. Fallbacks are written as a user
 * would, are read by the same parser and must be valid (a wrong one is our bug: assert).
 *
 * All functions take the table, its length and the struct ("object"), borrowed for the call. An object that
 * went through tr_options_defaults() can always be released, also after any failure. Any thread, on different
 * objects.
 */
#ifndef TR_BASE_OPTION_H
#define TR_BASE_OPTION_H

#include "base/options/config.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tr_option_type {
    TR_OPTION_BOOL,        /* bool */
    TR_OPTION_INT32,       /* int32_t */
    TR_OPTION_INT64,       /* int64_t */
    TR_OPTION_FLOAT,       /* float; the text is read as double ("1/255" too) and rounded once */
    TR_OPTION_DOUBLE,      /* double */
    TR_OPTION_STRING,      /* char *, owned by the object; fallback "" leaves NULL */
    TR_OPTION_CHOICE,      /* an enum, or an int32_t, by name */
    TR_OPTION_PAIR,        /* int32_t[2]: "5" is both, or [5, 3] */
    TR_OPTION_INT_LIST,    /* struct tr_int_list: 5 or [5, 3]; "5,3" on the command line */
    TR_OPTION_FLOAT_LIST,  /* struct tr_float_list */
    TR_OPTION_STRING_LIST, /* struct tr_string_list, owned by the object; on the command line one item for
                              each mention */
    TR_OPTION_NODE /* const tr_config *, borrowed from the tree that was read, for nested tables; NULL if not
                      given: the fallback is documentation only. Not for command lines. */
};

#define TR_OPTION_LIST_MAX    64   /* items of the numeric lists, so that they need no ownership */
#define TR_OPTION_STRINGS_MAX 4096 /* items of a list of strings */
#define TR_OPTIONS_MAX        128  /* of a table */
#define TR_OPTION_WHOLE       9007199254740992.0 /* 2^53: up to here limits, which are doubles, are exact */

struct tr_int_list {
    int32_t count;
    int64_t item[TR_OPTION_LIST_MAX];
};

struct tr_float_list {
    int32_t count;
    float item[TR_OPTION_LIST_MAX];
};

struct tr_string_list {
    int32_t count;
    char **item;
};

/* Arrays of choices end with a NULL name. */
struct tr_choice {
    const char *name;
    int value;
    const char *help; /* may be NULL */
};

enum tr_option_flags {
    TR_OPTION_ABOVE_LEAST = 1,  /* `least` itself is not allowed */
    TR_OPTION_BELOW_MOST = 2,   /* `most` itself is not allowed */
    TR_OPTION_POSITIONAL = 4,   /* given by position on the command line, in the order of the table; a list
                                   takes all remaining arguments */
    TR_OPTION_LEAVES = 8,       /* on the command line, makes required options optional (--help, --version) */
    TR_OPTION_ENVIRONMENT = 16, /* may come from the environment, see tr_options_environment() */
    TR_OPTION_QUIET = 32        /* left out of tr_options_dump() where it has its fallback: for options
                                   added after others, so that texts and digests of objects without it
                                   do not change */
};

struct tr_registry; /* base/options/registry.h */

struct tr_option {
    const char *key;
    enum tr_option_type type;
    size_t offset;
    const char *fallback; /* value if none is given; NULL: required */
    double least,
        most; /* numbers and list items, inclusive; both 0: no limits; one side open: -INFINITY, INFINITY */
    const struct tr_choice *choices; /* for CHOICE, unless `registry` has them */
    const char *help;                /* one or more sentences without the final point; first letter small */
    unsigned flags;                  /* enum tr_option_flags */
    char letter; /* -x on the command line, or 0; for a flag that is on by default it means --no-key */
    const char *value_name; /* placeholder in --help ("DIR"); NULL: made from the type */
    const char *bare; /* value for --key without one on the command line, so that a value must be attached:
                         --key=VALUE; NULL: needs a value. Not for flags */
    unsigned only;    /* bits (1u << value) of the values of the table's first option, a CHOICE, with which
                         this option is valid: with others it is an error, and it is required only with these;
                         0: all */
    const struct tr_registry
        *registry; /* for CHOICE: the choices are its entries; values are their numbers from 0 */
};

#define TR_OPTION_COUNT(table) ((int32_t)(sizeof(table) / sizeof((table)[0])))

/* Choice `index` of a CHOICE, from 0; its name is NULL after the last one. */
struct tr_choice tr_option_choice(const struct tr_option *option, int32_t index);

/* Overwrites all described fields with their fallbacks; required ones become 0, NULL or empty. TR_ENOMEM. */
tr_status tr_options_defaults(const struct tr_option *table, int32_t count, void *object);
/* Frees what the object owns and nulls it. */
void tr_options_release(const struct tr_option *table, int32_t count, void *object);

/* Reads a mapping and replaces present values. A scalar or a sequence is shorthand for the first option
   (`dense: 10` means `dense: {units: 10}`); `node` == NULL or no value (`flatten:`) sets no option. All
   required options must be given. TR_EINVAL for unknown keys (naming the nearest), wrong types, values out
   of range and missing options, with file:line:column and path; `where` names the object if node is NULL
   ("optimizer"). */
tr_status tr_options_read(const struct tr_option *table, int32_t count, const tr_config *node,
                          const char *where, void *object);
/* Sets one option from a text as on a command line ("5,3" for lists); a list of strings is appended to.
   TR_EINVAL, with a message that starts with `source` ("--threads"). */
tr_status tr_option_set(const struct tr_option *option, const char *text, const char *source, void *object);
/* Reads a command line: --key value (--key alone where that has a meaning), --key=value, -k value,
   -kvalue, flags as --key, --no-key or --key=false, positional arguments, and after -- nothing but
   positional arguments. The first --key of a list replaces the present value, later ones append. argv[0]
   is the first argument, not the program. No two options of the table have one key or letter. TR_EINVAL. */
tr_status tr_options_arguments(const struct tr_option *table, int32_t count, int argc,
                               const char *const *argv, void *object);
/* The first argument, among those read as options, that names no option of the table; -1: there is none. */
int tr_options_unknown(const struct tr_option *table, int32_t count, int argc, const char *const *argv);
/* Reads the options that allow it from `environment`, an array of "NAME=value" that ends with NULL: option
   "isa" with prefix "TRIREME_" is TRIREME_ISA. Empty values are ignored. The library itself never reads
   the environment. */
tr_status tr_options_environment(const struct tr_option *table, int32_t count, const char *prefix,
                                 const char *const *environment, void *object);

/* The texts below are returned, free with tr_free(). TR_ENOMEM. */

/* A line of usage ("trireme train [options] MODEL" for `command` "trireme train"), `about` as a paragraph,
   positional arguments and options; wrapped at 100 columns. */
tr_status tr_options_help(const char *command, const char *about, const struct tr_option *table,
                          int32_t count, char **out);
/* A section of the manual: `### title` and a table of key, type, default and meaning. */
tr_status tr_options_markdown(const char *title, const struct tr_option *table, int32_t count, char **out);
/* The values as a JSON object on one line, which is YAML in flow style too. Numbers read back as the same
 * bits. */
tr_status tr_options_dump(const struct tr_option *table, int32_t count, const void *object, char **out);

/* A value in a form that callers can pass on. */
enum tr_value_kind { TR_VALUE_NONE, TR_VALUE_BOOL, TR_VALUE_INTEGER, TR_VALUE_NUMBER, TR_VALUE_TEXT };
struct tr_value {
    enum tr_value_kind kind;
    int64_t integer; /* for a BOOL 0 or 1 */
    double number;
    char *text; /* returned, free with tr_free(); NULL for the other kinds */
};
/* The value of option `index`; lists, pairs and nodes as JSON. NONE where it is not given or not valid
   with the table's first option. TR_ENOMEM. */
tr_status tr_options_get(const struct tr_option *table, int32_t index, const void *object,
                         struct tr_value *out);

#endif
