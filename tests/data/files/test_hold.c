/* Bytes of a file as locks between processes: one has it, others wait, and not for ever. */
#include "data/files/hold.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_lock(void)
{
    const int descriptor = open(test_path("lock"), O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    return descriptor;
}

/* Locks belong to what was opened, so that two descriptors of a process are as good as two processes. */
static void one_has_a_byte(void **unused)
{
    (void)unused;
    const int first = open_lock(), second = open_lock();
    assert_true(tr_hold_try(first, 5));
    assert_true(tr_hold_try(first, 5)); /* it has it already */
    assert_false(tr_hold_try(second, 5));
    assert_true(tr_hold_try(second, 4));
    assert_true(tr_hold_try(second, 6));
    assert_true(tr_hold_try(second, (int64_t)1 << 59));
    assert_false(tr_hold_take(second, 5, NULL, 0));
    assert_false(tr_hold_take(second, 5, "waits", 0.01));
    tr_hold_release(first, 4); /* which it has not */
    assert_false(tr_hold_try(second, 5));
    tr_hold_release(first, 5);
    assert_true(tr_hold_take(second, 5, NULL, 0));
    assert_false(tr_hold_try(first, 5));
    close(second); /* gives all back */
    assert_true(tr_hold_try(first, 5));
    assert_true(tr_hold_try(first, 6));
    close(first);
}

/* Where there are no locks everybody goes on. */
static void without_locks_all_go_on(void **unused)
{
    (void)unused;
    assert_true(tr_hold_try(-1, 0));
    assert_true(tr_hold_take(-1, 0, NULL, 0));
    tr_hold_release(-1, 0);
}

/* One that has patience gets it when the other one ends. */
static void patience_is_rewarded(void **unused)
{
    int ready[2];
    char byte;
    (void)unused;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int descriptor = open(test_path("lock"), O_RDWR | O_CLOEXEC);
        if (!tr_hold_try(descriptor, 3) || write(ready[1], "x", 1) != 1) _exit(1);
        usleep(50000);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    const int descriptor = open_lock();
    assert_true(tr_hold_take(descriptor, 3, NULL, 300));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(descriptor);
    close(ready[0]);
    close(ready[1]);
}

static int make_lock(void **unused)
{
    (void)unused;
    write_text("lock", "");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_has_a_byte),
        cmocka_unit_test(without_locks_all_go_on),
        cmocka_unit_test(patience_is_rewarded),
    };
    return cmocka_run_group_tests(tests, make_lock, NULL);
}
