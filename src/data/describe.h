/* Descriptions of sources, from the names of files. */
#ifndef TR_DATA_DESCRIBE_H
#define TR_DATA_DESCRIBE_H

/* The description of a file or folder, such as "{csv: {path: FILE}}": the format follows from the ending
   of `path`, or from its being a folder. NULL where no format fits, or memory fails. Returned, free with
   tr_free(). */
char *tr_describe_file(const char *path);

#endif
