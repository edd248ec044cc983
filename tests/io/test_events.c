/* Event files: their bytes, their names, and what is left of them after faults and kills. */
#include "io/events.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file_fault.h"
#include "base/numbers/hash.h"
#include "io/proto/hparams.pb-c.h"
#include "refuse.h"
#include "scratch.h"
#include "support/files/event_files.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- writing ---- */

static const uint8_t picture[] = {0x89, 'P', 'N', 'G'};
static const struct tr_hparam hparams[] = {
    {.name = "rate", .kind = TR_HPARAM_NUMBER, .number = 0.125},
    {.name = "nesterov", .kind = TR_HPARAM_BOOL, .number = 1},
    {.name = "rule", .kind = TR_HPARAM_TEXT, .text = "adam"},
};
/* One of each kind, the session included: 7 events behind the first one. */
#define KINDS  7
#define GOLDEN "5d4ebf4de71bfde58c026e15ea33c1dbaf9634e5082a466c7532eac7b92d6957"

static tr_status add_each(tr_events *events)
{
    const float values[] = {-1, 0, 0.5f, 0.5f};
    const struct tr_events_image image = {2, 3, 1, picture, sizeof picture};
    struct tr_histogram histogram = {0};
    tr_histogram_add(&histogram, values, 4);
    tr_events_stamp(events, 7, 1000.5);
    TR_TRY(tr_events_restart(events));
    TR_TRY(tr_events_scalar(events, "loss", 0.25));
    TR_TRY(tr_events_histogram(events, "parameters/a", &histogram));
    TR_TRY(tr_events_text(events, "model", "*text*"));
    TR_TRY(tr_events_image(events, "image", &image));
    TR_TRY(tr_events_graph(events, "graph", 5));
    return tr_events_session_begin(events, hparams, 3);
}

static tr_status write_each(const tr_file_system *files, const char *directory, char **path)
{
    tr_events *events;
    TR_TRY(tr_events_create(files, directory, 1000, &events));
    if (path) *path = tr_strdup(tr_events_path(events));
    tr_status status = path && !*path ? TR_ENOMEM : add_each(events);
    tr_status closed = tr_events_close(&events);
    return status == TR_OK ? closed : status;
}

/* ---- the format ---- */

static void bytes_are_those_on_record(void **state)
{
    (void)state;
    char *path = NULL, hex[TR_SHA256_TEXT];
    struct tr_file_content content;
    assert_int_equal(write_each(NULL, scratch_place, &path), TR_OK);
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    /* Read and approved by TensorBoard itself in tests/interop. The time is 1000.0. */
    static const uint8_t head[] = {0x18, 0,   0,   0,   0,   0,   0,    0,    0xa3, 0x7f, 0x4b, 0x22,
                                   0x09, 0,   0,   0,   0,   0,   0x40, 0x8f, 0x40, 0x1a, 0x0d, 'b',
                                   'r',  'a', 'i', 'n', '.', 'E', 'v',  'e',  'n',  't',  ':',  '2'};
    assert_in_range(content.size, sizeof head, 4096);
    assert_memory_equal(content.data, head, sizeof head);
    assert_int_equal(tr_sha256_of(content.data, content.size, hex), TR_OK);
    assert_string_equal(hex, GOLDEN);
    tr_file_content_free(&content);
    tr_free(path);
}

static void check_hparams(const struct event_file *content, int at)
{
    const Tensorboard__Summary__Value *value = event_file_value(content, at);
    const Tensorboard__SummaryMetadata__PluginData *plugin = value->metadata->plugin_data;
    assert_string_equal(value->tag, "_hparams_/session_start_info");
    assert_string_equal(plugin->plugin_name, "hparams");
    Tensorboard__HParamsPluginData *data =
        tensorboard__hparams_plugin_data__unpack(NULL, plugin->content.len, plugin->content.data);
    assert_non_null(data);
    const Tensorboard__SessionStartInfo *start = data->session_start_info;
    assert_int_equal(data->data_case, TENSORBOARD__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO);
    assert_true(start->start_time_secs == 1000.5);
    assert_int_equal(start->n_hparams, 3);
    assert_string_equal(start->hparams[0]->key, "rate");
    assert_true(start->hparams[0]->value->number_value == 0.125);
    assert_true(start->hparams[1]->value->bool_value);
    assert_string_equal(start->hparams[2]->value->string_value, "adam");
    tensorboard__hparams_plugin_data__free_unpacked(data, NULL);
}

