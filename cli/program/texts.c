#include "cli/program/texts.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/packed.h"

#include <string.h>

extern const struct tr_packed cli_text_packed;

tr_status cli_text(const char *name, char **out)
{
    char *all;
    *out = NULL;
    TR_TRY(tr_unpack(&cli_text_packed, &all));
    const char *text = tr_unpacked(&cli_text_packed, all, name);
    tr_status status = TR_OK;
    if (!text)
        status = tr_fail(TR_ENOTFOUND, "the program has no text \"%s\"", name);
    else if (!(*out = tr_strdup(text)))
        status = TR_ENOMEM;
    tr_free(all);
    return status;
}
