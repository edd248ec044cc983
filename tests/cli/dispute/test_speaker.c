/* A party of a dispute that is another command: its answers, however they come, and what is said of one that
 * does not answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/dispute/speaker.h"
#include "cli/printed.h"
#include "cli/program/signals.h"
#include "refuse.h"
#include "support/files/descriptors.h"

/* Asks once; what is answered, or NULL with `status`. Free with tr_free(). */
static char *ask(struct cli_speaker *speaker, const char *question, tr_status expected)
{
    char *answer = NULL;
    const tr_status status = cli_speaker_ask(speaker, question, &answer);
    if (status != expected) fail_msg("status %d: %s", (int)status, tr_error_message());
    return status == TR_OK ? answer : NULL;
}

static void expect_answer(struct cli_speaker *speaker, const char *question, const char *expected)
{
    char *answer = ask(speaker, question, TR_OK);
    assert_string_equal(answer, expected);
    tr_free(answer);
}

static void answers_are_lines(void **state)
{
    (void)state;
    struct cli_speaker speaker;
    const int64_t live = tr_alloc_live();
    assert_int_equal(cli_speaker_start(&speaker, "exec cat"), TR_OK);
    expect_answer(&speaker, "first", "first");
    expect_answer(&speaker, "", "");
    expect_answer(&speaker, "a second one, with blanks", "a second one, with blanks");
    cli_speaker_end(&speaker);
    /* Two lines at once answer two questions, and a line in parts is one. */
    assert_int_equal(
        cli_speaker_start(&speaker,
                          "read q; printf 'one\\ntw'; sleep 0.2; echo o; read q; read q; echo three"),
        TR_OK);
    expect_answer(&speaker, "?", "one");
    expect_answer(&speaker, "?", "two");
    expect_answer(&speaker, "?", "three");
    cli_speaker_end(&speaker);
    /* Once more does no harm to whoever has its descriptors now. */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    cli_speaker_end(&speaker);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
    assert_int_equal(tr_alloc_live(), live);
}

static void long_answers_are_whole(void **state)
{
    (void)state;
    struct cli_speaker speaker;
    assert_int_equal(
        cli_speaker_start(&speaker, "read q; head -c 300000 /dev/zero | tr '\\0' a; echo; read q; echo last"),
        TR_OK);
    char *answer = ask(&speaker, "?", TR_OK);
    assert_int_equal(strlen(answer), 300000);
    assert_int_equal(strspn(answer, "a"), 300000);
    tr_free(answer);
    expect_answer(&speaker, "?", "last");
    cli_speaker_end(&speaker);
}

static void expect_failure(const char *command, const char *part)
{
    struct cli_speaker speaker;
    assert_int_equal(cli_speaker_start(&speaker, command), TR_OK);
    ask(&speaker, "?", TR_EIO);
    if (!strstr(tr_error_message(), part)) fail_msg("%s: %s", command, tr_error_message());
    assert_non_null(strstr(tr_error_message(), command));
    cli_speaker_end(&speaker);
}

static void others_are_told_of(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    expect_failure("read q", "ended before the dispute did; see what it wrote");
    expect_failure("read q; printf 'half a line'", "ended before the dispute did");
    expect_failure("exec 0<&-; sleep 0.1", "ended before the dispute did");
    expect_failure("read q; printf 'a\\0b\\n'", "does not answer in lines of text");
    expect_failure("read q; exec cat /dev/zero", "does not answer in lines of text");
    expect_failure("read q; yes aaaaaaaaaaaaaaaa | tr -d '\\n'", "does not answer in lines of text");
}

/* While an answer is awaited, a stop ends the dispute. */
static void a_stop_ends_it(void **state)
{
    (void)state;
    struct cli_speaker speaker;
    assert_int_equal(cli_speaker_start(&speaker, "read q; kill -INT $PPID; exec cat"), TR_OK);
    cli_signals_catch(NULL, NULL);
    ask(&speaker, "?", TR_EINTERRUPTED);
    assert_string_equal(tr_error_message(), "the dispute was stopped");
    ask(&speaker, "?", TR_EINTERRUPTED);
    cli_speaker_end(&speaker);
    cli_signals_release();
}

