/* Which files are trusted: those that nobody else than root, this user and the owner of the program can
 * write. */
#include "base/files/trust.h"

#include "base/fail.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static const char *program, *module;

static void expect(const char *fault)
{
    const tr_status status = tr_trust_check(module, program);
    if (!fault && status != TR_OK) fail_msg("%s", tr_error_message());
    if (!fault) return;
    assert_int_equal(status, TR_EUNSUPPORTED);
    if (!strstr(tr_error_message(), fault)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), fault);
}

static int make_files(void **state)
{
    static char place[2][SCRATCH_PATH];
    scratch_place_make(state);
    chmod(scratch_place, 0755);
    program = scratch_join(place[0], scratch_place, "program");
    module = scratch_join(place[1], scratch_place, "module");
    scratch_write_text("program", "x");
    scratch_write_text("module", "x");
    chmod(module, 0644);
    return 0;
}

static void what_is_not_there_is_not_trusted(void **state)
{
    (void)state;
    static char path[PATH_MAX + 2];
    expect(NULL);
    module = scratch_in("missing");
    expect("missing: No such file or directory");
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    module = path;
    expect("xxx...: the path is too long");
    path[PATH_MAX] = '\0';
    expect("xxx...: the path is too long");
    path[PATH_MAX - 1] = '\0';
    assert_int_equal(tr_trust_check(module, program), TR_EUNSUPPORTED);
    assert_null(strstr(tr_error_message(), "...: the path"));
}

/* The directories on the way count, up to that of the program, which whoever can write there could replace.
 */
static void directories_above_the_module_count(void **state)
{
    (void)state;
    assert_int_equal(tr_file_make_directories(NULL, scratch_in("open/inner")), TR_OK);
    scratch_write_text("open/inner/module", "x");
    module = scratch_in("open/inner/module");
    assert_int_equal(chmod(module, 0644) + chmod(scratch_in("open"), 0777), 0);
    expect("open can be written by everybody; chmod o-w it");
    assert_int_equal(chmod(scratch_in("open"), 01777), 0);
    expect(NULL);
    assert_int_equal(chmod(scratch_in("open"), 0755) + chmod(scratch_place, 0777), 0);
    expect(NULL);
    program = "";
    expect("can be written by everybody; chmod o-w it");
    program = scratch_in("missing");
    expect(NULL);
    /* A program beside it, whose path only begins alike, lies elsewhere. */
    program = scratch_in("open/innermost");
    assert_int_equal(chmod(scratch_in("open/inner"), 0757), 0);
    expect("open/inner can be written by everybody; chmod o-w it");
}

static void owners_are_known(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    assert_int_equal(chown(module, 12345, 0), 0);
    expect("module belongs to user 12345, who is neither root nor the owner of the program");
    assert_int_equal(chown(program, 12345, 0), 0);
    expect(NULL);
    program = scratch_in("missing");
    expect("belongs to user 12345");
}

/* A group may write that has the name of the owner, and no other members. */
static void a_group_of_the_owner_alone_may_write(void **state)
{
    (void)state;
    const struct passwd *user = getpwuid(0);
    const struct group *own = getgrgid(0);
    if (geteuid() != 0 || !user || !own || strcmp(user->pw_name, own->gr_name) != 0 ||
        (own->gr_mem && *own->gr_mem))
        skip();
    assert_int_equal(chown(module, 0, 0) + chmod(module, 0664), 0);
    expect(NULL);
    /* A user without a name, a group without one, and a group of another name. */
    assert_int_equal(chown(program, 54321, 0) + chown(module, 54321, 0) + chmod(module, 0664), 0);
    expect("module can be written by its group; chmod g-w it");
    assert_int_equal(chown(module, 0, 54321) + chmod(module, 0664), 0);
    expect("module can be written by its group; chmod g-w it");
    if (!getgrgid(1)) return;
    assert_int_equal(chown(module, 0, 1) + chmod(module, 0664), 0);
    expect("module can be written by its group; chmod g-w it");
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, make_files, scratch_place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(what_is_not_there_is_not_trusted),
        WITH_FILES(directories_above_the_module_count),
        WITH_FILES(owners_are_known),
        WITH_FILES(a_group_of_the_owner_alone_may_write),
    };
    return cmocka_run_group_tests_name("base.trust", tests, NULL, NULL);
}
