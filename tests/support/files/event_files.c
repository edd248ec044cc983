#include "support/files/event_files.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "data/formats/tfrecord.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

void event_file_read(const char *path, struct event_file *file)
{
    struct tr_record_file records;
    *file = (struct event_file){.whole = true};
    assert_int_equal(tr_record_file_open(tr_strdup(path), TR_PACKING_NONE, &records), TR_OK);
    for (uint64_t at = 0; at < records.size;) {
        const uint8_t *data;
        size_t size;
        enum tr_record_fault fault;
        if (tr_record_at(&records, at, true, &data, &size, &fault) != TR_OK) {
            file->whole = false;
            break;
        }
        assert_in_range(file->count, 0, EVENT_FILE_MOST - 1);
        Tensorboard__Event *event = tensorboard__event__unpack(NULL, size, data);
        assert_non_null(event);
        file->event[file->count++] = event;
        at += size + TR_RECORD_OVERHEAD;
    }
    tr_record_file_close(&records);
}

void event_file_of(const char *directory, int index, int count, struct event_file *file)
{
    char path[SCRATCH_PATH] = "";
    struct tr_file_names names;
    int found = 0;
    assert_int_equal(tr_file_list(NULL, directory, &names), TR_OK);
    for (int64_t i = 0; i < names.count; i++) {
        if (strncmp(names.name[i], "events.out.tfevents.", 20) != 0) continue;
        if (found++ == index) scratch_join(path, directory, names.name[i]);
    }
    tr_file_names_free(&names);
    assert_int_equal(found, count);
    event_file_read(path, file);
}

void event_file_release(struct event_file *file)
{
    for (int i = 0; i < file->count; i++) tensorboard__event__free_unpacked(file->event[i], NULL);
    file->count = 0;
}

const Tensorboard__Summary__Value *event_file_value(const struct event_file *file, int i)
{
    assert_in_range(i, 0, file->count - 1);
    assert_int_equal(file->event[i]->what_case, TENSORBOARD__EVENT__WHAT_SUMMARY);
    assert_int_equal(file->event[i]->summary->n_value, 1);
    return file->event[i]->summary->value[0];
}

const Tensorboard__Summary__Value *event_file_find(const struct event_file *file, const char *tag,
                                                   int64_t step)
{
    const Tensorboard__Summary__Value *found = NULL;
    for (int i = 0; i < file->count; i++) {
        if (file->event[i]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY || file->event[i]->step != step)
            continue;
        const Tensorboard__Summary__Value *value = event_file_value(file, i);
        if (strcmp(value->tag, tag) != 0) continue;
        if (found) fail_msg("%s is written twice at step %lld", tag, (long long)step);
        found = value;
    }
    return found;
}

int event_file_count(const struct event_file *file, const char *prefix)
{
    int count = 0;
    for (int i = 0; i < file->count; i++) {
        if (file->event[i]->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY) continue;
        count += strncmp(event_file_value(file, i)->tag, prefix, strlen(prefix)) == 0;
    }
    return count;
}