static void every_kind_reads_back(void **state)
{
    (void)state;
    struct event_file content;
    char *path = NULL;
    assert_int_equal(write_each(NULL, scratch_place, &path), TR_OK);
    event_file_read(path, &content);
    assert_true(content.whole);
    assert_int_equal(content.count, 1 + KINDS);
    assert_string_equal(content.event[0]->file_version, "brain.Event:2");
    for (int i = 1; i <= KINDS; i++) {
        assert_int_equal(content.event[i]->step, 7);
        assert_true(content.event[i]->wall_time == 1000.5);
    }
    assert_int_equal(content.event[1]->session_log->status, TENSORBOARD__SESSION_LOG__STATUS__START);
    assert_string_equal(event_file_value(&content, 2)->tag, "loss");
    assert_true(event_file_value(&content, 2)->simple_value == 0.25f);
    const Tensorboard__Histogram *histo = event_file_value(&content, 3)->histo;
    assert_true(histo->min == -1 && histo->max == 0.5 && histo->num == 4 && histo->sum == 0 &&
                histo->sum_squares == 1.5);
    assert_int_equal(histo->n_bucket, histo->n_bucket_limit);
    assert_int_equal(histo->n_bucket, 5); /* -1, gap, 0, gap, 0.5 */
    assert_true(histo->bucket[0] == 1 && histo->bucket[2] == 1 && histo->bucket[4] == 2);
    const Tensorboard__Summary__Value *text = event_file_value(&content, 4);
    assert_string_equal(text->metadata->plugin_data->plugin_name, "text");
    assert_int_equal(text->tensor->n_string_val, 1);
    assert_memory_equal(text->tensor->string_val[0].data, "*text*", 6);
    const Tensorboard__Summary__Image *image = event_file_value(&content, 5)->image;
    assert_int_equal(image->height, 2);
    assert_int_equal(image->width, 3);
    assert_int_equal(image->colorspace, 1);
    assert_memory_equal(image->encoded_image_string.data, picture, sizeof picture);
    assert_memory_equal(content.event[6]->graph_def.data, "graph", 5);
    check_hparams(&content, 7);
    event_file_release(&content);
    tr_free(path);
}

static void sessions_end(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        struct event_file content;
        tr_events *events;
        assert_int_equal(tr_events_create(NULL, scratch_place, 1000, &events), TR_OK);
        char *path = tr_strdup(tr_events_path(events));
        tr_events_stamp(events, 9, 2000);
        assert_int_equal(tr_events_session_end(events, good), TR_OK);
        assert_int_equal(tr_events_close(&events), TR_OK);
        event_file_read(path, &content);
        ProtobufCBinaryData bytes = event_file_value(&content, 1)->metadata->plugin_data->content;
        Tensorboard__HParamsPluginData *data =
            tensorboard__hparams_plugin_data__unpack(NULL, bytes.len, bytes.data);
        assert_int_equal(data->session_end_info->status, good ? TENSORBOARD__SESSION_STATUS__STATUS_SUCCESS
                                                              : TENSORBOARD__SESSION_STATUS__STATUS_FAILURE);
        assert_true(data->session_end_info->end_time_secs == 2000);
        tensorboard__hparams_plugin_data__free_unpacked(data, NULL);
        event_file_release(&content);
        tr_free(path);
    }
}

/* ---- the file ---- */

