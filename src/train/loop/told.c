/* What the root told already, and what it takes to be the root in the place of one that died.
 *
 * What comes between two steps may be repeated where ranks died in it (trainer_shrink.c). Listener, journal
 * and events then hear what they have not heard yet. The root remembers what it told of the newest step; one
 * that becomes the root reads it in the journal, where each line was written at once: what is not there was
 * not told. A listener is told after the journal, so of the event that the root before died in, it may not
 * hear.
 */
#include "train/loop/internal.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* The end of a journal that has the lines of a step. */
#define TAIL_BYTES ((uint64_t)1 << 20)
/* The lock of a process goes with it, but may be seen a moment longer than it lives. */
#define LOCK_SECONDS 10.0
#define NAP_SECONDS  0.01

/* ---- what was told ---- */

static void forget(struct trainer_told *told, int64_t step)
{
    tr_text_release(&told->keys);
    tr_text_add(&told->keys, "\n");
    told->step = step;
}

/* Whether it is new; notes it. Without memory for a note, something may be told twice. */
static bool note(struct trainer_told *told, enum tr_train_event_kind kind, int64_t step, const char *name)
{
    char *key = tr_format("\n%d %s\n", (int)kind, name);
    if (told->step != step) forget(told, step);
    bool known = key && !told->keys.failed && strstr(told->keys.bytes, key);
    if (key && !known) tr_text_add(&told->keys, key + 1);
    tr_free(key);
    if (kind == TR_EVENT_CHECKPOINT) told->saved = step;
    return !known;
}

bool trainer_is_news(tr_trainer *trainer, const struct tr_train_event *event)
{
    if (!trainer->whole || event->kind == TR_EVENT_PROGRESS) return true;
    bool named = event->kind == TR_EVENT_EVALUATION || event->kind == TR_EVENT_WARNING ||
                 event->kind == TR_EVENT_SHARES;
    return note(&trainer->told, event->kind, event->step, named ? event->name : "");
}

/* ---- what another one told ---- */

static void learn_line(tr_trainer *trainer, const struct tr_json_value *line)
{
    const char *event = tr_json_text_or_empty(line, "event");
    int64_t step = tr_json_integer_or(line, "step", -1);
    if (strcmp(event, "start") == 0) trainer->told.step = trainer->told.saved = -1;
    if (step < 0) return;
    if (strcmp(event, "step") == 0) note(&trainer->told, TR_EVENT_STEP, step, "");
    if (strcmp(event, "evaluation") == 0)
        note(&trainer->told, TR_EVENT_EVALUATION, step, tr_json_text_or_empty(line, "set"));
    if (strcmp(event, "warning") == 0)
        note(&trainer->told, TR_EVENT_WARNING, step, tr_json_text_or_empty(line, "message"));
    if (strcmp(event, "shares") == 0)
        note(&trainer->told, TR_EVENT_SHARES, step, tr_json_text_or_empty(line, "message"));
    if (strcmp(event, "checkpoint") != 0) return;
    note(&trainer->told, TR_EVENT_CHECKPOINT, step, "");
    tr_free(trainer->checkpoint);
    trainer->checkpoint = tr_strdup(tr_json_text_or_empty(line, "path"));
}

/* The first line may be half of one, and the last. */
static void learn_lines(tr_trainer *trainer, const char *path, const char *text, size_t size)
{
    for (const char *at = text, *end; (end = memchr(at, '\n', size - (size_t)(at - text))); at = end + 1) {
        tr_json *line = NULL;
        if (tr_json_parse(at, (size_t)(end - at), path, &line) == TR_OK)
            learn_line(trainer, tr_json_root(line));
        tr_json_destroy(&line);
    }
}

void trainer_learn_told(tr_trainer *trainer)
{
    int file = -1;
    uint64_t size;
    if (!trainer->journal_directory) return;
    char *path = tr_path_join(trainer->journal_directory, TR_JOURNAL_FILE), *text = NULL;
    if (path && tr_file_open(path, &file, &size) == TR_OK) {
        uint64_t first = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
        text = tr_alloc((size_t)(size - first) + 1, 1);
        if (text && tr_file_read_at(file, path, first, text, (size_t)(size - first)) == TR_OK)
            learn_lines(trainer, path, text, (size_t)(size - first));
        close(file);
    }
    tr_free(text);
    tr_free(path);
}

/* ---- to be the root ---- */

static tr_status take_directory(tr_trainer *trainer)
{
    double end = tr_clock_seconds() + LOCK_SECONDS;
    for (;;) {
        tr_status status = trainer_take_directory(trainer);
        if (status != TR_EIO || tr_clock_seconds() > end) return status;
        nanosleep(&(struct timespec){.tv_nsec = (long)(NAP_SECONDS * 1e9)}, NULL);
    }
}

tr_status trainer_take_over(tr_trainer *trainer)
{
    if (trainer->is_root || !trainer_is_root(trainer)) return TR_OK;
    trainer->is_root = true;
    if (trainer->out && trainer->lock < 0) TR_TRY(take_directory(trainer));
    trainer_journal_go_on(trainer);
    trainer_observe_take_over(trainer);
    return TR_OK;
}