/* Without descriptors there is no pipe, and none is left of an attempt. */
static void descriptors_are_not_lost(void **state)
{
    (void)state;
    struct rlimit before, limit;
    const int open = descriptors_open();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int more = 0; more <= 4; more++) {
        struct cli_speaker speaker;
        limit = before;
        limit.rlim_cur = descriptors_limit(more);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const tr_status status = cli_speaker_start(&speaker, "exec cat");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(status, more < 4 ? TR_EIO : TR_OK);
        if (status != TR_OK) assert_non_null(strstr(tr_error_message(), "no pipe to \"exec cat\": "));
        if (status == TR_OK) cli_speaker_end(&speaker);
        assert_int_equal(descriptors_open(), open);
    }
}

static void memory_is_refused(void **state)
{
    (void)state;
    int refused = 0;
    cli_signals_catch(NULL, NULL); /* forgets one */
    cli_signals_release();
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_speaker speaker;
        char *answer = NULL;
        const int64_t live = tr_alloc_live();
        assert_int_equal(cli_speaker_start(&speaker, "read q; printf 'one\\ntwo\\n'; exec cat"), TR_OK);
        refuse_begin(at);
        const tr_status status = cli_speaker_ask(&speaker, "?", &answer);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_string_equal(answer, "one");
        refused += !done;
        tr_free(answer);
        cli_speaker_end(&speaker);
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(refused >= 2);
}

/* ---- this program as a party ---- */

static int asked;
tr_status __wrap_tr_party_answer(tr_party *party, const char *question, char **answer);
tr_status __wrap_tr_party_answer(tr_party *party, const char *question, char **answer)
{
    (void)party;
    asked++;
    if (strcmp(question, "stop") == 0) raise(SIGTERM);
    if (strcmp(question, "fail") == 0) return tr_fail(TR_EFORMAT, "no answer");
    *answer = tr_format("%zu", strlen(question));
    return TR_OK;
}

/* Answers the lines of a text; what is printed, and after how many questions. */
static void expect_answers(const char *questions, tr_status status, int count, const char *expected)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(questions, file) >= 0 && fflush(file) == 0);
    const int before = dup(STDIN_FILENO);
    assert_true(before >= 0 && dup2(fileno(file), STDIN_FILENO) >= 0);
    __fpurge(stdin); /* of what was not asked before */
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0);
    const int64_t live = tr_alloc_live();
    asked = 0;
    cli_signals_catch(NULL, NULL);
    printed_begin();
    const tr_status got = cli_speaker_answer(NULL);
    const char *printed = printed_end();
    cli_signals_catch(NULL, NULL); /* forgets one */
    cli_signals_release();
    assert_int_equal(tr_alloc_live(), live);
    assert_true(dup2(before, STDIN_FILENO) >= 0);
    close(before);
    fclose(file);
    clearerr(stdin);
    assert_int_equal(got, status);
    assert_int_equal(asked, count);
    assert_string_equal(printed, expected);
}

static void questions_are_answered(void **state)
{
    char line[600];
    (void)state;
    expect_answers("", TR_OK, 0, "");
    expect_answers("one\n\nthree\n", TR_OK, 3, "3\n0\n5\n");
    expect_answers("one\nfail\nthree\n", TR_EFORMAT, 2, "3\n");
    expect_answers("stop\nthree\n", TR_EINTERRUPTED, 1, "4\n");
    assert_string_equal(tr_error_message(), "the dispute was stopped");
    /* The longest question, and a longer one; and one that does not end. */
    memset(line, 'x', sizeof line);
    memcpy(line + 510, "\na\n", 4);
    expect_answers(line, TR_OK, 2, "510\n1\n");
    memcpy(line + 510, "x\na\n", 5);
    expect_answers(line, TR_EINVAL, 0, "");
    assert_string_equal(tr_error_message(), "a question is a line of at most 510 bytes");
    expect_answers("one\ntwo", TR_EINVAL, 1, "3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_lines),        cmocka_unit_test(long_answers_are_whole),
        cmocka_unit_test(others_are_told_of),       cmocka_unit_test(a_stop_ends_it),
        cmocka_unit_test(descriptors_are_not_lost), cmocka_unit_test(memory_is_refused),
        cmocka_unit_test(questions_are_answered),
    };
    return cmocka_run_group_tests_name("cli.speaker", tests, NULL, NULL);
}
