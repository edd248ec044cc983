/* The folder of a build, from the path of a program in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/files/build_folder.h"
#include "scratch.h"

/* A program that lies in a folder below that of a build. */
static void build_folders_are_recognized(void **state)
{
    char folder[PATH_MAX], program[PATH_MAX], longest[PATH_MAX + 8];
    (void)state;
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("built")), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, scratch_in("built/bin")), TR_OK);
    snprintf(program, sizeof program, "%s/built/bin/program", scratch_place);
    assert_false(tr_build_folder(program, folder));
    scratch_write_text("built/CMakeCache.txt", "");
    assert_true(tr_build_folder(program, folder));
    assert_string_equal(folder, scratch_in("built"));
    snprintf(program, sizeof program, "%s/built/program", scratch_place);
    assert_false(tr_build_folder(program, folder));
    assert_false(tr_build_folder("program", folder));
    assert_false(tr_build_folder("", folder));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    longest[0] = longest[10] = longest[20] = '/';
    assert_false(tr_build_folder(longest, folder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build_folders_are_recognized),
    };
    return cmocka_run_group_tests_name("base.build_folder", tests, scratch_place_make, scratch_place_remove);
}
