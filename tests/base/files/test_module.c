/* Where modules are looked for, and which are refused: a program that loads one, and a library that does for
 * whoever loads it, are copied to places, and used from there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "scratch.h"

/* A path below the scratch directory; makes the directories on the way to it. */
static const char *below(char out[SCRATCH_PATH], const char *name)
{
    scratch_join(out, scratch_place, name);
    for (char *slash = out + strlen(scratch_place) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(out, 0755);
        *slash = '/';
    }
    return out;
}

static void copy(const char *from, const char *to, mode_t mode)
{
    struct tr_file_content content;
    assert_int_equal(tr_file_read(from, 1 << 28, &content), TR_OK);
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(to, mode), 0);
    tr_file_content_free(&content);
}

/* What the program says; `called` is its argv[0], `argument` may be NULL, and it is run in `directory`, if
 * that is given. */
static const char *said(const char *program, const char *called, const char *argument, const char *directory)
{
    static char text[8192];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        if (directory && chdir(directory) != 0) _exit(98);
        execl(program, called, argument, NULL);
        _exit(99);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t count; (count = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)count;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
    return text;
}

static void expect(const char *part, const char *program, const char *called)
{
    const char *text = said(program, called, NULL, NULL);
    if (!strstr(text, part)) fail_msg("expected \"%s\", got \"%s\"", part, text);
}

/* The same of a program of others that loads the library by the name `library`, from `directory`. */
static void expect_library(const char *part, const char *library, const char *directory)
{
    const char *text = said(TEST_MODULE_CALLER, "x", library, directory);
    if (!strstr(text, part)) fail_msg("expected \"%s\", got \"%s\"", part, text);
}

static void the_build_tree_has_modules(void **state)
{
    (void)state;
    expect("loaded", TEST_MODULE_USER, "x");
}

static void an_installation_may_be_moved(void **state)
{
    (void)state;
    char program[SCRATCH_PATH], module[SCRATCH_PATH];
    copy(TEST_MODULE_USER, below(program, "prefix/bin/user"), 0755);
    expect("was not found in " TEST_MODULE_DIR "; build it, then build and install again", program, "x");
    copy(TEST_MODULE_SAMPLE, below(module, "prefix/bin/" TEST_MODULE_BELOW "/trireme-sample.so"), 0644);
    expect("loaded", program, "x");
}

/* What lies beside a program that was copied somewhere, or where its caller says that it lies, is not its
 * own. */
static void others_places_are_not_looked_at(void **state)
{
    (void)state;
    static const char *const planted[] = {"away/bin/trireme-sample.so",
                                          "away/modules/trireme-sample.so",
                                          "away/bin/modules/trireme-sample.so",
                                          "away/bin/trireme/trireme-sample.so",
                                          "else/modules/trireme-sample.so",
                                          "else/bin/trireme/trireme-sample.so",
                                          "else/bin/" TEST_MODULE_BELOW "/trireme-sample.so"};
    char program[SCRATCH_PATH], module[SCRATCH_PATH], called[SCRATCH_PATH];
    copy(TEST_MODULE_USER, below(program, "away/bin/user"), 0755);
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++)
        copy(TEST_MODULE_SAMPLE, below(module, planted[i]), 0644);
    expect("was not found", program, below(called, "else/bin/user"));
}

/* The library counts, whichever program has loaded it, by whatever name. */
static void a_library_finds_what_lies_beside_it(void **state)
{
    (void)state;
    char library[SCRATCH_PATH], module[SCRATCH_PATH], folder[SCRATCH_PATH];
    expect_library("loaded", TEST_MODULE_LIBRARY, NULL); /* in the build tree */
    copy(TEST_MODULE_LIBRARY, below(library, "python/package/lib/libuser.so"), 0755);
    copy(TEST_MODULE_SAMPLE, below(module, "python/package/lib/trireme-sample.so"), 0644);
    copy(TEST_MODULE_SAMPLE, below(module, "python/package/lib/modules/trireme-sample.so"), 0644);
    expect_library("was not found in " TEST_MODULE_DIR, library, NULL);
    copy(TEST_MODULE_SAMPLE, below(module, "python/package/lib/trireme/trireme-sample.so"), 0644);
    expect_library("loaded", library, NULL);
    scratch_join(folder, scratch_place, "python/package");
    expect_library("loaded", "lib/../lib/libuser.so", folder);
    char link[SCRATCH_PATH];
    assert_int_equal(symlink(library, below(link, "elsewhere/libuser.so")), 0);
    expect_library("loaded", link, NULL);
    assert_int_equal(chmod(module, 0666), 0);
    expect_library("can be written by everybody", library, NULL);
}

static void what_others_can_write_is_refused(void **state)
{
    (void)state;
    static const char directory[] = "writable/bin/" TEST_MODULE_BELOW;
    char program[SCRATCH_PATH], module[SCRATCH_PATH], holder[SCRATCH_PATH], name[256];
    snprintf(name, sizeof name, "%s/trireme-sample.so", directory);
    copy(TEST_MODULE_USER, below(program, "writable/bin/user"), 0755);
    copy(TEST_MODULE_SAMPLE, below(module, name), 0646);
    expect("can be written by everybody; chmod o-w it; build it", program, "x");
    assert_int_equal(chmod(module, 0644), 0);
    expect("loaded", program, "x");
    assert_int_equal(chmod(below(holder, directory), 0757), 0);
    expect("can be written by everybody", program, "x");
    assert_int_equal(chmod(holder, 01757), 0); /* as /tmp */
    expect("loaded", program, "x");
    if (geteuid() != 0) return;
    assert_int_equal(chown(module, 12345, 0), 0);
    expect("belongs to user 12345", program, "x");
    assert_int_equal(chown(program, 12345, 0), 0); /* who could do what he likes anyway */
    expect("loaded", program, "x");
    assert_int_equal(chown(program, 0, 0), 0);
    assert_int_equal(chown(module, 0, 12345), 0);
    assert_int_equal(chmod(module, 0664), 0);
    expect("can be written by its group", program, "x");
}

/* A link leads to a file, which must be right itself. */
static void links_are_followed_to_their_end(void **state)
{
    (void)state;
    char program[SCRATCH_PATH], module[SCRATCH_PATH], target[SCRATCH_PATH];
    copy(TEST_MODULE_USER, below(program, "linked/bin/user"), 0755);
    copy(TEST_MODULE_SAMPLE, below(target, "open/target.so"), 0666);
    assert_int_equal(symlink(target, below(module, "linked/bin/" TEST_MODULE_BELOW "/trireme-sample.so")), 0);
    expect("open/target.so can be written by everybody", program, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_build_tree_has_modules),
        cmocka_unit_test(an_installation_may_be_moved),
        cmocka_unit_test(others_places_are_not_looked_at),
        cmocka_unit_test(a_library_finds_what_lies_beside_it),
        cmocka_unit_test(what_others_can_write_is_refused),
        cmocka_unit_test(links_are_followed_to_their_end),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
