#include "strategy/updates/text.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MOST    ((uint64_t)4 << 30)
#define COLUMNS_MOST 16
#define SEPARATORS   ", \t\r"

/* A text being read. */
struct reader {
    const char *name;
    int64_t line;
    struct tr_update_log *log;
    int64_t count;                 /* updates so far */
    int32_t taken;                 /* gradients of the next one */
    int32_t workers;               /* that the records of the session have */
    bool says_workers, says_steps; /* the session, by itself */
};

/* ---- columns ---- */

/* Cuts a line into columns; at most COLUMNS_MOST + 1 are counted. */
static int split(char *line, char *columns[COLUMNS_MOST])
{
    int count = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *rest = line; *(rest += strspn(rest, SEPARATORS)); count++) {
        if (count == COLUMNS_MOST) return count + 1;
        columns[count] = rest;
        rest += strcspn(rest, SEPARATORS);
        if (*rest) *rest++ = '\0';
    }
    return count;
}

static tr_status number_of(const struct reader *reader, const char *what, const char *text, int64_t least,
                           int64_t most, int64_t *out)
{
    const char *wrong = tr_text_int64(text, out);
    if (wrong)
        return tr_fail(TR_EFORMAT, "%s:%" PRId64 ": %s \"%.40s\" %s", reader->name, reader->line, what, text,
                       wrong);
    if (*out >= least && *out <= most) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s:%" PRId64 ": %s is %" PRId64 "; it is %" PRId64 " to %" PRId64,
                   reader->name, reader->line, what, *out, least, most);
}

static tr_status word_of(const struct reader *reader, const char *word, const char *const *words, int count,
                         int *out)
{
    struct tr_text unknown = TR_TEXT_INIT;
    char *message = NULL;
    for (*out = 0; *out < count; (*out)++)
        if (strcmp(word, words[*out]) == 0) return TR_OK;
    char shown[48];
    snprintf(shown, sizeof shown, "%.40s", word);
    tr_text_add_unknown(&unknown, shown, words, count);
    TR_TRY(tr_text_finish(&unknown, &message));
    tr_fail(TR_EFORMAT, "%s:%" PRId64 ": %s", reader->name, reader->line, message);
    tr_free(message);
    return TR_EFORMAT;
}

static tr_status hash_of(const struct reader *reader, const char *what, const char *text,
                         char out[TR_SHA256_TEXT])
{
    if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        return tr_fail(TR_EFORMAT,
                       "%s:%" PRId64 ": %s \"%.70s\" is no SHA-256, which has 64 digits from 0 to f",
                       reader->name, reader->line, what, text);
    memcpy(out, text, TR_SHA256_TEXT);
    return TR_OK;
}

/* ---- sessions ---- */

enum key { WORKERS, SERVERS, PARTS, MODE, STALENESS, FIRST, STEPS, NUMERICS, JOB, DATA, HASH, KEYS };
static const char *const keys[KEYS] = {"workers", "servers",  "parts", "mode", "staleness", "first",
                                       "steps",   "numerics", "job",   "data", "hash"};

/* Facts that a session does not state follow from its records. */
static void end_session(const struct reader *reader)
{
    struct tr_update_log *log = reader->log;
    if (log->sessions == 0) return;
    struct tr_update_session *session = &log->session[log->sessions - 1];
    if (!reader->says_workers)
        session->workers = reader->workers > session->parts ? reader->workers : session->parts;
    if (!reader->says_steps) session->steps = reader->count;
}

static tr_status take_key(struct reader *reader, char *column, struct tr_update_session *session)
{
    char *value = strchr(column, '=');
    int64_t number = 0;
    int key, mode;
    if (!value)
        return tr_fail(TR_EFORMAT,
                       "%s:%" PRId64
                       ": \"%.40s\" of a session has no value; write KEY=VALUE, as in workers=2",
                       reader->name, reader->line, column);
    *value++ = '\0';
    TR_TRY(word_of(reader, column, keys, KEYS, &key));
    switch ((enum key)key) {
    case MODE:
        TR_TRY(word_of(reader, value, tr_update_mode_names, TR_UPDATE_MODES, &mode));
        session->mode = mode;
        return TR_OK;
    case JOB:
        return hash_of(reader, keys[key], value, session->job);
    case DATA:
        return hash_of(reader, keys[key], value, session->data);
    case HASH:
        return hash_of(reader, keys[key], value, session->hash);
    case STALENESS:
        return number_of(reader, keys[key], value, 0, INT64_MAX, &session->staleness);
    case FIRST:
        return number_of(reader, keys[key], value, 0, TR_UPDATE_STEPS_MOST, &session->first);
    case STEPS:
        reader->says_steps = true;
        return number_of(reader, keys[key], value, 0, TR_UPDATE_STEPS_MOST, &session->steps);
    case NUMERICS:
        TR_TRY(number_of(reader, keys[key], value, 1, INT32_MAX, &number));
        session->numerics = (int32_t)number;
        return TR_OK;
    default:
        break;
    }
    TR_TRY(number_of(reader, keys[key], value, 1, TR_UPDATE_RANKS_MOST, &number));
    *(key == WORKERS   ? &session->workers
      : key == SERVERS ? &session->servers
                       : &session->parts) = (int32_t)number;
    if (key == WORKERS) reader->says_workers = true;
    return TR_OK;
}

