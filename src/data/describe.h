/* Descriptions of sources, from the names of files. */
#ifndef TR_DATA_DESCRIBE_H
#define TR_DATA_DESCRIBE_H

/* "{csv: {path: FILE}}" and the like, of the format that the ending of `path` suggests, or the folder that it
   is. NULL where nothing does, or memory fails. Returned, free with tr_free(). */
char *tr_describe_file(const char *path);

#endif
