/* Folders of images: one folder per class, in it files whose names end in .png, .jpg or .jpeg. */
#ifndef TR_DATA_FOLDER_H
#define TR_DATA_FOLDER_H

#include "data/source.h"

/* {folder: {path: PATH, ...}}. Classes are numbered by the names of their folders, examples by class and name
   of the file, both ascending by bytes. Hidden files and files with other endings are passed over. State:
   classes.txt. */
extern const struct tr_source_format tr_source_format_folder;
/* How images are brought to one size: enum tr_image_fit. */
extern const struct tr_choice tr_image_fits[];

#endif