static tr_status begin_session(struct reader *reader, char *columns[], int count)
{
    struct tr_update_session session = {
        .servers = 1, .parts = 1, .staleness = TR_UPDATE_ANY, .first = reader->count};
    end_session(reader);
    reader->says_workers = reader->says_steps = false;
    reader->workers = 1;
    for (int i = 0; i < count; i++) TR_TRY(take_key(reader, columns[i], &session));
    reader->count = session.first;
    reader->taken = 0;
    return tr_update_log_begin(reader->log, &session);
}

/* ---- records ---- */

static tr_status count_columns(const struct reader *reader, const char *kind, int count, int least, int most,
                               const char *form)
{
    if (count >= least && count <= most) return TR_OK;
    return tr_fail(TR_EFORMAT, "%s:%" PRId64 ": \"%s\" has %d columns after it; write %s", reader->name,
                   reader->line, kind, count, form);
}

static tr_status take_worker(struct reader *reader, const char *text, struct tr_update *record)
{
    int64_t worker;
    TR_TRY(number_of(reader, "the worker", text, 0, TR_UPDATE_RANKS_MOST - 1, &worker));
    record->worker = (uint16_t)worker;
    if (worker >= reader->workers) reader->workers = (int32_t)worker + 1;
    return TR_OK;
}

static tr_status take_work(struct reader *reader, char *columns[], int count, struct tr_update *record)
{
    const char *kind = tr_update_kind_names[record->kind];
    int64_t version, oldest = reader->count - UINT32_MAX > 0 ? reader->count - UINT32_MAX : 0;
    TR_TRY(count_columns(reader, kind, count, 3, 3, "KIND, CONTRIBUTION, WORKER, VERSION"));
    TR_TRY(number_of(reader, "the contribution", columns[0], 0, INT64_MAX, &record->number));
    TR_TRY(take_worker(reader, columns[1], record));
    TR_TRY(number_of(reader, "the version", columns[2], oldest, reader->count, &version));
    record->missed = (uint32_t)(reader->count - version);
    const struct tr_update_session *session = &reader->log->session[reader->log->sessions - 1];
    if (record->kind != TR_UPDATE_APPLIED || ++reader->taken < session->parts) return TR_OK;
    reader->taken = 0;
    reader->count++;
    return TR_OK;
}

static tr_status take_record(struct reader *reader, int kind, char *columns[], int count)
{
    struct tr_update record = {.kind = (uint8_t)kind};
    const char *name = tr_update_kind_names[kind];
    if (reader->log->sessions == 0) TR_TRY(begin_session(reader, NULL, 0));
    if (tr_update_is_work(&record)) {
        TR_TRY(take_work(reader, columns, count, &record));
    } else if (kind == TR_UPDATE_LOST) {
        TR_TRY(count_columns(reader, name, count, 1, 2, "lost, WORKER, or lost, WORKER, CONTRIBUTION"));
        TR_TRY(take_worker(reader, columns[0], &record));
        record.number = -1;
        if (count == 2)
            TR_TRY(number_of(reader, "the contribution", columns[1], 0, INT64_MAX, &record.number));
    } else {
        TR_TRY(count_columns(reader, name, count, 0, 0, "it alone"));
        record.number = reader->count;
    }
    return tr_update_log_add(reader->log, &record, 1);
}

