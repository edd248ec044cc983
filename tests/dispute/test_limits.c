/* What a party takes and no more: model files that fit a line, steps that it follows; and what its settings
 * say reaches the run that it repeats.
 */
#include "dispute/two_sides.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void expect(tr_party *party, const char *question, const char *words)
{
    char *answer;
    must_train(tr_party_answer(party, question, &answer));
    if (!strstr(answer, words)) fail_msg("%s: \"%.200s\" instead of \"%s\"", question, answer, words);
    tr_free(answer);
}

/* Two digits for each byte, and some room for the rest of the line. */
static void a_model_file_has_room_in_a_line(void **state)
{
    const size_t most = TR_WIRE_MOST / 2 - 8;
    char *model = tr_alloc_zero(most + 2, 1), *answer;
    struct tr_receipt large = run_receipt;
    (void)state;
    assert_non_null(model);
    memset(model, 'm', most);
    large.model = model;
    tr_party *party = party_with(&large);
    must_train(tr_party_answer(party, "model", &answer));
    assert_int_equal(strlen(answer), strlen("model ") + 2 * most);
    assert_true(strlen(answer) < TR_WIRE_MOST);
    assert_int_equal(strncmp(answer, "model 6d6d", 10), 0);
    assert_string_equal(answer + strlen(answer) - 4, "6d6d");
    tr_free(answer);
    tr_party_destroy(&party);
    model[most] = 'm';
    party = party_with(&large);
    expect(party, "model", "sorry there is no such model file");
    tr_party_destroy(&party);
    tr_free(model);
}

/* A segment of a million steps is repeated, as far as the run goes here; a longer one is not. */
static void a_million_steps_are_followed(void **state)
{
    struct tr_receipt_boundary boundary[2] = {run_receipt.boundary[0], run_receipt.boundary[1]};
    struct tr_receipt large = run_receipt;
    (void)state;
    large.steps = 2000000;
    large.boundary = boundary;
    large.count = 2;
    large.parameters[0] = '\0';
    boundary[1].step = 1000000;
    tr_party *party = party_with(&large);
    expect(party, "replay 0", "sorry the run ends before 1000000 steps here");
    tr_party_destroy(&party);
    boundary[1].step++;
    party = party_with(&large);
    expect(party, "replay 0",
           "sorry 1000001 steps between two states at hand, of which 1000000 at most are followed; keep more "
           "boundaries and checkpoints");
    tr_party_destroy(&party);
}

/* A batch of so many examples that their numbers do not fit a line, and one that is smaller by one. */
static void a_batch_has_room_in_a_line(void **state)
{
    static const char model[] = "name: many\n"
                                "data: {train: {csv: {path: many.csv, label_columns: kind}}}\n"
                                "layers: [{dense: 2}]\n"
                                "optimizer: {rule: sgd, rate: 1e-2}\n"
                                "train: {steps: 6}\n";
    enum {
        EXAMPLES = 165669
    }; /* each takes a blank and up to six digits: 1048573 bytes and a word of five */
    char path[SCRATCH_PATH], batch[48], *answer;
    const char *const set[] = {batch};
    struct tr_text text = TR_TEXT_INIT;
    (void)state;
    tr_text_add(&text, "a,kind\n");
    for (int i = 0; i < EXAMPLES; i++) tr_text_add(&text, i % 2 ? "1,1\n" : "2,0\n");
    must_train(tr_file_write_atomic(NULL, scratch_join(path, run_path, "many.csv"), text.bytes, text.length));
    tr_text_release(&text);
    scratch_join(path, run_path, "many.yaml");
    must_train(tr_file_write_atomic(NULL, path, model, sizeof model - 1));
    const struct tr_party_settings settings = {
        .path = run_path, .model = path, .device = "ref", .set = set, .set_count = 1};
    for (int fewer = 0; fewer < 2; fewer++) {
        tr_party *party;
        snprintf(batch, sizeof batch, "train.batch=%d", EXAMPLES - fewer);
        must_train(tr_party_create(&settings, &party));
        must_train(tr_party_answer(party, "batch 1", &answer));
        if (fewer)
            assert_in_range(strlen(answer), TR_WIRE_MOST - 8, TR_WIRE_MOST - 1);
        else
            assert_string_equal(answer, "sorry the answer would be too long");
        tr_free(answer);
        tr_party_destroy(&party);
    }
}

static void count_entry(void *user, const struct tr_data_cache_entry *entry)
{
    (void)entry;
    ++*(int *)user;
}

