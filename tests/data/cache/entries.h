/* Entries of the data cache as bytes that a test may damage, and small data of all kinds to make them from.
 */
#ifndef TESTS_DATA_CACHE_ENTRIES_H
#define TESTS_DATA_CACHE_ENTRIES_H

#include "data/cache/unpacked_format.h"
#include "data/support.h"

#define DIGITS   "{idx: {images: images, labels: labels}}"
#define MASKS    "{idx: {images: images, labels: masks}}"
#define VALUES   "{csv: {path: table, label: value}}"
#define BAD_ROWS "{csv: {path: bad, on_bad_record: skip, max_bad: 0.5}}"
#define NAMED    "{csv: {path: named, standardize: true}}"
#define TEXTS    "{text: {path: texts}}"
#define TAGS     "{text: {path: tags, tags: true}}"
#define WINDOWS  "{corpus: {path: corpus, window: 3, stride: 2}}"

struct entry {
    struct bytes file;
    struct tr_unpacked_tail tail;
};

extern const char entry_key[TR_SHA256_TEXT];
/* The last warning of the log. */
extern char entry_warning[256];

/* Setup of a group: writes the data, and keeps warnings. */
int write_entry_data(void **unused);
/* Writes the entry of a source, with entry_key, as the file "entry". */
tr_status write_entry(const tr_source *source);
/* The same through a file system that may fail. */
tr_status write_entry_to(const tr_file_system *files, const tr_source *source);
/* The same of a description; free entry.file.data with free(). */
struct entry make_entry(const char *description);
/* Writes the entry with its tail and right checksums, and opens it under the name "it". A failure must leave
   nothing behind. */
tr_status open_sealed(struct entry *entry, bool verify, tr_source **out);

#endif
