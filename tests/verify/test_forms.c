/* Forms of a receipt for others: they name its digests and the file of parameters at hand. Whether other
 * programs take them, tests/interop/test_receipt.py shows. */
#include "base/text/json.h"
#include "receipt/receipt.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char run[SCRATCH_PATH], receipt_path[SCRATCH_PATH];
static struct tr_receipt receipt;

static int set_up(void **state)
{
    struct job job;
    struct outcome outcome;
    struct tr_file_content content;
    family_place_make(state);
    family_job(&job, &families[0], family_place);
    job.settings.receipt = true;
    job.settings.out = scratch_join(run, family_place, "run");
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    must_train(tr_file_read(scratch_join(receipt_path, run, TR_RECEIPT_FILE), TR_RECEIPT_MOST, &content));
    must_train(tr_receipt_read(receipt_path, content.data, content.size, &receipt));
    tr_file_content_free(&content);
    return 0;
}

static int tear_down(void **state)
{
    tr_receipt_release(&receipt);
    return family_place_remove(state);
}

/* The form, which is JSON and has each of these texts. */
static void expect(const char *path, const char *format, const char *const *texts)
{
    char *text;
    tr_json *document;
    must_train(tr_receipt_form(path, format, &text));
    must_train(tr_json_parse(text, strlen(text), format, &document));
    for (; *texts; texts++)
        if (!strstr(text, *texts)) fail_msg("%s: \"%s\" is not in %s", format, *texts, text);
    tr_json_destroy(&document);
    tr_text_free(text);
}

static void forms_name_all_digests(void **state)
{
    (void)state;
    char root[TR_SHA256_TEXT], data[TR_SHA256_TEXT], settings[TR_SHA256_TEXT], file[TR_SHA256_TEXT],
        path[2 * SCRATCH_PATH];
    struct tr_file_content parameters;
    snprintf(path, sizeof path, "%s/checkpoint-%08d/parameters.safetensors", run,
             (int)receipt.boundary[receipt.count - 1].step);
    must_train(tr_file_read(path, 1 << 30, &parameters));
    must_train(tr_sha256_of(parameters.data, parameters.size, file));
    tr_file_content_free(&parameters);
    const char *const texts[] = {
        tr_sha256_text(&receipt.boundary[receipt.count - 1].root, root),
        tr_sha256_text(&receipt.data, data),
        tr_sha256_text(&receipt.settings, settings),
        receipt.parameters,
        file,
        "\"mnist-cnn\"",
        NULL,
    };
    expect(run, "in-toto", texts);
    expect(run, "cyclonedx", texts);
    /* A receipt alone has no file of parameters. */
    const char *const fewer[] = {root, data, settings, NULL};
    must_train(tr_file_make_directories(NULL, scratch_join(path, family_place, "alone")));
    char *text;
    must_train(tr_receipt_form(run, "json", &text));
    strcat(path, "/run.receipt");
    must_train(tr_file_write_atomic(NULL, path, text, strlen(text)));
    tr_text_free(text);
    expect(path, "in-toto", fewer);
    expect(path, "cyclonedx", fewer);
}

static void the_receipt_itself_is_the_file(void **state)
{
    (void)state;
    struct tr_file_content content;
    char *text;
    must_train(tr_file_read(receipt_path, TR_RECEIPT_MOST, &content));
    must_train(tr_receipt_form(receipt_path, "json", &text));
    assert_string_equal(text, content.data);
    tr_text_free(text);
    tr_file_content_free(&content);
}

static void other_forms_are_refused(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(tr_receipt_form(run, "cyclondx", &text), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "did you mean \"cyclonedx\"?"));
    assert_int_equal(tr_receipt_form("nowhere", "json", &text), TR_ENOTFOUND);
    assert_int_equal(tr_receipt_form(family_place, "json", &text), TR_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_name_all_digests),
        cmocka_unit_test(the_receipt_itself_is_the_file),
        cmocka_unit_test(other_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
