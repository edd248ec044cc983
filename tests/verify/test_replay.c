/* What a verification is given reaches the training that it repeats; what ends it early is told. */
#include "base/alloc.h"
#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/ref/ref.h"
#include "receipt/receipt.h"
#include "refuse.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char run[SCRATCH_PATH], later[SCRATCH_PATH]; /* the second began with the weights of the first */
static char table[SCRATCH_PATH];                    /* on data that are unpacked */

/* The cpu device, which notes how it was wanted. */
static struct {
    int threads;
    char cache[64];
} noted;

static tr_status note(const struct tr_device_choice *choice, tr_device **out)
{
    struct tr_device_choice own = *choice;
    own.name = "cpu";
    noted.threads = choice->threads;
    snprintf(noted.cache, sizeof noted.cache, "%s", choice->cache ? choice->cache : "");
    return tr_device_kind_cpu.create(&own, out);
}

static const struct tr_device_kind noting = {.name = "noting", .help = "the cpu device", .create = note};
static const struct tr_entry *const kinds[] = {&tr_device_kind_cpu.entry, &tr_device_kind_ref.entry,
                                               &noting.entry, NULL};
const struct tr_registry tr_device_kinds = {.kind = "device", .entries = kinds};

static void train(const char *from, const char *name, char out[SCRATCH_PATH])
{
    struct job job;
    struct outcome outcome;
    family_job(&job, &families[0], family_place);
    job_set(&job, "layers=[{flatten: null}, {dense: 10}]");
    job_set(&job, "train.receipt_every=2");
    job.settings.steps = 4;
    job.settings.receipt = true;
    job.settings.from = from;
    job.settings.out = scratch_join(out, family_place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static void train_on_table(void)
{
    static const char model[] = "name: table\n"
                                "data: {train: {csv: {path: table.csv, label_columns: kind}}}\n"
                                "layers: [{dense: 3}]\n"
                                "optimizer: {rule: sgd, rate: 1e-2}\n"
                                "train: {batch: 10, steps: 2}\n";
    struct job job;
    struct outcome outcome;
    struct tr_text text = TR_TEXT_INIT;
    char path[SCRATCH_PATH];
    tr_text_add(&text, "a,b,kind\n");
    for (int i = 0; i < 30; i++) tr_text_addf(&text, "%d,%d,%d\n", i % 7 - 3, i % 5 - 2, i % 3);
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "table.csv"), text.bytes, text.length));
    tr_text_release(&text);
    scratch_join(path, family_place, "table.yaml");
    must_train(tr_file_write_atomic(NULL, path, model, sizeof model - 1));
    job_begin(&job, path);
    job.settings.receipt = true;
    job.settings.out = scratch_join(table, family_place, "table");
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static int set_up(void **state)
{
    family_place_make(state);
    train_on_table();
    train(NULL, "run", run);
    train(run, "later", later);
    return 0;
}

static struct tr_verify_settings settings_of(const char *path)
{
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    settings.path = path;
    settings.threads = 1;
    return settings;
}

static struct tr_verify_result result;

static void expect(const struct tr_verify_settings *settings, enum tr_verify_outcome outcome,
                   const char *words)
{
    char *text;
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    must_train(tr_verify(settings, NULL, NULL, &result, &text));
    if (result.outcome != outcome || !strstr(text, words))
        fail_msg("outcome %d: \"%s\" instead of \"%s\"", (int)result.outcome, text, words);
    tr_text_free(text);
}

static void the_sentence_counts(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    expect(&settings, TR_VERIFIED, "2 of 2 segments came out as the receipt says, up to step 4 of 4");
    settings.segments = 1;
    settings.seed = 1;
    settings.share = 1;
    settings.shares = 2;
    expect(&settings, TR_VERIFIED, "0 of 2 segments came out as the receipt says, up to step 4 of 4");
}

static void the_place_to_compute_is_the_given_one(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    settings.device = "ref";
    expect(&settings, TR_VERIFIED, "2 of 2");
    settings.device = "abacus";
    expect(&settings, TR_UNVERIFIABLE, "abacus");
    settings.device = "cpu";
    settings.isa = "quipu";
    expect(&settings, TR_UNVERIFIABLE, "quipu");
    settings.isa = "plain";
    expect(&settings, TR_VERIFIED, "2 of 2");
    settings.threads = -3;
    expect(&settings, TR_UNVERIFIABLE, "-3");
    settings.isa = NULL;
    settings.threads = 2;
    settings.device = "noting";
    settings.program_cache = "kept";
    expect(&settings, TR_VERIFIED, "2 of 2");
    assert_int_equal(noted.threads, 2);
    assert_string_equal(noted.cache, "kept");
}

static void count_entry(void *user, const struct tr_data_cache_entry *entry)
{
    (void)entry;
    ++*(int *)user;
}

/* The entries of a cache once the run on a table has been verified with it. */
static int entries_after(const char *cache, int64_t bytes)
{
    struct tr_verify_settings settings = settings_of(table);
    int entries = 0;
    settings.data_cache = cache;
    settings.data_cache_bytes = bytes;
    expect(&settings, TR_VERIFIED, "1 of 1");
    must_train(tr_data_cache_list(cache, count_entry, &entries));
    return entries;
}

