/* Messages about a text that is not valid YAML, in words for authors of model files; used by the parser
 * only.
 */
#ifndef TR_BASE_CONFIG_FAULT_H
#define TR_BASE_CONFIG_FAULT_H

#include <stddef.h>

/* A place in the text, in lines and characters, both from 0. */
struct config_mark {
    size_t line, column;
};

/* The YAML parser's error, in its words: the problem and its place, and, unless NULL, the context and
   where that began. */
struct config_notice {
    const char *problem, *context;
    struct config_mark problem_mark, context_mark;
};

struct config_fault {
    struct config_mark mark; /* where to correct it, perhaps long before the place of the error */
    char message[320];
    char line[120]; /* the line there, without blanks at its end, truncated; tabs are "\t" */
};

/* Finds the fault to correct in `text`, for parser errors other than lack of memory or invalid UTF-8. */
void config_fault_find(const struct config_notice *notice, const char *text, size_t length,
                       struct config_fault *out);

#endif