/* Repeats a segment; the entries in the cache afterwards. */
static int entries_after(const char *cache, int64_t bytes)
{
    const struct tr_party_settings settings = {
        .path = run_path, .device = "ref", .data_cache = cache, .data_cache_bytes = bytes};
    tr_party *party;
    int entries = 0;
    must_train(tr_party_create(&settings, &party));
    expect(party, "replay 0", "replay ");
    tr_party_destroy(&party);
    must_train(tr_data_cache_list(cache, count_entry, &entries));
    return entries;
}

static void data_lie_in_the_given_cache(void **state)
{
    char cache[SCRATCH_PATH];
    (void)state;
    assert_int_equal(entries_after(scratch_join(cache, run_path, "small-cache"), 1), 0);
    assert_int_equal(entries_after(scratch_join(cache, run_path, "cache"), 0), 1);
}

/* A network that no machine has memory for. */
static const char *const giant[] = {"layers=[{dense: 1000000}, {dense: 1000000}, {dense: 3}]"};

static int refuse_giant(size_t size, void *user)
{
    (void)user;
    return size > (size_t)1 << 32;
}

static void memory_is_checked_unless_it_is_not_to_be(void **state)
{
    (void)state;
    for (int unchecked = 0; unchecked < 2; unchecked++) {
        const struct tr_party_settings settings = {.path = run_path,
                                                   .device = "ref",
                                                   .set = giant,
                                                   .set_count = 1,
                                                   .no_memory_check = unchecked != 0};
        tr_party *party;
        char *answer;
        must_train(tr_party_create(&settings, &party));
        tr_alloc_set_hook(refuse_giant, NULL);
        const tr_status status = tr_party_answer(party, "replay 0", &answer);
        tr_alloc_set_hook(NULL, NULL);
        assert_int_equal(status, TR_ENOMEM);
        assert_null(answer);
        const char *words = unchecked ? "bytes wanted" : "give `no_memory_check`";
        if (!strstr(tr_error_message(), words)) fail_msg("%s", tr_error_message());
        tr_party_destroy(&party);
    }
}

static void what_it_is_given_reaches_the_run(void **state)
{
    static const char *const set[] = {"train.log_every=3", "optimizer.rule=magic"};
    const struct {
        struct tr_party_settings settings;
        const char *words;
    } given[] = {
        {{.device = "ref"}, "replay "},          {{.device = "abacus"}, "sorry "},
        {{.device = "abacus"}, "abacus"},        {{.isa = "quipu"}, "quipu"},
        {{.isa = "plain"}, "replay "},           {{.threads = -3}, "-3"},
        {{.set = set, .set_count = 2}, "magic"}, {{.set = set, .set_count = 1}, "replay "},
        {{.from = "nowhere"}, "nowhere"},        {{.model = "nowhere.yaml"}, "nowhere.yaml"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        struct tr_party_settings settings = given[i].settings;
        tr_party *party;
        settings.path = run_path;
        must_train(tr_party_create(&settings, &party));
        expect(party, "replay 0", given[i].words);
        /* The last segment begins at a checkpoint, whatever weights the run began with. */
        if (settings.from) expect(party, "replay 2", "replay ");
        tr_party_destroy(&party);
    }
}

/* Nobody else is to be told that it cannot answer. */
static void a_stop_ends_it(void **state)
{
    struct tr_party_settings settings = {.path = run_path, .device = "ref"};
    tr_party *party;
    char *answer;
    (void)state;
    must_train(tr_stop_create(&settings.stop));
    must_train(tr_party_create(&settings, &party));
    expect(party, "replay 0", "replay ");
    tr_stop_set(settings.stop, 1);
    assert_int_equal(tr_party_answer(party, "replay 0", &answer), TR_EINTERRUPTED);
    assert_null(answer);
    expect(party, "hello 1", "hello 1 ");
    tr_party_destroy(&party);
    tr_stop_destroy(&settings.stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_file_has_room_in_a_line),
        cmocka_unit_test(a_batch_has_room_in_a_line),
        cmocka_unit_test(a_million_steps_are_followed),
        cmocka_unit_test(data_lie_in_the_given_cache),
        cmocka_unit_test(memory_is_checked_unless_it_is_not_to_be),
        cmocka_unit_test(what_it_is_given_reaches_the_run),
        cmocka_unit_test(a_stop_ends_it),
    };
    return cmocka_run_group_tests(tests, run_make, run_remove);
}
