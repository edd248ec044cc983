/* The data sets known by name: their files, checksums and mirrors. */
#ifndef TR_DATA_DATA_SET_H
#define TR_DATA_DATA_SET_H

#include "base/files/file.h"
#include "trireme/data.h"

/* A file of a set. Checksums are SHA-256 in lower-case hexadecimal. */
struct tr_data_file {
    const char *name;
    int64_t size;         /* bytes of the file on mirrors; 0: mirrors pack it differently */
    const char *sha256;   /* of the file, NULL if that depends on its packer */
    const char *contents; /* of a gzip file's contents, NULL if not known */
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
    const char *const *mirrors; /* of https; the file's name is appended; ending with NULL */
};

/* The set of this name, or NULL with a message that names the nearest one (TR_ENOTFOUND). */
const struct tr_data_set_entry *tr_data_set_entry(const char *name);

/* The next step for a missing file, as the end of a message. "; `trireme data fetch mnist --dir data` gets
   it" where `path` names a file of a known set in the set's directory or a conversion of it; else "; check
   the path". Returned, free with tr_free(). NULL when memory fails. */
char *tr_data_set_advice(const char *path);
/* Maps a file of data read-only, as tr_file_map(); the message of a missing one says how to get it. */
tr_status tr_data_map(const char *path, struct tr_file_map *out);

/* Checks one file. TR_OK, TR_ENOTFOUND, TR_ECORRUPT, or why it cannot be read. Any thread. */
tr_status tr_data_file_verify(const struct tr_data_file *file, const char *path);

/* Fetches one file into `path` from the first mirror that has the right contents; as tr_data_set_fetch().
   The URL is a mirror, a slash, and the name of the file. */
tr_status tr_data_file_fetch(const struct tr_data_file *file, const char *const *mirrors, const char *path,
                             tr_data_progress progress, void *user);

#endif
