/* Everything that reads what others wrote, as targets for a fuzzer: each takes any bytes, may refuse them,
 * and must neither crash, leak nor break a promise.
 *
 * The same targets run in two ways: under libFuzzer (libfuzzer.c, `./check --fuzz`), which looks for new
 * inputs, and as an ordinary test (test_corpus.c) over the seeds in corpus/<target>/ and damaged copies of
 * them. A crash that was found and mended leaves its input there.
 *
 * Where a target needs several files, or has several ways to read them, the first byte of the input chooses
 * the way, and further parts follow each other as fuzz_part() takes them.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "trireme/data.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct fuzz_target {
    const char *name; /* of its folder in corpus/ */
    void (*run)(const uint8_t *data, size_t size);
};

/* Ends with a target without a name. */
extern const struct fuzz_target fuzz_targets[];
/* NULL if there is none. */
const struct fuzz_target *fuzz_target_called(const char *name);

/* Ends the program where a promise is broken. */
#define FUZZ_DEMAND(holds)                                                                                   \
    do {                                                                                                     \
        if (!(holds)) {                                                                                      \
            fprintf(stderr, "%s:%d: broken promise: %s (last message: %s)\n", __FILE__, __LINE__, #holds,    \
                    tr_error_message());                                                                     \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* ---- for targets ---- */

/* What is left of an input. */
struct fuzz_input {
    const uint8_t *data;
    size_t size;
};
/* Takes one byte as a number below `count`; 0 from an empty input. */
unsigned fuzz_choice(struct fuzz_input *input, unsigned count);
/* Takes a part: two bytes with its length, little-endian, then so many bytes, or what there is. */
struct fuzz_input fuzz_part(struct fuzz_input *input);
/* The rest as text with a NUL behind it; free with free(). */
char *fuzz_string(struct fuzz_input input);

/* File `index` (0 or 1) with this content, in memory; returns its path. */
const char *fuzz_file(int index, const void *data, size_t size);
/* A directory of this program's own, and a path in it (static storage, the last four are valid). */
const char *fuzz_directory(void);
const char *fuzz_path(const char *name);
/* Writes a file there; directories on the way are made. */
void fuzz_write(const char *name, const void *data, size_t size);

/* Opens a source and reads all that it promises; whoever trusts a source may index arrays with what it hands
   out. `state` may be NULL. */
void fuzz_source(const char *description, const char *directory, const char *state);

/* The same for a source that is open. */
void fuzz_read_source(const tr_source *source);

/* ---- the targets ---- */

#define FUZZ_TARGETS(X)                                                                                      \
    X(arrays)                                                                                                \
    X(cifar)                                                                                                 \
    X(config)                                                                                                \
    X(corpus)                                                                                                \
    X(csv)                                                                                                   \
    X(digests)                                                                                               \
    X(dispute)                                                                                               \
    X(example)                                                                                               \
    X(folder)                                                                                                \
    X(hub)                                                                                                   \
    X(hub_index)                                                                                             \
    X(idx)                                                                                                   \
    X(image)                                                                                                 \
    X(inflate)                                                                                               \
    X(join)                                                                                                  \
    X(journal)                                                                                               \
    X(json)                                                                                                  \
    X(json_lines)                                                                                            \
    X(manifest)                                                                                              \
    X(memory)                                                                                                \
    X(network)                                                                                               \
    X(notes)                                                                                                 \
    X(npy)                                                                                                   \
    X(options)                                                                                               \
    X(peft)                                                                                                  \
    X(receipt)                                                                                               \
    X(safetensors)                                                                                           \
    X(series)                                                                                                \
    X(set)                                                                                                   \
    X(shards)                                                                                                \
    X(spilled_text)                                                                                          \
    X(state)                                                                                                 \
    X(sweep)                                                                                                 \
    X(tar)                                                                                                   \
    X(text)                                                                                                  \
    X(tfrecord)                                                                                              \
    X(tokenizer)                                                                                             \
    X(trace)                                                                                                 \
    X(unpacked)                                                                                              \
    X(updates)                                                                                               \
    X(values)                                                                                                \
    X(vectors)                                                                                               \
    X(vocabulary)

#define FUZZ_DECLARE(name) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)
#undef FUZZ_DECLARE

#endif
