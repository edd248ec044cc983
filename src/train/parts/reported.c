#include "train/parts/reported.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "train/observe/journal.h"

#include <string.h>
#include <unistd.h>

/* The end of a journal, with the lines of a step. */
#define TAIL_BYTES ((uint64_t)1 << 20)

/* ---- what was reported ---- */

static void forget(struct trainer_reported *reported, int64_t step)
{
    tr_text_release(&reported->keys);
    tr_text_add(&reported->keys, "\n");
    reported->step = step;
}

/* Whether it is new; also notes it. */
static bool mark(struct trainer_reported *reported, enum tr_train_event_kind kind, int64_t step,
                 const char *name)
{
    char *key = tr_format("\n%d %s\n", (int)kind, name);
    if (reported->step != step) forget(reported, step);
    bool known = key && !reported->keys.failed && strstr(reported->keys.bytes, key);
    if (key && !known) tr_text_add(&reported->keys, key + 1);
    tr_free(key);
    if (kind == TR_EVENT_CHECKPOINT) reported->saved = step;
    return !known;
}

void trainer_reported_begin(struct trainer_reported *reported)
{
    *reported = (struct trainer_reported){.step = -1, .saved = -1};
}

void trainer_reported_release(struct trainer_reported *reported)
{
    tr_text_release(&reported->keys);
}

bool trainer_reported_is_news(struct trainer_reported *reported, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_PROGRESS) return true;
    bool named = event->kind == TR_EVENT_EVALUATION || event->kind == TR_EVENT_WARNING ||
                 event->kind == TR_EVENT_SHARES;
    return mark(reported, event->kind, event->step, named ? event->name : "");
}

/* ---- what another one told ---- */

static void learn_line(struct trainer_reported *reported, char **checkpoint, const struct tr_json_value *line)
{
    const char *event = tr_json_text_or_empty(line, "event");
    int64_t step = tr_json_integer_or(line, "step", -1);
    if (strcmp(event, "start") == 0) reported->step = reported->saved = -1;
    if (step < 0) return;
    if (strcmp(event, "step") == 0) mark(reported, TR_EVENT_STEP, step, "");
    if (strcmp(event, "evaluation") == 0)
        mark(reported, TR_EVENT_EVALUATION, step, tr_json_text_or_empty(line, "set"));
    if (strcmp(event, "warning") == 0)
        mark(reported, TR_EVENT_WARNING, step, tr_json_text_or_empty(line, "message"));
    if (strcmp(event, "shares") == 0)
        mark(reported, TR_EVENT_SHARES, step, tr_json_text_or_empty(line, "message"));
    if (strcmp(event, "checkpoint") != 0) return;
    mark(reported, TR_EVENT_CHECKPOINT, step, "");
    tr_free(*checkpoint);
    *checkpoint = tr_strdup(tr_json_text_or_empty(line, "path"));
}

/* The first and the last line may be incomplete. */
static void learn_lines(struct trainer_reported *reported, char **checkpoint, const char *path,
                        const char *text, size_t size)
{
    for (const char *at = text, *end; (end = memchr(at, '\n', size - (size_t)(at - text))); at = end + 1) {
        tr_json *line = NULL;
        if (tr_json_parse(at, (size_t)(end - at), path, &line) == TR_OK)
            learn_line(reported, checkpoint, tr_json_root(line));
        tr_json_destroy(&line);
    }
}

void trainer_reported_learn(struct trainer_reported *reported, const char *directory, char **checkpoint)
{
    int file = -1;
    uint64_t size;
    if (!directory) return;
    char *path = tr_path_join(directory, TR_JOURNAL_FILE), *text = NULL;
    if (path && tr_file_open(path, &file, &size) == TR_OK) {
        uint64_t first = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
        text = tr_alloc((size_t)(size - first) + 1, 1);
        if (text && tr_file_read_at(file, path, first, text, (size_t)(size - first)) == TR_OK)
            learn_lines(reported, checkpoint, path, text, (size_t)(size - first));
        close(file);
    }
    tr_free(text);
    tr_free(path);
}
