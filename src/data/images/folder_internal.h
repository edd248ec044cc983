/* The structure of a folder of images, shared by finding its files (folder_names.c, folder_masks.c) and
   the rest (folder.c). */
#ifndef TR_DATA_FOLDER_INTERNAL_H
#define TR_DATA_FOLDER_INTERNAL_H

#include "base/files/file.h"
#include "data/images/folder.h"
#include "data/images/image.h"
#include "data/images/pictures.h"

struct folder_source {
    tr_source base;
    struct tr_pictures pictures;
    char *path, *table;
    int32_t folders;             /* one for each class, or one for the files that a table names */
    struct tr_file_names *files; /* [folders] the images of each class */
    int64_t *first;              /* [folders + 1] the first example of each class */
    uint64_t *size;              /* [count] of the files in bytes */
    char **class_names;          /* [folders]; of a table: "." */
    uint8_t *pixels;             /* of all images, bytes or 16 bits, when they are kept in memory */
    char *first_path;            /* of the first image */
    /* Of images with a mask each: */
    char *masks;         /* the folder of these, or NULL */
    int32_t ignore;      /* the number of pixels that have no class, or -1 */
    uint64_t *mask_size; /* [count] of the files in bytes */
    uint8_t *numbers;    /* [count][height][width], when images are kept */
};

/* Classes are the folders that there are. */
tr_status folder_classes(struct folder_source *source);
/* Classes are those of the training data; the folder may lack some, but has no others. */
tr_status folder_classes_of_state(struct folder_source *source, const char *state);
/* Lists the files that the column of a table names, all as one class. */
tr_status folder_files_of_table(struct folder_source *source, const char *column);
/* Lists the images of a class. */
tr_status folder_list_class(struct folder_source *source, int32_t class);
/* Lists the images that lie in the folder itself, each of which has a mask. */
tr_status folder_files_of_masks(struct folder_source *source);
/* Determines the classes of pixels: those of the training data, or the number that the options give. */
tr_status folder_classes_of_masks(struct folder_source *source, int32_t given, const char *state);
/* Checks the mask of an image, given the size of the image, and notes the size of its file. */
tr_status folder_survey_mask(struct folder_source *source, int64_t index, struct tr_image_size image);
/* Reads a mask at the wanted size; each number is checked to be below the classes, or `ignore`. */
tr_status folder_read_mask(const struct folder_source *source, int64_t index, uint8_t *numbers);
/* Gives the labels of an example's pixels. */
tr_status folder_label_pixels(const struct folder_source *source, int64_t index, int32_t *labels);
/* Adds the files of masks to those that determine the contents; `images`: one by one. */
tr_status folder_files_with_masks(struct tr_source_files *files, const char *path, const char *masks,
                                  bool images);
/* Keeps, of a folder's names, the folders or the images. */
tr_status folder_filter(struct tr_file_names *names, const char *path, bool folders);
/* Lists the folders or the images in a folder. There are none where it cannot be read, which opening reports.
   Free *names with tr_file_names_free(), also after TR_ENOMEM. */
tr_status folder_list(struct tr_file_names *names, const char *path, bool folders);

#endif
