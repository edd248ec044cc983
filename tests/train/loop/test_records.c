/* What stays of events: checkpoints under the names and hashes that were told, and the journal. */
#include "train/loop/told_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

static int make(void **state)
{
    scratch_place_make(state);
    told_job_make(scratch_place);
    return 0;
}

/* ---- checkpoints ---- */

struct kept {
    tr_trainer *trainer;
    int64_t step[8];
    char hash[65], path[SCRATCH_PATH];
    int count;
};

static int keep(void *user, const struct tr_train_event *event)
{
    struct kept *kept = user;
    char own[65];
    if (event->kind != TR_EVENT_CHECKPOINT) return 0;
    must_train(tr_trainer_hash(kept->trainer, own));
    assert_string_equal(event->hash, own);
    assert_true(tr_file_is_directory(event->name));
    kept->step[kept->count++] = event->step;
    snprintf(kept->hash, sizeof kept->hash, "%s", event->hash);
    snprintf(kept->path, sizeof kept->path, "%s", event->name);
    return 0;
}

static void checkpoints_are_told_with_their_hash(void **state)
{
    (void)state;
    struct job job;
    struct kept kept = {NULL, {0}, "", "", 0};
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_predictor *predictor;
    char out[SCRATCH_PATH], own[65], *path;
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "train.checkpoint_every=3");
    job.settings.out = scratch_join(out, scratch_place, "kept");
    tr_trainer *trainer = kept.trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, keep, &kept));
    must_train(tr_trainer_hash(trainer, own));
    assert_int_equal(kept.count, 3);
    assert_true(kept.step[0] == 3 && kept.step[1] == 6 && kept.step[2] == 8);
    assert_string_equal(kept.hash, own);
    /* Saved again it is the same one. */
    must_train(tr_trainer_save(trainer, &path));
    assert_string_equal(path, kept.path);
    tr_text_free(path);
    tr_trainer_destroy(&trainer);
    settings.checkpoint = out;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    assert_string_equal(info.hash, own);
    assert_int_equal(info.step, 8);
    assert_string_equal(info.checkpoint, kept.path);
    tr_predictor_destroy(&predictor);
}

/* The lines of its journal with this event; a reference that the caller drops. */
static json_t *lines_of(const char *directory, const char *event)
{
    char path[SCRATCH_PATH], line[8192];
    json_t *lines = json_array();
    FILE *file = fopen(scratch_join(path, directory, "journal.jsonl"), "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        if (strcmp(json_string_value(json_object_get(object, "event")), event) == 0)
            json_array_append(lines, object);
        json_decref(object);
    }
    fclose(file);
    return lines;
}

static void the_journal_has_the_figures_of_events(void **state)
{
    (void)state;
    struct job job;
    struct heard heard = {.steps = 0};
    char out[SCRATCH_PATH];
    told_job_begin(&job, "tiny.yaml");
    job.settings.out = scratch_join(out, scratch_place, "journal");
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, hear, &heard));
    tr_trainer_destroy(&trainer);
    json_t *lines = lines_of(out, "step");
    assert_int_equal(json_array_size(lines), heard.steps);
    for (int i = 0; i < heard.steps; i++) {
        const json_t *line = json_array_get(lines, (size_t)i);
        const struct tr_train_event *event = &heard.step[i];
        const struct {
            const char *key;
            double value;
        } members[] = {{"step", (double)event->step},
                       {"steps", 8},
                       {"epoch", (double)event->step / 3.0},
                       {"loss", event->loss},
                       {"rate", 0.01},
                       {"examples", event->step % 3 == 0 ? 1 : 2},
                       {"seconds", event->seconds},
                       {"examples_per_second", event->examples_per_second}};
        for (size_t k = 0; k < sizeof members / sizeof members[0]; k++) {
            const json_t *member = json_object_get(line, members[k].key);
            if (!json_is_number(member)) fail_msg("line %d has no %s", i, members[k].key);
            near(json_number_value(member), members[k].value);
        }
        assert_null(json_object_get(line, "accuracy"));
        assert_null(json_object_get(line, "perplexity"));
        assert_null(json_object_get(line, "gradient_norm"));
        assert_null(json_object_get(line, "tokens_per_second"));
    }
    json_decref(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_told_with_their_hash),
        cmocka_unit_test(the_journal_has_the_figures_of_events),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
