#include "cli/manual/manual.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/table.h"
#include "cli/program/texts.h"

#include <string.h>

/* A line of the file is "# heading" or "want | type". */
tr_status cli_cheatsheet(char **text)
{
    struct tr_text out = TR_TEXT_INIT;
    struct tr_table table;
    bool open = false;
    char *sheet;
    TR_TRY(cli_text("cheatsheet", &sheet));
    tr_text_add(&out, "I want to ...                           I type\n");
    for (const char *at = sheet; *at;) {
        size_t length = strcspn(at, "\n");
        const char *bar = memchr(at, '|', length);
        if (*at == '#') {
            if (open) tr_table_finish(&table, &out);
            tr_text_addf(&out, "\n%.*s:\n", (int)length - 2, at + 2);
            tr_table_begin(&table, "ll");
            open = true;
        } else if (bar && open) {
            /* All tables have one width, so that commands are aligned. */
            tr_table_cell(&table, "  %-36.*s", (int)(bar - 1 - at), at);
            tr_table_cell(&table, "%.*s", (int)(at + length - bar - 2), bar + 2);
        }
        at += length + (at[length] == '\n');
    }
    if (open) tr_table_finish(&table, &out);
    tr_free(sheet);
    return tr_text_finish(&out, text);
}
