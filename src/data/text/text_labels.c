#include "data/text/text_labels.h"

#include "base/fail.h"
#include "trireme/data.h"

#include <inttypes.h>
#include <string.h>

/* Reads a label that is a name; while names are collected, its number is not known. */
static tr_status parse_name(struct tr_text_labels *labels, const struct tr_lines *lines,
                            const struct tr_text_record *record, int32_t *label)
{
    const char *at = record->label;
    size_t length = record->label_length;
    *label = 0;
    if (length == 0)
        return tr_lines_fail(lines, record->place, "%s",
                             labels->form->layout == TR_TEXT_TABLE
                                 ? "no label in its column"
                                 : "no label after the tab; write: text TAB label");
    if (labels->collects) {
        tr_status status = tr_class_names_add(&labels->names, at, length);
        return status == TR_EFORMAT ? tr_lines_fail(lines, record->place, "%s", tr_error_message()) : status;
    }
    *label = tr_class_names_find(&labels->names, at, length);
    if (*label >= 0) return TR_OK;
    struct tr_text text = TR_TEXT_INIT;
    tr_class_names_add_unknown(&labels->names, at, length, &text);
    tr_status status = text.failed ? TR_ENOMEM : tr_lines_fail(lines, record->place, "%s", text.bytes);
    tr_text_release(&text);
    return status;
}

static tr_status parse_label(const struct tr_lines *lines, const char *place, const char *at, size_t length,
                             int32_t classes, int32_t *label)
{
    char digits[16];
    int64_t value;
    const char *wrong = "is not a whole number";
    if (length < sizeof digits && !memchr(at, 0, length)) {
        memcpy(digits, at, length);
        digits[length] = 0;
        wrong = tr_text_int64(digits, &value);
    }
    int shown = length < 40 ? (int)length : 40;
    if (wrong)
        return tr_lines_fail(lines, place,
                             "label \"%.*s\" %s; labels are numbers from 0, or all of them names", shown, at,
                             wrong);
    int32_t limit = classes > 0 ? classes : TR_TEXT_CLASSES_MAX;
    if (value < 0 || value >= limit) {
        return tr_lines_fail(lines, place,
                             "label %" PRId64 " is not in 0 to %" PRId32 "; correct the line or set classes",
                             value, limit - 1);
    }
    *label = (int32_t)value;
    return TR_OK;
}

/* The next label in [*at, end), or false at the end. */
static bool next_tag(const char **at, const char *end, const char **tag, size_t *length)
{
    while (*at < end && tr_is_blank(**at)) (*at)++;
    *tag = *at;
    while (*at < end && !tr_is_blank(**at)) (*at)++;
    *length = (size_t)(*at - *tag);
    return *length > 0;
}

/* Reads the labels of tokens; the first `room` are written. */
static tr_status parse_tags(const struct tr_text_labels *labels, const struct tr_lines *lines,
                            const struct tr_text_record *record, int32_t *out, int64_t room, int64_t *count,
                            int32_t *largest)
{
    const char *at = record->label, *end = at + record->label_length, *tag;
    size_t length;
    for (*count = 0; next_tag(&at, end, &tag, &length); ++*count) {
        int32_t label = TR_NO_LABEL;
        if (length != 1 || *tag != '-')
            TR_TRY(parse_label(lines, record->place, tag, length, labels->classes, &label));
        if (label > *largest) *largest = label;
        if (*count < room) out[*count] = label;
    }
    return TR_OK;
}

/* Determines whether labels are names: no record has a number. */
static tr_status find_names(const struct tr_text_labels *labels, const char *path, const char *file,
                            size_t size, bool *names)
{
    struct tr_text_records records;
    struct tr_text_record record;
    bool more = true;
    *names = false;
    tr_status status = tr_text_records_begin(labels->form, path, file, size, &records);
    while (status == TR_OK) {
        status = tr_text_records_next(&records, &more, &record);
        if (status == TR_OK && !more) break;
        if (status == TR_EFORMAT)
            status = TR_OK; /* reported when the record is checked */
        else if (status == TR_OK && record.label_length > 0) {
            char first = record.label[0];
            bool sign = (first == '-' || first == '+') && record.label_length > 1;
            *names = !sign && (first < '0' || first > '9');
            if (!*names) break;
        }
    }
    tr_text_records_release(&records);
    return status;
}

tr_status tr_text_labels_settle(struct tr_text_labels *labels, const char *path, const char *file,
                                size_t size, const char *state)
{
    if (!labels->form->labels || labels->tags) return TR_OK;
    if (state) TR_TRY(tr_class_names_read(state, &labels->names));
    labels->collects = !state;
    labels->named = labels->names.count > 0;
    return labels->named || state ? TR_OK : find_names(labels, path, file, size, &labels->named);
}

tr_status tr_text_labels_check(struct tr_text_labels *labels, const struct tr_lines *lines,
                               const struct tr_text_record *record, int64_t tokens, int32_t *label)
{
    int32_t largest = labels->largest;
    int64_t tags;
    *label = 0;
    if (!labels->form->labels) return TR_OK;
    if (labels->tags) {
        TR_TRY(parse_tags(labels, lines, record, NULL, 0, &tags, &largest));
        if (tags != tokens)
            return tr_lines_fail(lines, record->place,
                                 "%" PRId64 " labels for %" PRId64
                                 " tokens; give each one, - where there is none",
                                 tags, tokens);
    } else if (labels->named) {
        return parse_name(labels, lines, record, label);
    } else {
        TR_TRY(
            parse_label(lines, record->place, record->label, record->label_length, labels->classes, label));
        if (*label > largest) largest = *label;
    }
    labels->largest = largest;
    return TR_OK;
}

tr_status tr_text_labels_tags(const struct tr_text_labels *labels, const struct tr_lines *lines,
                              const struct tr_text_record *record, int32_t *out, int64_t room)
{
    int64_t count;
    int32_t largest = 0;
    return parse_tags(labels, lines, record, out, room, &count, &largest);
}
