/* Shared by the files of the option tables; private. */
#ifndef TR_BASE_OPTION_TABLE_H
#define TR_BASE_OPTION_TABLE_H

#include "base/options/option.h"

#include <string.h>

#define OPTION_RANGE_SIZE 100

static inline void *option_field(const struct tr_option *option, void *object)
{
    return (char *)object + option->offset;
}

static inline const void *option_field_const(const struct tr_option *option, const void *object)
{
    return (const char *)object + option->offset;
}

static inline bool option_is_list(const struct tr_option *option)
{
    return option->type == TR_OPTION_INT_LIST || option->type == TR_OPTION_FLOAT_LIST ||
           option->type == TR_OPTION_STRING_LIST;
}

/* Whether a flag is on by default. */
static inline bool option_is_on(const struct tr_option *option)
{
    return option->type == TR_OPTION_BOOL && option->fallback && strcmp(option->fallback, "true") == 0;
}

/* Whether an option is valid with the present value of the table's first option. */
static inline bool option_applies(const struct tr_option *table, const struct tr_option *option,
                                  const void *object)
{
    return !option->only || option->only >> *(const unsigned *)option_field_const(&table[0], object) & 1;
}

/* Appends the names of the first option's values with which an option is valid. */
void option_add_only(const struct tr_option *table, const struct tr_option *option, const char *before,
                     const char *after, struct tr_text *text);

/* The source of a text: a node of a tree, or else a name. */
struct option_origin {
    const tr_config *node;
    const char *name;
};

/* Records a message after the origin and returns TR_EINVAL. */
tr_status option_fail(struct option_origin origin, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the allowed range ("1 .. 10", ">= 1", "> 0 and < 1"), "" if there is none, and returns `buffer`. */
const char *option_range(const struct tr_option *option, char buffer[OPTION_RANGE_SIZE]);
/* The same without limits beyond any practical value. */
const char *option_range_for_people(const struct tr_option *option, char buffer[OPTION_RANGE_SIZE]);
/* Appends the type of an option's value: "an integer", "one of same, valid". */
void option_add_type(const struct tr_option *option, struct tr_text *text);
/* Appends the names of the choices with `before` and `after` around each, joined by `between`. */
void option_add_choices(const struct tr_option *option, const char *before, const char *after,
                        const char *between, struct tr_text *text);

/* Appends a key as typed on a command line, with '-' for '_'. */
void option_add_dashed(struct tr_text *text, const char *key);

/* Sets the field from one text, or appends one item to a list. For a pair it sets both numbers. */
tr_status option_put(const struct tr_option *option, const char *text, struct option_origin origin,
                     void *object);
/* Sets the second number of a pair. */
tr_status option_put_second(const struct tr_option *option, const char *text, struct option_origin origin,
                            void *object);
/* Frees what a field owns and makes it 0, NULL or empty. */
void option_clear(const struct tr_option *option, void *object);
/* Sets a field from a text as on a command line; lists are appended to. TR_EINVAL, the message starting with
 * `source`. */
tr_status option_add(const struct tr_option *option, const char *text, const char *source, void *object);

#endif
