/* The data sets known by name: their files, checksums and mirrors. */
#ifndef TR_DATA_DATA_SET_H
#define TR_DATA_DATA_SET_H

#include "trireme/data.h"

/* A file of a set. Checksums are SHA-256 in lower-case hexadecimal. */
struct tr_data_file {
    const char *name;
    int64_t size;         /* bytes of the file as mirrors have it; 0: mirrors pack it differently */
    const char *sha256;   /* of the file, NULL if that depends on who packed it */
    const char *contents; /* of what a gzip file holds, NULL if not known */
};

struct tr_data_part {
    const char *name;
    const char *description; /* for tr_source_open(), relative to the directory of all sets */
};

struct tr_data_set_entry {
    struct tr_data_set_info public;
    const struct tr_data_file *files;
    int file_count;
    const struct tr_data_part *parts;
    const char *const *mirrors; /* the file's name is appended; ending with NULL */
};

/* The set of this name, or NULL with a message that names the nearest one (TR_ENOTFOUND). */
const struct tr_data_set_entry *tr_data_set_entry(const char *name);

/* Checks one file. TR_OK, TR_ENOTFOUND, TR_ECORRUPT, or why it cannot be read. Any thread. */
tr_status tr_data_file_verify(const struct tr_data_file *file, const char *path);

/* Fetches one file into `path` from the first mirror that has it right; as tr_data_set_fetch(). */
tr_status tr_data_file_fetch(const struct tr_data_file *file, const char *const *mirrors, const char *path,
                             tr_data_progress progress, void *user);

#endif
