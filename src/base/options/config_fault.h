/* What is wrong with a text that is no YAML, in the words of those who write model files; not for others than
 * the reader. */
#ifndef TR_BASE_CONFIG_FAULT_H
#define TR_BASE_CONFIG_FAULT_H

#include <stddef.h>
#include <yaml.h>

struct config_fault {
    yaml_mark_t
        mark; /* where it is to be mended, which may be far before the place where the reader noticed */
    char message[320];
    char line[120]; /* as it is written there, without blanks at its end, cut; tabs are "\t" */
};

/* Looks into a parser that failed, though not for memory or bytes that are no UTF-8, and into its `text`. */
void config_fault_find(const yaml_parser_t *yaml, const char *text, size_t length, struct config_fault *out);

#endif
