/* Damaged journals, digests and traces: a page, a verdict or a refusal, and never more than that. */
#include "trireme/report.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "mutate.h"
#include "scratch.h"
#include "trireme/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#define ROUNDS 1500

static const char journal[] =
    "{\"event\":\"start\",\"name\":\"n\",\"model\":\"m.yaml\",\"seed\":1,\"ranks\":2,\"steps\":20,\"step\":0,"
    "\"steps_per_epoch\":10,\"settings\":\"s\",\"strategy\":\"parameter-server\",\"command\":\"c\"}\n"
    "{\"event\":\"step\",\"step\":1,\"loss\":2.5,\"accuracy\":0.1,\"rate\":0.1,\"seconds\":0.5,"
    "\"examples_per_second\":100}\n"
    "{\"event\":\"step\",\"step\":10,\"loss\":1e30,\"accuracy\":0.5,\"gradient_norm\":3,\"seconds\":1.5}\n"
    "{\"event\":\"evaluation\",\"step\":10,\"set\":\"test\",\"loss\":1.25,\"accuracy\":0.75}\n"
    "{\"event\":\"warning\",\"step\":10,\"message\":\"w\"}\n"
    "{\"event\":\"start\",\"name\":\"n\",\"step\":1}\n"
    "{\"event\":\"step\",\"step\":10,\"loss\":0.25,\"accuracy\":0.5,\"seconds\":1.5}\n"
    "{\"event\":\"checkpoint\",\"step\":20,\"path\":\"p\"}\n"
    "{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"h\",\"seconds\":2,\"examples_per_second\":50,"
    "\"statistics\":{\"ranks\":[{\"bytes_sent\":5,\"wait_seconds\":0.5,\"compute_seconds\":1},{}],"
    "\"staleness\":[3,2,1],\"dropped\":1}}\n";

static const char digests[] =
    "{\"step\":0,\"parameters\":{\"w\":\"p\"}}\n"
    "{\"step\":1,\"loss\":\"l\",\"outputs\":[{\"conv\":\"x\"},{\"conv\":\"y\"}],\"gradient\":{\"w\":\"g\"},"
    "\"parameters\":{\"w\":\"q\"}}\n"
    "{\"step\":1,\"parameters\":{\"w\":\"q\"}}\n"
    "{\"step\":2,\"loss\":\"l\",\"outputs\":[{\"conv\":\"x\"},{\"conv\":\"y\"}],\"gradient\":{\"w\":\"g\"},"
    "\"parameters\":{\"w\":\"r\"}}\n";

static const char trace[] =
    "{\"traceEvents\":[\n"
    "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":1.5,\"dur\":5,\"cat\":\"forward\",\"name\":\"conv\"},\n"
    "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":1,\"dur\":9,\"cat\":\"step\",\"name\":\"step\",\"args\":{"
    "\"step\":1}},\n"
    "{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":2,\"dur\":5,\"cat\":\"waiting\",\"name\":\"wait\","
    "\"args\":{\"step\":1,\"for rank\":0}},\n"
    "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":11,\"dur\":9,\"cat\":\"step\",\"name\":\"step\"}]}\n";

static char whole[SCRATCH_PATH + 8], damaged[SCRATCH_PATH + 8];

static void put(const char *run, const char *name, const char *bytes, size_t size)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", run, name);
    assert_int_equal(tr_file_write_atomic(NULL, path, bytes, size), TR_OK);
}

static void put_all(const char *run)
{
    assert_true(mkdir(run, 0777) == 0);
    put(run, "journal.jsonl", journal, sizeof journal - 1);
    put(run, "digests.jsonl", digests, sizeof digests - 1);
    put(run, "trace.json", trace, sizeof trace - 1);
}

static int set_up(void **state)
{
    scratch_place_make(state);
    snprintf(whole, sizeof whole, "%s/whole", scratch_place);
    snprintf(damaged, sizeof damaged, "%s/bad", scratch_place);
    put_all(whole);
    put_all(damaged);
    return 0;
}

/* Bad bytes are a refusal; with memory and disks in order there is no other failure. */
static void expect_sane(tr_status status, const char *what, uint32_t round)
{
    if (status != TR_OK && status != TR_EFORMAT)
        fail_msg("%s, round %u: %s", what, round, tr_error_message());
}

static void damage(const char *name, const char *bytes, size_t size, uint32_t stream)
{
    char changed[4096];
    int64_t live = tr_alloc_live();
    assert_true(size + 64 <= sizeof changed);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const char *runs[] = {damaged, whole};
        struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
        char *text = NULL;
        bool equal;
        settings.examples = false;
        put(damaged, name, changed, mutate_bytes(stream * ROUNDS + round, bytes, size, changed));
        tr_status status = tr_report(runs, 2, &settings, &text);
        expect_sane(status, name, round);
        if (status == TR_OK) tr_text_free(text);
        status = tr_diff(whole, damaged, &equal, &text);
        expect_sane(status, name, round);
        if (status == TR_OK) tr_text_free(text);
        assert_int_equal(tr_alloc_live(), live);
    }
    put(damaged, name, bytes, size);
}

static void journals(void **state)
{
    (void)state;
    damage("journal.jsonl", journal, sizeof journal - 1, 1);
}

static void digests_of_steps(void **state)
{
    (void)state;
    damage("digests.jsonl", digests, sizeof digests - 1, 2);
}

static void traces(void **state)
{
    (void)state;
    damage("trace.json", trace, sizeof trace - 1, 3);
}

/* Numbers at the ends of their ranges, where steps, times and counts are expected. */
static void extreme_numbers(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "9223372036854775807", "-9223372036854775808", "1e308", "-1e308", "1e-320", "0", "-1"};
    static const char *const forms[] = {
        "{\"event\":\"start\",\"name\":\"n\",\"step\":%s,\"steps\":%s,\"steps_per_epoch\":%s,\"ranks\":%s,"
        "\"batch\":%s,\"parameters\":%s}\n",
        "{\"event\":\"step\",\"step\":%s,\"loss\":%s,\"accuracy\":%s,\"rate\":%s,\"seconds\":%s,"
        "\"examples_per_second\":%s}\n",
        "{\"event\":\"evaluation\",\"step\":%s,\"loss\":%s,\"accuracy\":%s,\"set\":\"test\"}\n",
        "{\"event\":\"end\",\"hash\":\"h\",\"seconds\":%s,\"examples_per_second\":%s,\"statistics\":{"
        "\"ranks\":"
        "[{\"bytes_sent\":%s,\"wait_seconds\":%s,\"compute_seconds\":%s}],\"staleness\":[%s]}}\n"};
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
        char text[4096];
        size_t length = 0;
        for (size_t m = 0; m < sizeof numbers / sizeof numbers[0]; m++) {
            const char *a = numbers[n], *b = numbers[m];
            for (size_t f = m ? 1 : 0; f < 4; f++)
                length += (size_t)snprintf(text + length, sizeof text - length, forms[f], a, b, b, a, b, a);
        }
        assert_true(length < sizeof text);
        put(damaged, "journal.jsonl", text, length);
        const char *runs[] = {damaged, whole};
        struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
        char *html = NULL;
        settings.examples = false;
        assert_int_equal(tr_report(runs, 2, &settings, &html), TR_OK);
        tr_text_free(html);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journals),
        cmocka_unit_test(digests_of_steps),
        cmocka_unit_test(traces),
        cmocka_unit_test(extreme_numbers),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
