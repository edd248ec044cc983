/* TensorBoard's event files, read back. A function that cannot do its work ends the test. */
#ifndef TESTS_SUPPORT_FILES_EVENT_FILES_H
#define TESTS_SUPPORT_FILES_EVENT_FILES_H

#include "io/proto/event.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

#define EVENT_FILE_MOST 4096

struct event_file {
    Tensorboard__Event *event[EVENT_FILE_MOST];
    int count;
    bool whole; /* nothing follows the last whole record */
};

/* Reads the whole records of a file, up to the first bad one; end with event_file_release(). */
void event_file_read(const char *path, struct event_file *file);
/* The same for the only file, or number `index` of `count`, in a directory. */
void event_file_of(const char *directory, int index, int count, struct event_file *file);
void event_file_release(struct event_file *file);

/* The value of event `i`, which is a summary of one. */
const Tensorboard__Summary__Value *event_file_value(const struct event_file *file, int i);
/* The value with this tag at this step, NULL where there is none; two are an error. */
const Tensorboard__Summary__Value *event_file_find(const struct event_file *file, const char *tag,
                                                   int64_t step);
/* The number of values, of any step, whose tag begins so. */
int event_file_count(const struct event_file *file, const char *prefix);

#endif
