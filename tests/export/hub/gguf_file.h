/* A reader of GGUF for tests, from ggml's specification. What breaks it fails the test. */
#ifndef TESTS_EXPORT_GGUF_FILE_H
#define TESTS_EXPORT_GGUF_FILE_H

#include "base/files/file.h"
#include "base/text/text.h"

#include <stdint.h>

struct gguf_file {
    struct tr_file_content content;
    size_t at, data;              /* where the data of tensors begin */
    struct tr_text told;          /* its entries and tensors, each as a line */
    size_t tokens, types, merges; /* where the elements of these arrays begin; 0: none */
    uint64_t token_count, type_count, merge_count;
    uint64_t offset[64]; /* [tensors] */
    char name[64][96];
    uint64_t tensors;
};

/* Reads the whole file: entries are of known types, tensors lie one behind the other. */
void gguf_read(const char *path, struct gguf_file *out);
void gguf_release(struct gguf_file *file);
/* From the place `at` on: a number of so many bytes, a text. */
uint64_t gguf_take_number(struct gguf_file *file, size_t size);
void gguf_take_text(struct gguf_file *file, char out[96]);

#endif
