/* Paths as text; only tr_path_absolute() looks a file up. */
#ifndef TR_BASE_PATH_H
#define TR_BASE_PATH_H

/* "a/b"; a slash is put between where `directory` does not end in one; an empty `directory` gives `name`.
   Returned, free with tr_free(). NULL when memory fails (message recorded). */
char *tr_path_join(const char *directory, const char *name);
/* The part of `path` after the last slash (all of it if there is none); inside `path`. */
const char *tr_path_name(const char *path);
/* Everything before the last component: "." where there is none, "/" for entries of the root; trailing
   slashes do not count. Returned, free with tr_free(); NULL when memory fails. */
char *tr_path_parent(const char *path);
/* The path from the root of what `path` names, links resolved; `path` itself where nothing is there, so that
   a later message shows what was typed. Returned, free with tr_free(); NULL when memory fails. */
char *tr_path_absolute(const char *path);

#endif
