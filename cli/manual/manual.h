/* Texts of the manual: the cheat sheet, and pages for man(1) from the option tables. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "cli/program/command.h"

/* A table of tasks and the commands for them. Returned, free with tr_free(). TR_ENOMEM. */
tr_status cli_cheatsheet(char **text);

/* Writes all pages to `directory`, which is made if need be: man1/trireme.1, one in man1 for each command,
   man5/trireme-model.5 and man7/trireme.7. `date` is the date on them ("2026-01-31"). TR_EIO, TR_ENOMEM. */
tr_status cli_manual_write(const char *directory, const char *date);

/* Appends Markdown as the project writes it (headings, paragraphs, tables of four columns, lines of code) in
   the language of man(7). Headings of the first and second level become sections. */
struct tr_text;
void cli_roff_markdown(struct tr_text *roff, const char *markdown);
/* Appends text with troff's special characters escaped; text in backquotes becomes bold. */
void cli_roff_text(struct tr_text *roff, const char *text, size_t length);

#endif
