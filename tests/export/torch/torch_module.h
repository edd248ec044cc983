/* The PyTorch modules of networks without data, for tests of their text. */
#ifndef TESTS_EXPORT_TORCH_MODULE_H
#define TESTS_EXPORT_TORCH_MODULE_H

#include "base/files/file.h"
#include "support/networks.h"

/* Writes the module to the file `path`, and reads it; release with tr_file_content_free(). */
tr_status torch_module_write(const struct network *network, const char *path, struct tr_file_content *out);
/* Fails the test unless the module has this text. */
void torch_module_expect(const struct tr_file_content *module, const char *text);

#endif
