/* What the library fills for programs that were built with other versions of its structures. */
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static char model[SCRATCH_PATH], out[SCRATCH_PATH];
static tr_trainer *trainer;
static tr_predictor *predictor;
static struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;

static tr_status fill_plan(void *structure)
{
    return tr_train_plan(&settings, structure);
}

static tr_status fill_info(void *structure)
{
    return tr_trainer_info(trainer, structure);
}

static tr_status fill_placement(void *structure)
{
    return tr_trainer_placement(trainer, 0, structure);
}

static tr_status fill_step(void *structure)
{
    return tr_trainer_step(trainer, structure);
}

static tr_status fill_evaluation(void *structure)
{
    return tr_trainer_evaluate(trainer, "test", structure);
}

static tr_status fill_statistics(void *structure)
{
    return tr_trainer_statistics(trainer, structure);
}

static tr_status fill_predict_head(void *structure)
{
    return tr_predictor_head(predictor, 0, structure);
}

static tr_status fill_predict_info(void *structure)
{
    return tr_predictor_info(predictor, structure);
}

/* `first` and `last` are where the first member behind the size and the last one begin. Members that are 0 in
   this job are as good as any: what was there before is not 0. */
#define OUTPUT(fill, type, first, last)                                                                      \
    {                                                                                                        \
#type, fill, sizeof(struct type), offsetof(struct type, first), offsetof(struct type, last)          \
    }
static const struct output {
    const char *name;
    tr_status (*fill)(void *structure);
    size_t size, first, last;
} outputs[] = {
    OUTPUT(fill_plan, tr_train_plan, strategy, asynchronous),
    OUTPUT(fill_info, tr_train_info, name, end_microbatch),
    OUTPUT(fill_placement, tr_train_placement, host, updates),
    OUTPUT(fill_step, tr_train_event, kind, hash),
    OUTPUT(fill_evaluation, tr_train_event, kind, hash),
    OUTPUT(fill_statistics, tr_train_statistics, ranks, dropped),
    OUTPUT(fill_predict_info, tr_predict_info, name, target_names),
    OUTPUT(fill_predict_head, tr_predict_head, loss, name),
};
#define OUTPUTS (sizeof outputs / sizeof outputs[0])

enum { ROOM = 1024, FILLER = 0xa5 };

/* Fills a structure of `size` bytes as its caller says, with FILLER everywhere else. */
static tr_status fill(const struct output *output, size_t size, uint8_t structure[ROOM])
{
    memset(structure, FILLER, ROOM);
    memcpy(structure, &size, sizeof size);
    return output->fill(structure);
}

static void expect_untouched(const struct output *output, const uint8_t *structure, size_t from)
{
    for (size_t i = from; i < ROOM; i++)
        if (structure[i] != FILLER) fail_msg("%s: byte %d was written", output->name, (int)i);
}

static size_t filled(const uint8_t *structure)
{
    size_t size;
    memcpy(&size, structure, sizeof size);
    return size;
}

static void older_programs_get_what_they_know(void **state)
{
    (void)state;
    _Alignas(16) uint8_t structure[ROOM], whole[ROOM];
    for (size_t i = 0; i < OUTPUTS; i++) {
        const struct output *output = &outputs[i];
        assert_true(output->size < ROOM - 64);
        const size_t sizes[] = {output->first + 1, output->last, output->size};
        for (int s = 0; s < 3; s++) {
            must_train(fill(output, sizes[s], structure));
            assert_int_equal(filled(structure), sizes[s]);
            expect_untouched(output, structure, sizes[s]);
        }
        /* The last member, and not only those before it. */
        memset(whole, FILLER, sizeof whole);
        if (memcmp(structure + output->last, whole, output->size - output->last) == 0)
            fail_msg("%s: the last member was not filled", output->name);
        if (memcmp(structure + output->first, whole, 4) == 0)
            fail_msg("%s: the first member was not filled", output->name);
    }
}

static void newer_programs_learn_where_the_facts_end(void **state)
{
    (void)state;
    _Alignas(16) uint8_t structure[ROOM];
    for (size_t i = 0; i < OUTPUTS; i++) {
        must_train(fill(&outputs[i], outputs[i].size + 24, structure));
        assert_int_equal(filled(structure), outputs[i].size);
        expect_untouched(&outputs[i], structure, outputs[i].size);
    }
}

static void a_structure_without_a_size_is_refused(void **state)
{
    (void)state;
    _Alignas(16) uint8_t structure[ROOM];
    for (size_t i = 0; i < OUTPUTS; i++) {
        struct tr_train_info info = TR_TRAIN_INFO_INIT;
        must_train(tr_trainer_info(trainer, &info));
        int64_t step = info.step;
        assert_int_equal(fill(&outputs[i], 0, structure), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "_INIT"));
        expect_untouched(&outputs[i], structure, sizeof(size_t));
        must_train(tr_trainer_info(trainer, &info));
        assert_int_equal(info.step, step); /* no step was lost */
    }
}

/* Settings of a version without `bind` and what may come behind it. */
static void older_settings_are_taken(void **state)
{
    (void)state;
    struct tr_train_settings older;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *other;
    memset(&older, FILLER, sizeof older);
    memcpy(&older, &settings, offsetof(struct tr_train_settings, parameters_on));
    older.size = offsetof(struct tr_train_settings, parameters_on);
    older.out = NULL;
    must_train(tr_trainer_create(&older, &other));
    must_train(tr_trainer_info(other, &info));
    assert_string_equal(info.name, "sizes");
    tr_trainer_destroy(&other);
}

/* ---- the job ---- */

static int set_up(void **state)
{
    static const char text[] = "name: sizes\n"
                               "data:\n"
                               "  train: {csv: {path: rows.csv, label_columns: 0}}\n"
                               "  test: {csv: {path: rows.csv, label_columns: 0}}\n"
                               "layers: [dense: 2]\n"
                               "optimizer: {rule: sgd, rate: 0.1}\n"
                               "train: {batch: 2, steps: 100, log_every: 0}\n";
    static const char rows[] = "0,1,2\n1,3,1\n0,2,2\n1,4,0\n";
    char path[SCRATCH_PATH];
    scratch_place_make(state);
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "rows.csv"), rows, strlen(rows)));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(model, scratch_place, "job.yaml"), text, strlen(text)));
    settings.model = model;
    settings.out = scratch_join(out, scratch_place, "run");
    settings.threads = 1;
    must_train(tr_trainer_create(&settings, &trainer));
    /* A run that was stopped has statistics, and leaves steps to others. */
    tr_trainer_stop(trainer);
    assert_int_equal(tr_trainer_run(trainer, NULL, NULL), TR_EINTERRUPTED);
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    predict.checkpoint = out;
    must_train(tr_predictor_create(&predict, &predictor));
    return 0;
}

static int tear_down(void **state)
{
    tr_predictor_destroy(&predictor);
    tr_trainer_destroy(&trainer);
    return scratch_place_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_programs_get_what_they_know),
        cmocka_unit_test(newer_programs_learn_where_the_facts_end),
        cmocka_unit_test(a_structure_without_a_size_is_refused),
        cmocka_unit_test(older_settings_are_taken),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
