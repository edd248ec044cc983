/* Choosing by name: what is found, what is read, and what is said about names that there are not. */
#include "base/options/registry.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct animal {
    TR_ENTRY;
    int legs;
};

struct options {
    int32_t age;
    char *owner;
};

static const struct tr_option table[] = {
    {"age", TR_OPTION_INT32, offsetof(struct options, age), "3", 0, 40, NULL, "in years"},
    {"owner", TR_OPTION_STRING, offsetof(struct options, owner), "", 0, 0, NULL, "who feeds it"},
};

static const struct animal horse = {
    .name = "horse", .help = "a runner", TR_ENTRY_OPTIONS(table, struct options), .legs = 4};
static const struct animal goose = {.name = "goose", .help = "a guard", .legs = 2};

static const struct tr_entry *const entries[] = {&horse.entry, &goose.entry, NULL};
static const struct tr_registry animals = {"animal", "`goose` or `horse: {age: 4}`", NULL, entries};
static const struct tr_registry animals_with_default = {"animal", "`goose`", "horse", entries};

static tr_config *parse(const char *text)
{
    tr_config *root;
    if (tr_config_parse(text, strlen(text), "a.yaml", &root) != TR_OK) fail_msg("%s", tr_error_message());
    return root;
}

static void entries_are_found_with_their_structures(void **state)
{
    (void)state;
    const struct tr_entry *entry;
    assert_int_equal(tr_registry_count(&animals), 2);
    assert_ptr_equal(tr_registry_find(&animals, "goose"), &goose);
    assert_null(tr_registry_find(&animals, "gooses"));
    assert_int_equal(tr_registry_get(&animals, "horse", &entry), TR_OK);
    assert_int_equal(((const struct animal *)entry)->legs, 4);
    assert_string_equal(entry->help, "a runner");
    assert_string_equal(horse.name, "horse");
}

static void names_that_are_not_there_are_refused_with_the_nearest(void **state)
{
    (void)state;
    const struct tr_entry *entry;
    assert_int_equal(tr_registry_get(&animals, "hosre", &entry), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(),
                        "animal \"hosre\" is none of horse, goose; did you mean \"horse\"?");
    assert_int_equal(tr_registry_get(&animals, "crocodile", &entry), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), "animal \"crocodile\" is none of horse, goose");
}

static void a_node_chooses_and_brings_options(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        int32_t age;
    } cases[] = {{"horse", "horse", 3},
                 {"horse: 7", "horse", 7},
                 {"horse: {age: 9, owner: me}", "horse", 9},
                 {"horse:", "horse", 3},
                 {"goose", "goose", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *root = parse(cases[i].text);
        const struct tr_entry *entry;
        void *options;
        int64_t live = tr_alloc_live();
        if (tr_registry_read(&animals, root, &entry, &options) != TR_OK)
            fail_msg("%s: %s", cases[i].text, tr_error_message());
        assert_string_equal(entry->name, cases[i].name);
        if (entry->option_count) assert_int_equal(((struct options *)options)->age, cases[i].age);
        tr_entry_release(entry, options);
        assert_int_equal(tr_alloc_live(), live);
        tr_config_destroy(&root);
    }
}

static void what_is_no_choice_is_refused_at_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"- hors", "a.yaml:1:3: [0]: animal \"hors\" is none of horse, goose; did you mean \"horse\"?"},
        {"- hors: {age: 1}",
         "a.yaml:1:3: [0]: animal \"hors\" is none of horse, goose; did you mean \"horse\"?"},
        {"- cart",
         "a.yaml:1:3: [0]: animal \"cart\" is none of horse, goose; write `goose` or `horse: {age: 4}`"},
        {"- {horse: 1, goose: 2}", "a.yaml:1:3: [0]: a mapping stands where a choice of animal is expected; "
                                   "write `goose` or `horse: {age: 4}`"},
        {"- [horse]", "a.yaml:1:3: [0]: a list stands where a choice of animal is expected; write `goose` or "
                      "`horse: {age: 4}`"},
        {"-", "a.yaml:1:2: [0]: nothing stands where a choice of animal is expected; write `goose` or "
              "`horse: {age: 4}`"},
        {"- horse: {age: 50}", "a.yaml:1:16: [0].horse.age: 50 is out of range; allowed: 0 .. 40 (in years)"},
        {"- goose: {age: 5}", "a.yaml:1:11: [0].goose.age: unknown key \"age\"; there are no options here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tr_config *root = parse(cases[i].text);
        const struct tr_entry *entry;
        void *options;
        int64_t live = tr_alloc_live();
        assert_int_equal(tr_registry_read(&animals, tr_config_at(root, 0), &entry, &options), TR_EINVAL);
        assert_string_equal(tr_error_message(), cases[i].message);
        assert_null(options);
        assert_int_equal(tr_alloc_live(), live);
        tr_config_destroy(&root);
    }
}

static void where_nothing_is_written_the_fallback_holds(void **state)
{
    (void)state;
    const struct tr_entry *entry;
    const tr_config *options;
    assert_int_equal(tr_registry_choose(&animals_with_default, NULL, &entry, &options), TR_OK);
    assert_ptr_equal(entry, &horse);
    tr_config *root = parse("[~]");
    assert_int_equal(tr_registry_choose(&animals_with_default, tr_config_at(root, 0), &entry, &options),
                     TR_OK);
    assert_ptr_equal(entry, &horse);
    tr_config_destroy(&root);
    assert_int_equal(tr_registry_choose(&animals, NULL, &entry, &options), TR_EINVAL);
    assert_string_equal(tr_error_message(), "no animal is given; write `goose` or `horse: {age: 4}`");
}

/* An option whose choices are the entries. */
static void an_option_takes_entries_as_choices(void **state)
{
    (void)state;
    struct stable {
        int32_t animal;
    } stable;
    static const struct tr_option options[] = {
        {.key = "animal",
         .type = TR_OPTION_CHOICE,
         .offset = offsetof(struct stable, animal),
         .fallback = "goose",
         .registry = &animals,
         .help = "that lives here"},
    };
    char *text;
    assert_int_equal(tr_options_defaults(options, 1, &stable), TR_OK);
    assert_int_equal(stable.animal, 1);
    assert_int_equal(tr_options_dump(options, 1, &stable, &text), TR_OK);
    assert_string_equal(text, "{\"animal\": \"goose\"}");
    tr_free(text);
    assert_int_equal(tr_option_set(&options[0], "horse", "--animal", &stable), TR_OK);
    assert_int_equal(stable.animal, 0);
    assert_int_equal(tr_option_set(&options[0], "gose", "--animal", &stable), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "--animal: \"gose\" is none of horse, goose; did you mean \"goose\"?");
    assert_int_equal(tr_options_markdown("stable", options, 1, &text), TR_OK);
    assert_non_null(
        strstr(text, "`horse`, `goose` | `goose` | that lives here. `horse`: a runner; `goose`: a guard"));
    tr_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_found_with_their_structures),
        cmocka_unit_test(names_that_are_not_there_are_refused_with_the_nearest),
        cmocka_unit_test(a_node_chooses_and_brings_options),
        cmocka_unit_test(what_is_no_choice_is_refused_at_its_place),
        cmocka_unit_test(where_nothing_is_written_the_fallback_holds),
        cmocka_unit_test(an_option_takes_entries_as_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