static void each_file_is_named_later(void **state)
{
    (void)state;
    char last[SCRATCH_PATH] = "";
    /* A clock that stands still, goes on, and is set back. */
    const double clock[] = {5000, 5000, 5001, 7000.9, 30, 0};
    for (size_t i = 0; i < sizeof clock / sizeof clock[0]; i++) {
        tr_events *events;
        assert_int_equal(tr_events_create(NULL, scratch_place, clock[i], &events), TR_OK);
        assert_true(strcmp(tr_events_path(events), last) > 0);
        snprintf(last, sizeof last, "%s", tr_events_path(events));
        assert_int_equal(tr_events_close(&events), TR_OK);
    }
    assert_non_null(strstr(last, "/events.out.tfevents.0000007002."));
    /* The names of other files say nothing, whatever they end with. */
    assert_int_equal(tr_file_remove(NULL, scratch_place), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, scratch_place), TR_OK);
    static const char *const others[] = {"a",
                                         ("01234567890123456789"
                                          "0000009000.log"),
                                         "events.out.tfevents", "events.out.tfevents.9999999999.too.late"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) scratch_write_text(others[i], "x");
    tr_events *alone;
    assert_int_equal(tr_events_create(NULL, scratch_place, 40, &alone), TR_OK);
    assert_non_null(strstr(tr_events_path(alone), "/events.out.tfevents.0000000040."));
    assert_int_equal(tr_events_close(&alone), TR_OK);
    assert_int_equal(tr_file_remove(NULL, scratch_place), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, scratch_place), TR_OK);
    assert_int_equal(tr_events_close(&(tr_events *){NULL}), TR_OK);
}

static void flushed_records_are_there_at_once(void **state)
{
    (void)state;
    struct event_file content;
    tr_events *events;
    assert_int_equal(tr_events_create(NULL, scratch_place, 1000, &events), TR_OK);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(tr_events_scalar(events, "loss", i), TR_OK);
        event_file_read(tr_events_path(events), &content);
        assert_int_equal(content.count, i);
        event_file_release(&content);
        assert_int_equal(tr_events_flush(events), TR_OK);
        event_file_read(tr_events_path(events), &content);
        assert_true(content.whole);
        assert_int_equal(content.count, i + 1);
        event_file_release(&content);
    }
    assert_int_equal(tr_events_close(&events), TR_OK);
}

static void large_values_are_written_in_between(void **state)
{
    (void)state;
    struct event_file content;
    tr_events *events;
    size_t size = 300 << 10;
    uint8_t *bytes = tr_alloc_zero(size, 1);
    const struct tr_events_image image = {1, 1, 1, bytes, size};
    assert_int_equal(tr_events_create(NULL, scratch_place, 1000, &events), TR_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tr_events_scalar(events, "loss", i), TR_OK);
        assert_int_equal(tr_events_image(events, "image", &image), TR_OK);
    }
    char *path = tr_strdup(tr_events_path(events));
    assert_int_equal(tr_events_close(&events), TR_OK);
    event_file_read(path, &content);
    assert_true(content.whole);
    assert_int_equal(content.count, 11);
    assert_int_equal(event_file_value(&content, 10)->image->encoded_image_string.len, size);
    event_file_release(&content);
    tr_free(path);
    tr_free(bytes);
}

/* Writes step after step, each flushed, until something ends it. */
static tr_status write_steps(const tr_file_system *files, int steps)
{
    tr_events *events;
    TR_TRY(tr_events_create(files, scratch_place, 1000, &events));
    tr_status status = TR_OK;
    for (int i = 1; i <= steps && status == TR_OK; i++) {
        tr_events_stamp(events, i, 1000 + i);
        status = tr_events_scalar(events, "loss", i);
        if (status == TR_OK) status = tr_events_scalar(events, "rate", i);
        if (status == TR_OK) status = tr_events_flush(events);
    }
    tr_status closed = tr_events_close(&events);
    return status == TR_OK ? closed : status;
}