static tr_status take_line(struct reader *reader, char *line)
{
    static const char *words[TR_UPDATE_KINDS + 2];
    char *columns[COLUMNS_MOST], hash[TR_SHA256_TEXT];
    int kind, count = split(line, columns);
    if (count == 0) return TR_OK;
    if (count > COLUMNS_MOST)
        return tr_fail(TR_EFORMAT, "%s:%" PRId64 ": more than %d columns", reader->name, reader->line,
                       COLUMNS_MOST);
    for (int i = 0; i < TR_UPDATE_KINDS; i++) words[i] = tr_update_kind_names[i];
    words[TR_UPDATE_KINDS] = "session";
    words[TR_UPDATE_KINDS + 1] = "state";
    TR_TRY(word_of(reader, columns[0], words, TR_UPDATE_KINDS + 2, &kind));
    if (kind < TR_UPDATE_KINDS) return take_record(reader, kind, columns + 1, count - 1);
    if (kind == TR_UPDATE_KINDS) return begin_session(reader, columns + 1, count - 1);
    if (reader->log->sessions == 0) TR_TRY(begin_session(reader, NULL, 0));
    TR_TRY(count_columns(reader, "state", count - 1, 1, 1, "state, HASH"));
    TR_TRY(hash_of(reader, "the state", columns[1], hash));
    return tr_update_log_mark(reader->log, reader->count, hash);
}

static tr_status read_lines(struct reader *reader, char *text, size_t size)
{
    for (char *line = text, *end = text + size; line < end;) {
        char *feed = memchr(line, '\n', (size_t)(end - line)), *next = feed ? feed + 1 : end;
        reader->line++;
        if (feed) *feed = '\0';
        if (strlen(line) != (size_t)((feed ? feed : end) - line))
            return tr_fail(TR_EFORMAT,
                           "%s:%" PRId64 ": a byte 0 is no text; `trireme log` shows logs that are none",
                           reader->name, reader->line);
        TR_TRY(take_line(reader, line));
        line = next;
    }
    end_session(reader);
    return TR_OK;
}

tr_status tr_update_text_read(const char *name, const char *bytes, size_t size, struct tr_update_log *log)
{
    struct reader reader = {.name = name, .log = log};
    char *text = tr_alloc(size + 1, 1);
    if (!text) return TR_ENOMEM;
    memcpy(text, bytes, size);
    text[size] = '\0';
    tr_status status = read_lines(&reader, text, size);
    tr_free(text);
    if (status == TR_OK) status = tr_update_log_check(log, name);
    if (status != TR_OK) tr_update_log_release(log);
    return status;
}

tr_status tr_update_text_file(const char *path, struct tr_update_log *log)
{
    struct tr_file_content content;
    TR_TRY(tr_file_read(path, TEXT_MOST, &content));
    tr_status status = tr_update_text_read(path, content.data, content.size, log);
    tr_file_content_free(&content);
    return status;
}

/* ---- writing ---- */

static void write_session(const struct tr_update_session *session, struct tr_text *text)
{
    tr_text_addf(text, "session, workers=%d, servers=%d, parts=%d, mode=%s", session->workers,
                 session->servers, session->parts, tr_update_mode_names[session->mode]);
    if (session->staleness != TR_UPDATE_ANY) tr_text_addf(text, ", staleness=%" PRId64, session->staleness);
    tr_text_addf(text, ", first=%" PRId64 ", steps=%" PRId64, session->first, session->steps);
    if (session->numerics > 0) tr_text_addf(text, ", numerics=%d", session->numerics);
    if (*session->job) tr_text_addf(text, ", job=%s", session->job);
    if (*session->data) tr_text_addf(text, ", data=%s", session->data);
    if (*session->hash) tr_text_addf(text, ", hash=%s", session->hash);
    tr_text_add(text, "\n");
}

static void write_record(const struct tr_update_entry *entry, struct tr_text *text)
{
    const struct tr_update *record = entry->record;
    tr_text_add(text, tr_update_kind_names[record->kind]);
    if (tr_update_is_work(record))
        tr_text_addf(text, ", %" PRId64 ", %d, %" PRId64, record->number, record->worker, entry->version);
    if (record->kind == TR_UPDATE_LOST) tr_text_addf(text, ", %d", record->worker);
    if (record->kind == TR_UPDATE_LOST && record->number >= 0)
        tr_text_addf(text, ", %" PRId64, record->number);
    tr_text_add(text, "\n");
}

void tr_update_text_write(const struct tr_update_log *log, struct tr_text *text)
{
    struct tr_update_walk walk = {.log = log};
    struct tr_update_entry entry;
    int64_t session = 0, state = 0;
    /* Before a state, which would begin another. */
    if (log->sessions > 0) write_session(&log->session[session++], text);
    for (bool more = true; more;) {
        int64_t at = walk.next;
        for (; state < log->states && log->state[state].at <= at; state++)
            tr_text_addf(text, "state, %s\n", log->state[state].hash);
        while (session < log->sessions && log->session[session].begin <= at)
            write_session(&log->session[session++], text);
        more = tr_update_walk_next(&walk, &entry);
        if (more) write_record(&entry, text);
    }
}
