/* Every target over its seeds and damaged copies of them. The damage is the same in every run. And whether
 * every data format has a target.
 *
 *     test_fuzz_corpus [rounds of damage per target [one target]]
 */
#include "fuzz/fuzz.h"

#include "base/options/registry.h"
#include "data/source.h"
#include "mutate.h"
#include "sanitized.h"

#include <dirent.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define SEEDS_MOST 200
#define SEED_BYTES (64 << 10)

static uint32_t rounds = SANITIZED ? 400 : 2000;

struct seed {
    char *data;
    size_t size;
};

static void read_seed(const char *path, struct seed *seed)
{
    FILE *file = fopen(path, "rb");
    seed->data = malloc(SEED_BYTES);
    assert_non_null(file);
    assert_non_null(seed->data);
    seed->size = fread(seed->data, 1, SEED_BYTES, file);
    fclose(file);
    assert_true(seed->size < SEED_BYTES);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads all seeds of a target, in the order of their names. */
static int read_seeds(const struct fuzz_target *target, struct seed *seeds)
{
    char directory[256], path[1024];
    struct dirent **entries;
    int found = 0;
    snprintf(directory, sizeof directory, TRIREME_SOURCE_DIR "/tests/fuzz/corpus/%s", target->name);
    int count = scandir(directory, &entries, NULL, by_name);
    if (count < 0) fail_msg("%s: a target needs a seed", directory);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            assert_true(found < SEEDS_MOST);
            snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
            read_seed(path, &seeds[found++]);
        }
        free(entries[i]);
    }
    free(entries);
    return found;
}

/* A copy of exactly the input's size, so that a read beyond its end is seen. */
static void run(const struct fuzz_target *target, const char *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    target->run(copy, size);
    free(copy);
}

static void any_input_is_borne(void **state)
{
    const struct fuzz_target *target = *state;
    struct seed seeds[SEEDS_MOST];
    int count = read_seeds(target, seeds);
    char *damaged = malloc(SEED_BYTES + 64);
    assert_non_null(damaged);
    assert_true(count > 0);
    run(target, "", 0);
    for (int i = 0; i < count; i++) run(target, seeds[i].data, seeds[i].size);
    for (uint32_t round = 0; round < rounds; round++) {
        const struct seed *seed = &seeds[round % (uint32_t)count];
        run(target, damaged, mutate_bytes(round, seed->data, seed->size, damaged));
    }
    for (int i = 0; i < count; i++) free(seeds[i].data);
    free(damaged);
}

/* Formats whose test in tests/data has another name. NULL: it is elsewhere, tests/train/test_memory_data.c.
 */
static const struct {
    const char *format, *test;
} exceptions[] = {{"folder", "images"}, {"memory", NULL}};

static const char *test_of(const char *format)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++)
        if (strcmp(exceptions[i].format, format) == 0) return exceptions[i].test;
    return format;
}

/* Every data format has a target of its name, which any_input_is_borne() asks for seeds, and a test. */
static void every_format_is_tested(void **state)
{
    (void)state;
    for (const struct tr_entry *const *entry = tr_source_formats.entries; *entry; entry++) {
        const char *format = (*entry)->name, *test = test_of(format);
        char path[512];
        glob_t found;
        if (!fuzz_target_called(format))
            fail_msg("the data format \"%s\" has no fuzz target: add one to tests/fuzz/fuzz.h and "
                     "targets_data.c, and seeds in tests/fuzz/corpus/%s",
                     format, format);
        if (!test) continue;
        snprintf(path, sizeof path, TRIREME_SOURCE_DIR "/tests/data/*/test_%s.c", test);
        if (glob(path, 0, NULL, &found) != 0)
            fail_msg("the data format \"%s\" has no test: add tests/data/formats/test_%s.c", format, test);
        globfree(&found);
    }
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++)
        assert_non_null(tr_registry_find(&tr_source_formats, exceptions[i].format));
}

int main(int argc, char **argv)
{
    enum { MOST = 64 };
    struct CMUnitTest tests[MOST];
    size_t count = 0;
    if (argc > 1) rounds = (uint32_t)strtoul(argv[1], NULL, 10);
    for (const struct fuzz_target *target = fuzz_targets; target->name; target++) {
        if (argc > 2 && strcmp(argv[2], target->name) != 0) continue;
        if (count == MOST - 1) abort(); /* more targets than room */
        tests[count++] = (struct CMUnitTest){target->name, any_input_is_borne, NULL, NULL, (void *)target};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(every_format_is_tested);
    return _cmocka_run_group_tests("fuzz.corpus", tests, count, NULL, NULL);
}
