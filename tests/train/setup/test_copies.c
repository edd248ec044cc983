/* A checkpoint that only the root can reach: the other ranks, which are processes in directories of their own
 * here, get copies of its files, and all open the same. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "checkpoint/sample.h"
#include "refuse.h"
#include "train/setup/resume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* More than two of the pieces in which files travel, and no multiple of them. */
#define FLOATS ((5 << 20) + 3)

static float *values;

/* Where a rank works, and what goes wrong on it. */
struct place {
    const char *directory; /* below the scratch directory */
    int64_t refuses;       /* this allocation; -1: none */
    bool *refused;         /* shared */
};

static void say(struct rank *rank, tr_status status)
{
    rank->outcome = (struct outcome){.status = status};
    if (status == TR_OK) return;
    snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    tr_comm_abort(rank->comm, rank->outcome.message);
}

/* Opens the checkpoint as every rank does, and looks at all of it. */
static void *take(void *user)
{
    struct rank *rank = user;
    const struct place *place = rank->user;
    tr_checkpoint *checkpoint = NULL;
    tr_ticket *ticket = NULL;
    must_train(tr_comm_barrier(rank->comm, &ticket)); /* none fails before all are there */
    must_train(tr_comm_wait(rank->comm, &ticket));
    assert_int_equal(chdir(scratch_in(place->directory)), 0);
    if (place->refuses >= 0) refuse_begin(place->refuses);
    tr_status status = tr_train_resume(rank->comm, rank->settings, &checkpoint);
    if (place->refuses >= 0) *place->refused = !refuse_end();
    say(rank, status);
    if (status != TR_OK) {
        assert_null(checkpoint);
    } else if (!checkpoint) {
        rank->outcome.step = -1;
    } else if (tr_checkpoint_facts(checkpoint)->step != 77) {
        rank->outcome.step = sample_check(&checkpoint);
    } else {
        float *found = tr_alloc(FLOATS, sizeof *found);
        const struct tr_stored_tensor tensor = {"large", TR_DTYPE_F32, 1, {FLOATS}, found};
        assert_non_null(found);
        assert_int_equal(tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, &tensor, 1), TR_OK);
        assert_int_equal(memcmp(found, values, FLOATS * sizeof *found), 0);
        rank->outcome.step = 77;
        tr_free(found);
        tr_checkpoint_close(&checkpoint);
    }
    tr_comm_destroy(&rank->comm);
    rank->outcome.shared = (int)tr_alloc_live();
    return NULL;
}

/* Blocks of memory that a rank has at its end where all went well. */
static int live_at_end;

static void take_all(const struct tr_train_settings *settings, struct place *places, int size,
                     struct rank *ranks)
{
    for (int r = 0; r < size; r++) ranks[r].user = &places[r];
    run_ranks_by(take, settings, size, 0, ranks);
}

static void assert_all_have(const struct rank *ranks, int size, int64_t step)
{
    for (int r = 0; r < size; r++) {
        if (ranks[r].outcome.status != TR_OK) fail_msg("rank %d: %s", r, ranks[r].outcome.message);
        assert_int_equal(ranks[r].outcome.step, step);
    }
}

#define HERE(name)                                                                                           \
    {                                                                                                        \
        name, -1, NULL                                                                                       \
    }
#define DIRECTORIES 3

static int make(void **state)
{
    static const char *const directories[DIRECTORIES] = {"root", "other", "third"};
    scratch_place_make(state);
    for (int i = 0; i < DIRECTORIES; i++)
        must_train(tr_file_make_directory(NULL, scratch_in(directories[i])));
    values = tr_alloc(FLOATS, sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < FLOATS; i++) values[i] = (float)(i % 100003);
    must_train(sample_save(NULL, scratch_in("root/run"), 2, 4));
    /* Another checkpoint of the same name, and half of the right one, are not it. */
    must_train(sample_save(NULL, scratch_in("other/run"), 2, 3));
    assert_int_equal(
        rename(scratch_in("other/run/checkpoint-00000003"), scratch_in("other/run/checkpoint-00000004")), 0);
    ranks_become(RANKS_ARE_PROCESSES);
    return 0;
}

static int clean(void **state)
{
    tr_free(values);
    return scratch_place_remove(state);
}

static void ranks_get_copies(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct rank ranks[RANKS] = {{0}};
    settings.resume = "run";
    struct place mixed[] = {HERE("root"), HERE("third"), HERE("root"), HERE("other")};
    take_all(&settings, mixed, 4, ranks);
    assert_all_have(ranks, 4, 4);
    live_at_end = ranks[0].outcome.shared;
    for (int r = 1; r < 4; r++) assert_int_equal(ranks[r].outcome.shared, live_at_end);
    struct place same[] = {HERE("root"), HERE("root")};
    take_all(&settings, same, 2, ranks);
    assert_all_have(ranks, 2, 4);
    assert_int_equal(sample_count(scratch_in("third"), ""), 0); /* copies are elsewhere, and go */
    struct place none[] = {HERE("third"), HERE("root"), HERE("other")};
    take_all(&settings, none, 3, ranks);
    assert_int_equal(ranks[0].outcome.status, TR_ENOTFOUND);
    for (int r = 1; r < 3; r++) assert_int_not_equal(ranks[r].outcome.status, TR_OK);
    settings.resume = NULL;
    take_all(&settings, none, 3, ranks);
    assert_all_have(ranks, 3, -1);
}

