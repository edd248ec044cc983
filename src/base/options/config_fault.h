/* Messages about a text that is not YAML, in the words of those who write model files; for the reader
 * alone. */
#ifndef TR_BASE_CONFIG_FAULT_H
#define TR_BASE_CONFIG_FAULT_H

#include <stddef.h>

/* A place in the text, in lines and characters, both from 0. */
struct config_mark {
    size_t line, column;
};

/* What the YAML reader noticed, in its words: what it missed and where, and, unless NULL, while doing what
   and where that began. */
struct config_notice {
    const char *problem, *context;
    struct config_mark problem_mark, context_mark;
};

struct config_fault {
    struct config_mark mark; /* where it is to be mended, maybe far before what the reader noticed */
    char message[320];
    char line[120]; /* as it is written there, without blanks at its end, cut; tabs are "\t" */
};

/* Finds what is to be mended in `text`, where the reader noticed something other than a lack of memory or
   bytes that are no UTF-8. */
void config_fault_find(const struct config_notice *notice, const char *text, size_t length,
                       struct config_fault *out);

#endif
