/* Processes that a launcher of MPI started without --transport mpi train each by itself, which the first one
 * says; and transports that there are not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/session.h"

static void the_first_of_several_warns(void **state)
{
    static const struct {
        const char *environment[3], *warning; /* part of it, or NULL */
    } cases[] = {
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"},
         "this is one of 2 processes that mpirun or srun"},
        {{"PMIX_RANK=0", "SLURM_STEP_NUM_TASKS=3"}, "this is one of 3 processes that mpirun or srun started"},
        {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"}, NULL},
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1"}, NULL},
        {{"OMPI_COMM_WORLD_RANK=0"}, NULL},
        {{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=3"}, NULL}, /* a script of a batch, which is no rank */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        int code = run_with(&session, (struct setup){.environment = cases[i].environment}, "train",
                            "tiny.yaml", "--steps", "1", "--overwrite", "--quiet", NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        const char *told = strstr(session.text[1], "each of which trains alone; with --transport mpi they");
        if ((told != NULL) != (cases[i].warning != NULL)) session_show(&session);
        assert_int_equal(told != NULL, cases[i].warning != NULL);
        if (cases[i].warning) assert_non_null(strstr(session.text[1], cases[i].warning));
        session_release(&session);
    }
}

static void other_transports_are_refused(void **state)
{
    char name[400];
    struct session session;
    (void)state;
    int code = run(&session, "train", "tiny.yaml", "--overwrite", "--transport", "pigeons", NULL);
    expect_error(2, "pigeons", &session, code);
    session_release(&session);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    code = run(&session, "train", "tiny.yaml", "--overwrite", "--transport", name, NULL);
    expect_error(2, "--transport: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" is too long", &session,
                 code);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_several_warns),
        cmocka_unit_test(other_transports_are_refused),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