/* The run that a job continues comes first, then a state in memory, then the checkpoint to resume. */
static void the_root_chooses(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct rank ranks[RANKS] = {{0}};
    struct place places[] = {HERE("root"), HERE("third")};
    must_train(sample_save(NULL, scratch_in("root/second"), 2, 9));
    settings.resume = "run";
    settings.out = "second";
    take_all(&settings, places, 2, ranks);
    assert_all_have(ranks, 2, 4);
    settings.continues = true;
    take_all(&settings, places, 2, ranks);
    assert_all_have(ranks, 2, 9);
    settings.out = "not there yet";
    take_all(&settings, places, 2, ranks);
    assert_all_have(ranks, 2, 4);
}

static void large_files_travel_in_pieces(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct rank ranks[RANKS] = {{0}};
    const struct tr_stored_tensor tensor = {"large", TR_DTYPE_F32, 1, {FLOATS}, values};
    const struct tr_checkpoint_content content = {
        .facts = {.step = 77, .microbatches = 1, .model_digest = "", .data_digest = "", .parameter_hash = ""},
        .group = {[TR_CHECKPOINT_PARAMETERS] = {&tensor, 1, NULL}},
    };
    must_train(tr_checkpoint_save_at(scratch_in("root/large"), &content));
    settings.resume = "large";
    struct place places[] = {HERE("root"), HERE("third"), HERE("root")};
    take_all(&settings, places, 3, ranks);
    assert_all_have(ranks, 3, 77);
}

struct gathered {
    char bytes[1 << 16];
    size_t size;
};

static tr_status gather(void *user, const void *data, size_t size)
{
    struct gathered *gathered = user;
    assert_true(gathered->size + size <= sizeof gathered->bytes);
    memcpy(gathered->bytes + gathered->size, data, size);
    gathered->size += size;
    return TR_OK;
}

static void states_in_memory_travel(void **state)
{
    (void)state;
    static struct gathered gathered;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct rank ranks[RANKS] = {{0}};
    struct place places[] = {HERE("third"), HERE("other"), HERE("third")};
    must_train(sample_pack(&(struct tr_stored_sink){gather, &gathered}, 6));
    settings.resume = "run";
    settings.state.bytes = gathered.bytes;
    settings.state.size = gathered.size;
    take_all(&settings, places, 3, ranks);
    assert_all_have(ranks, 3, 6);
}

/* Other files of the directory come along, hidden ones do not; what cannot be read stops all. */
static void strange_files_do_no_harm(void **state)
{
    (void)state;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct rank ranks[RANKS] = {{0}};
    struct place places[] = {HERE("root"), HERE("third")};
    must_train(sample_save(NULL, scratch_in("root/strange"), 2, 5));
    scratch_write_text("root/strange/checkpoint-00000005/.hidden", "x");
    scratch_write_text("root/strange/checkpoint-00000005/notes", "");
    settings.resume = "strange";
    take_all(&settings, places, 2, ranks);
    assert_all_have(ranks, 2, 5);
    must_train(tr_file_make_directory(NULL, scratch_in("root/strange/checkpoint-00000005/below")));
    take_all(&settings, places, 2, ranks);
    for (int r = 0; r < 2; r++) assert_int_not_equal(ranks[r].outcome.status, TR_OK);
    assert_non_null(strstr(ranks[0].outcome.message, "below"));
}

static void paths_have_a_limit(void **state)
{
    (void)state;
    static char path[4200];
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct rank ranks[RANKS] = {{0}};
    struct place places[] = {HERE("root"), HERE("third")};
    memset(path, '/', sizeof path - 1);
    memcpy(path, "run", 3);
    settings.resume = path; /* as a path for the system it is too long as well */
    take_all(&settings, places, 2, ranks);
    for (int r = 0; r < 2; r++) assert_int_not_equal(ranks[r].outcome.status, TR_OK);
}

/* Whichever allocation a rank is refused, it says so, and no rank goes on. */
static void every_allocation_of_a_copy_fails(void **state)
{
    (void)state;
    static struct gathered gathered;
    bool *refused = ranks_shared(sizeof *refused);
    must_train(sample_pack(&(struct tr_stored_sink){gather, &gathered}, 6));
    static const int ranks_of[] = {0, 1, 1};
    for (int variant = 0; variant < 3; variant++) {
        struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
        const int rank = ranks_of[variant];
        settings.resume = "run";
        if (variant == 2) {
            settings.state.bytes = gathered.bytes;
            settings.state.size = gathered.size;
        }
        bool done = false, other_failed = false;
        for (int64_t at = 0; !done; at++) {
            struct rank ranks[RANKS] = {{0}};
            struct place places[] = {HERE("root"), HERE("third")};
            places[rank].refuses = at;
            places[rank].refused = refused;
            *refused = false;
            take_all(&settings, places, 2, ranks);
            done = !*refused;
            const int64_t step = variant < 2 ? 4 : 6;
            /* A manifest that cannot be compared is one that differs: the rank gets a copy. */
            if (done || ranks[rank].outcome.status == TR_OK) {
                assert_all_have(ranks, 2, step);
                continue;
            }
            if (ranks[rank].outcome.status != TR_ENOMEM)
                fail_msg("allocation %lld of rank %d: %s", (long long)at, rank, ranks[rank].outcome.message);
            assert_int_equal(ranks[rank].outcome.shared, live_at_end);
            other_failed |= ranks[1 - rank].outcome.status != TR_OK;
            if (ranks[1 - rank].outcome.status == TR_OK) assert_int_equal(ranks[1 - rank].outcome.step, step);
        }
        if (rank == 0) assert_true(other_failed); /* the root may be done when another fails */
    }
    ranks_unshare(refused, sizeof *refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_get_copies),
        cmocka_unit_test(the_root_chooses),
        cmocka_unit_test(large_files_travel_in_pieces),
        cmocka_unit_test(states_in_memory_travel),
        cmocka_unit_test(strange_files_do_no_harm),
        cmocka_unit_test(paths_have_a_limit),
        cmocka_unit_test(every_allocation_of_a_copy_fails),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
