#include "data/state.h"

#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLASSES_MAX (1 << 24)

static tr_status refuse(const struct tr_state_reader *reader, const char *why)
{
    return tr_fail(TR_EFORMAT, "%s.txt:%" PRId64 ": %s; take the file that was saved with the model",
                   reader->kind, reader->line + 2, why);
}

/* Refuses other text. The state of another kind of source is a mismatch, not damage. */
static tr_status refuse_start(const char *text, const char *kind)
{
    char other[16];
    int used = 0;
    if (sscanf(text, "trireme %15[a-z] 1, %n", other, &used) == 1 && used > 0 && strcmp(other, kind) != 0)
        return tr_fail(TR_EMISMATCH,
                       "these data need %s.txt of the model, which was trained on data that left %s.txt; "
                       "give data of the kind that it was trained on",
                       kind, other);
    return tr_fail(TR_EFORMAT,
                   "%s.txt:1: does not start with \"trireme %s 1, N classes, N lines\"; take the file that "
                   "was saved with the model",
                   kind, kind);
}

tr_status tr_state_begin(const char *text, const char *kind, struct tr_state_reader *reader)
{
    *reader = (struct tr_state_reader){.kind = kind, .at = text, .line = -1};
    if (!text) {
        reader->line = 0;
        return TR_OK;
    }
    size_t length = strlen("trireme ") + strlen(kind) + strlen(" 1, ");
    int used = 0;
    if (!tr_state_is(text, kind) ||
        sscanf(text + length, "%9" SCNd32 " classes, %18" SCNd64 " lines%n", &reader->classes, &reader->lines,
               &used) != 2 ||
        used == 0 || text[length + (size_t)used] != '\n') {
        return refuse_start(text, kind);
    }
    if (reader->classes < 0 || reader->classes > CLASSES_MAX || reader->lines < 0 ||
        (uint64_t)reader->lines > strlen(text)) {
        return refuse(reader, "impossible number of classes or lines");
    }
    reader->at = text + length + (size_t)used + 1;
    reader->line = 0;
    return TR_OK;
}

bool tr_state_is(const char *text, const char *kind)
{
    char head[64];
    int length = snprintf(head, sizeof head, "trireme %s 1, ", kind);
    return strncmp(text, head, (size_t)length) == 0;
}

const char *tr_state_part(const char *text, const char *kind)
{
    for (const char *line = strchr(text, '\n'); line; line = strchr(line, '\n'))
        if (tr_state_is(++line, kind)) return line;
    return NULL;
}

tr_status tr_state_next(struct tr_state_reader *reader, const char **line, size_t *length)
{
    const char *end = reader->line < reader->lines ? strchr(reader->at, '\n') : NULL;
    if (!end) return refuse(reader, "ends too early");
    *line = reader->at;
    *length = (size_t)(end - reader->at);
    reader->at = end + 1;
    reader->line++;
    return TR_OK;
}

tr_status tr_state_end(const struct tr_state_reader *reader)
{
    if (reader->line != reader->lines) return refuse(reader, "has more lines than were expected");
    bool last = strcmp(reader->kind, TR_STATE_CATEGORIES) == 0,
         classes = reader->at && tr_state_is(reader->at, TR_STATE_CLASSES),
         categories = reader->at && tr_state_is(reader->at, TR_STATE_CATEGORIES),
         names = !last && (categories || (classes && strcmp(reader->kind, TR_STATE_CLASSES) != 0));
    if (reader->at && *reader->at != 0 && !names)
        return refuse(reader, "has more lines than its first line says");
    return TR_OK;
}

void tr_state_add_head(struct tr_text *text, const char *kind, int32_t classes, int64_t lines)
{
    tr_text_addf(text, "trireme %s 1, %" PRId32 " classes, %" PRId64 " lines\n", kind, classes, lines);
}

tr_status tr_state_of_classes(const char *const *names, int32_t classes, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_state_add_head(&text, TR_STATE_CLASSES, classes, names ? classes : 0);
    for (int32_t i = 0; names && i < classes; i++) tr_text_addf(&text, "%s\n", names[i]);
    return tr_text_finish(&text, out);
}

tr_status tr_state_read_classes(const char *text, int32_t *classes)
{
    struct tr_state_reader reader;
    TR_TRY(tr_state_begin(text, TR_STATE_CLASSES, &reader));
    for (int64_t i = 0; i < reader.lines; i++) {
        const char *line;
        size_t length;
        TR_TRY(tr_state_next(&reader, &line, &length));
    }
    TR_TRY(tr_state_end(&reader));
    if (reader.lines != 0 && reader.lines != reader.classes)
        return refuse(&reader, "has neither one line per class nor none");
    *classes = reader.classes;
    return TR_OK;
}
