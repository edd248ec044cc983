/* Checkpoints whose files change after they were opened and found good: no command takes a number from them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/program/exit_codes.h"
#include "cli/session.h"

#define LOG "changed.log"

static int make_run(void **state)
{
    if (place_make(state) != 0) return -1;
    expect_exit(0, "train", "tiny.yaml", "--out", "averaged", "--set", "optimizer.ema=0.9", "--steps", "6");
    expect_exit(0, "train", "tiny.yaml", "--out", "plain", "--steps", "6");
    return 0;
}

static bool was_changed(void)
{
    struct stat status;
    bool changed = stat(LOG, &status) == 0;
    if (changed) assert_int_equal(unlink(LOG), 0);
    return changed;
}

/* Each reads tensors of these files a second time, after the check of the opening. */
static void test_no_tensor_is_taken_unchecked(void **state)
{
    (void)state;
    static const char p[] = "parameters.safetensors", o[] = "optimizer.safetensors";
    static const struct {
        const char *file, *arguments[10];
    } cases[] = {
        {p, {"eval", "plain"}},
        {p, {"eval", "averaged"}},
        {o, {"eval", "averaged"}},
        {p, {"predict", "plain", "--set-name", "train", "--index", "1"}},
        {o, {"predict", "averaged", "--set-name", "train", "--index", "1"}},
        {p, {"export", "plain", "--c", "net.c"}},
        {o, {"export", "averaged", "--c", "net.c"}},
        {o, {"export", "averaged", "--onnx", "net.onnx"}},
        {p, {"train", "tiny.yaml", "--from", "plain", "--out", "from-plain", "--steps", "2"}},
        {o, {"train", "tiny.yaml", "--from", "averaged", "--out", "from-averaged", "--steps", "2"}},
        {p, {"train", "--resume", "plain", "--steps", "8"}},
        {o, {"train", "--resume", "plain", "--steps", "8"}},
        {o, {"train", "--resume", "averaged", "--steps", "8"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *file = tr_format("CHANGE_FILE=%s", cases[i].file);
        const char *const changes[] = {"LD_PRELOAD=" CHANGE_LIBRARY, file, "CHANGE_LOG=" LOG, NULL};
        struct session session;
        session_start(&session, &(struct setup){.arguments = cases[i].arguments, .environment = changes});
        int code = session_end(&session);
        bool changed = was_changed();
        if (!changed || code != CLI_EXIT_DAMAGED) session_show(&session);
        if (!changed) fail_msg("case %zu reads %s once; it tests nothing", i, cases[i].file);
        assert_int_equal(code, CLI_EXIT_DAMAGED);
        assert_non_null(strstr(session.text[1], "has changed since the checkpoint was opened"));
        assert_null(strstr(session.text[0], "accuracy"));
        session_release(&session);
        tr_free(file);
    }
    assert_int_not_equal(access("net.c", F_OK), 0);
    assert_int_not_equal(access("net.onnx", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_tensor_is_taken_unchecked),
    };
    return cmocka_run_group_tests(tests, make_run, place_remove);
}