/* The events of all files in the directory, the whole records of which must be right and in order. */
static int count_events(bool *whole)
{
    struct tr_file_names names;
    int count = 0;
    *whole = true;
    assert_int_equal(tr_file_list(NULL, scratch_place, &names), TR_OK);
    for (int64_t n = 0; n < names.count; n++) {
        char path[SCRATCH_PATH];
        uint64_t size;
        int descriptor;
        struct event_file content;
        scratch_join(path, scratch_place, names.name[n]);
        assert_int_equal(tr_file_open(path, &descriptor, &size), TR_OK);
        close(descriptor);
        if (size == 0) continue;
        event_file_read(path, &content);
        for (int i = 1; i < content.count; i++) {
            assert_int_equal(content.event[i]->step, (i + 1) / 2);
            assert_true(event_file_value(&content, i)->simple_value == (float)((i + 1) / 2));
        }
        *whole &= content.whole;
        count += content.count;
        event_file_release(&content);
    }
    tr_file_names_free(&names);
    return count;
}

static void empty_scratch(void)
{
    assert_int_equal(tr_file_remove(NULL, scratch_place), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, scratch_place), TR_OK);
}

static void kills_leave_whole_records(void **state)
{
    (void)state;
    bool whole, torn = false, ended = false;
    int most = 0;
    for (int64_t at = 1; !ended; at++) {
        struct fault_files fault;
        int code;
        empty_scratch();
        fault_files_init(&fault, FAULT_KILL, 0, at, false);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(write_steps(&fault.system, 4) == TR_OK ? 0 : 1);
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_true(WIFEXITED(code));
        ended = WEXITSTATUS(code) == 0;
        if (!ended) assert_int_equal(WEXITSTATUS(code), FAULT_EXIT_CODE);
        int count = count_events(&whole);
        assert_true(count >= most);
        most = count;
        torn |= !whole;
    }
    assert_int_equal(most, 9);
    assert_true(torn); /* the test did tear records */
}

static void faults_are_told_and_leave_whole_records(void **state)
{
    (void)state;
    bool whole, ended = false;
    for (int kind = 0; kind < 2; kind++) {
        ended = false;
        for (int64_t at = 1; !ended; at++) {
            struct fault_files fault;
            int64_t live = tr_alloc_live();
            empty_scratch();
            fault_files_init(&fault, kind ? FAULT_SHORT_WRITE : FAULT_ERROR, ENOSPC, at, false);
            tr_status status = write_steps(&fault.system, 4);
            ended = fault.calls < at;
            assert_int_equal(status, ended ? TR_OK : TR_EIO);
            if (!ended) assert_non_null(strstr(tr_error_message(), strerror(ENOSPC)));
            int count = count_events(&whole);
            if (ended) assert_int_equal(count, 9);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
}

static void missing_directories_are_named(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    tr_events *events;
    assert_int_equal(tr_events_create(NULL, scratch_join(path, scratch_place, "absent"), 1, &events), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "absent"));
}

static void event_files_are_removed_and_nothing_else(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], other[SCRATCH_PATH];
    tr_events *events;
    assert_int_equal(tr_events_remove(NULL, scratch_join(path, scratch_place, "absent")), TR_OK);
    assert_int_equal(tr_file_write_atomic(NULL, scratch_join(other, scratch_place, "events.txt"), "x", 1),
                     TR_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tr_events_create(NULL, scratch_place, 1000, &events), TR_OK);
        snprintf(path, sizeof path, "%s", tr_events_path(events));
        assert_int_equal(tr_events_close(&events), TR_OK);
        assert_true(tr_file_exists(path));
    }
    assert_int_equal(tr_events_remove(NULL, scratch_place), TR_OK);
    struct tr_file_names names;
    assert_int_equal(tr_file_list(NULL, scratch_place, &names), TR_OK);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.name[0], "events.txt");
    tr_file_names_free(&names);
}

static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        empty_scratch(); /* names of files that are there are read, too */
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = write_each(NULL, scratch_place, NULL);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_those_on_record, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(every_kind_reads_back, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(sessions_end, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(each_file_is_named_later, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(flushed_records_are_there_at_once, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(large_values_are_written_in_between, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(kills_leave_whole_records, scratch_place_make, scratch_place_remove),
        cmocka_unit_test_setup_teardown(faults_are_told_and_leave_whole_records, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(missing_directories_are_named, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(event_files_are_removed_and_nothing_else, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test_setup_teardown(failing_allocations_leave_nothing, scratch_place_make,
                                        scratch_place_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