static void data_lie_in_the_given_cache(void **state)
{
    char cache[SCRATCH_PATH];
    (void)state;
    assert_int_equal(entries_after(scratch_join(cache, family_place, "small-cache"), 1), 0);
    assert_int_equal(entries_after(scratch_join(cache, family_place, "cache"), 0), 1);
}

static int refuse_giant(size_t size, void *user)
{
    (void)user;
    return size > (size_t)1 << 32;
}

/* A network that no machine has memory for. */
static void memory_is_checked_unless_it_is_not_to_be(void **state)
{
    static const char *const giant[] = {"layers=[{dense: 1000000}, {dense: 1000000}, {dense: 3}]"};
    (void)state;
    for (int unchecked = 0; unchecked < 2; unchecked++) {
        struct tr_verify_settings settings = settings_of(table);
        const char *words = unchecked ? "bytes wanted" : "give `no_memory_check`";
        char *text;
        settings.set = giant;
        settings.set_count = 1;
        settings.no_memory_check = unchecked != 0;
        result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
        tr_alloc_set_hook(refuse_giant, NULL);
        const tr_status status = tr_verify(&settings, NULL, NULL, &result, &text);
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(status, TR_ENOMEM);
        assert_null(text);
        if (!strstr(tr_error_message(), words)) fail_msg("%s", tr_error_message());
    }
}

static void overrides_are_the_given_ones(void **state)
{
    (void)state;
    const char *const set[] = {"train.log_every=3", "optimizer.rule=magic"};
    struct tr_verify_settings settings = settings_of(run);
    settings.set = set;
    settings.set_count = 2;
    expect(&settings, TR_UNVERIFIABLE, "magic");
    settings.set_count = 1;
    expect(&settings, TR_VERIFIED, "2 of 2");
}

static void a_run_begins_with_the_weights_that_it_had(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(later);
    expect(&settings, TR_DIFFERS,
           "the first state is another one; of a run that began with the weights of another, name its "
           "checkpoint (`from`)");
    assert_int_equal(result.step, 0);
    assert_int_equal(result.checked, 0);
    settings.from = run;
    expect(&settings, TR_VERIFIED, "2 of 2");
    settings.from = "nowhere";
    expect(&settings, TR_UNVERIFIABLE, "nowhere");
    /* A run that began with none has another first state with them. */
    settings = settings_of(run);
    settings.from = later;
    expect(&settings, TR_DIFFERS, "the first state is another one");
}

static void a_stop_ends_it(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    char *text;
    must_train(tr_stop_create(&settings.stop));
    expect(&settings, TR_VERIFIED, "2 of 2");
    tr_stop_set(settings.stop, 1);
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    assert_int_equal(tr_verify(&settings, NULL, NULL, &result, &text), TR_EINTERRUPTED);
    assert_null(text);
    tr_stop_destroy(&settings.stop);
}

static int end_it(void *user, const struct tr_verify_event *event)
{
    int *calls = user;
    assert_int_equal(event->size, sizeof *event);
    assert_int_equal(event->first, 2 * *calls);
    assert_int_equal(event->end, 2 * *calls + 2);
    return ++*calls == 2;
}

static void a_listener_says_after_which_step(void **state)
{
    (void)state;
    struct tr_verify_settings settings = settings_of(run);
    int calls = 0;
    char *text;
    result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
    assert_int_equal(tr_verify(&settings, end_it, &calls, &result, &text), TR_EINTERRUPTED);
    assert_string_equal(tr_error_message(), "the verification was stopped after step 4");
    assert_int_equal(calls, 2); /* the second was the last segment */
    assert_null(text);
}

/* Of another version of the arithmetic, so that nothing is run again. */
static void lack_of_memory_is_told(void **state)
{
    (void)state;
    struct tr_receipt receipt;
    struct tr_file_content content;
    char path[SCRATCH_PATH], *text;
    must_train(tr_file_read(scratch_join(path, run, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &content));
    must_train(tr_receipt_read(path, content.data, content.size, &receipt));
    tr_file_content_free(&content);
    receipt.numerics = 2147483647;
    must_train(tr_receipt_write(&receipt, &text));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, family_place, "other.receipt"), text, strlen(text)));
    tr_free(text);
    tr_receipt_release(&receipt);
    struct tr_verify_settings settings = settings_of(path);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        result = (struct tr_verify_result)TR_VERIFY_RESULT_INIT;
        refuse_begin(at);
        tr_status status = tr_verify(&settings, NULL, NULL, &result, &text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done)
            assert_non_null(strstr(text, "numerics version: the receipt is of 2147483647, this program"));
        assert_true(done ? result.outcome == TR_UNVERIFIABLE : text == NULL);
        tr_text_free(text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sentence_counts),
        cmocka_unit_test(the_place_to_compute_is_the_given_one),
        cmocka_unit_test(data_lie_in_the_given_cache),
        cmocka_unit_test(memory_is_checked_unless_it_is_not_to_be),
        cmocka_unit_test(overrides_are_the_given_ones),
        cmocka_unit_test(a_run_begins_with_the_weights_that_it_had),
        cmocka_unit_test(a_stop_ends_it),
        cmocka_unit_test(a_listener_says_after_which_step),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, family_place_remove);
}
