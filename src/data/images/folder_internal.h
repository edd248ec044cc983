/* The structure of a folder of images, shared by its names (folder_names.c) and the rest (folder.c). */
#ifndef TR_DATA_FOLDER_INTERNAL_H
#define TR_DATA_FOLDER_INTERNAL_H

#include "base/files/file.h"
#include "data/images/folder.h"
#include "data/images/image.h"

struct folder_source {
    tr_source base;
    enum tr_image_fit fit;
    char *path, *table;
    int32_t folders;             /* one for each class, or one of files that a table names */
    struct tr_file_names *files; /* [folders] the images of each class */
    int64_t *first;              /* [folders + 1] the first example of each class */
    uint64_t *size;              /* [count] of the files in bytes */
    char **class_names;          /* [folders], of a table's "." */
    uint8_t *pixels;             /* all images, when they are kept */
};

/* Classes are what the folder has. */
tr_status folder_classes(struct folder_source *source);
/* Classes are what the training data had; the folder may lack some, but has no others. */
tr_status folder_classes_of_state(struct folder_source *source, const char *state);
/* The files that the column of a table names, all of one class. */
tr_status folder_files_of_table(struct folder_source *source, const char *column);
/* The images of a class. */
tr_status folder_list_class(struct folder_source *source, int32_t class);
/* Keeps those names of what a folder has that are folders, or images. */
tr_status folder_filter(struct tr_file_names *names, const char *path, bool folders);

#endif
