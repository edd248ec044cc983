/* Folders of images: one folder for each class, with files whose names end in .png, .jpg or .jpeg. */
#ifndef TR_DATA_FOLDER_H
#define TR_DATA_FOLDER_H

#include "data/source.h"

/* {folder: {path: PATH, ...}}. Classes are numbered by the names of their folders, examples by class and
   name of the file, both ascending by bytes. Hidden files and files with other endings are skipped. State:
   classes.txt. */
extern const struct tr_source_format tr_source_format_folder;
/* How images are brought to the same size: enum tr_image_fit. */
extern const struct tr_choice tr_image_fits[];

/* The options of formats whose images have one size: members `height`, `width`, `channels` and `fit`. */
#define TR_OPTIONS_IMAGE(object)                                                                             \
    {.key = "height",                                                                                        \
     .type = TR_OPTION_INT32,                                                                                \
     .offset = offsetof(object, height),                                                                     \
     .fallback = "0",                                                                                        \
     .most = UINT16_MAX,                                                                                     \
     .help = "height of the images; 0: as the first image"},                                                 \
        {.key = "width",                                                                                     \
         .type = TR_OPTION_INT32,                                                                            \
         .offset = offsetof(object, width),                                                                  \
         .fallback = "0",                                                                                    \
         .most = UINT16_MAX,                                                                                 \
         .help = "width of the images; 0: as the first image"},                                              \
        {.key = "channels",                                                                                  \
         .type = TR_OPTION_INT32,                                                                            \
         .offset = offsetof(object, channels),                                                               \
         .fallback = "0",                                                                                    \
         .most = 3,                                                                                          \
         .help = "1 for grey, 3 for colour; 0: as the first image; the others are converted"},               \
    {                                                                                                        \
        .key = "fit", .type = TR_OPTION_CHOICE, .offset = offsetof(object, fit), .fallback = "exact",        \
        .choices = tr_image_fits, .help = "treatment of images of another size"                              \
    }

#endif
