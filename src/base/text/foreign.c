#include "base/text/foreign.h"

#include <string.h>

static bool is_joint(char c)
{
    return c == '_' || c == '-';
}

/* Whether two names are equal except for case, '_' and '-'. */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (is_joint(*a)) a++;
        while (is_joint(*b)) b++;
        if (tr_text_upper(*a) != tr_text_upper(*b)) return false;
        if (!*a) return true;
    }
}

const char *tr_foreign_word(const char *word, const char *const *words, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (same_name(word, words[i])) return words[i];
    for (const struct tr_foreign *name = tr_foreign_names; name->theirs; name++) {
        if (!same_name(word, name->theirs)) continue;
        for (int32_t i = 0; i < count; i++)
            if (strcmp(words[i], name->ours) == 0) return words[i];
    }
    return NULL;
}

const char *tr_foreign_meant(const char *word, const char *const *words, int32_t count)
{
    const char *meant = tr_foreign_word(word, words, count);
    return meant ? meant : tr_text_nearest(word, words, count);
}

const char *tr_foreign_path(const char *word)
{
    for (const struct tr_foreign *name = tr_foreign_names; name->theirs; name++)
        if (strchr(name->ours, '.') && same_name(word, name->theirs)) return name->ours;
    return NULL;
}

void tr_text_add_unknown(struct tr_text *text, const char *word, const char *const *words, int32_t count)
{
    const char *meant = tr_foreign_meant(word, words, count);
    tr_text_addf(text, "\"%s\" is none of ", word);
    for (int32_t i = 0; i < count; i++) tr_text_addf(text, "%s%s", i ? ", " : "", words[i]);
    if (meant) tr_text_addf(text, "; did you mean \"%s\"?", meant);
}
