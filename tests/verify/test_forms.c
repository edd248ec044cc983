/* Forms of a receipt for others: they name its digests and the file of parameters at hand. Whether other
 * programs take them, tests/interop/test_receipt.py shows. */
#include "base/alloc.h"
#include "base/text/json.h"
#include "receipt/receipt.h"
#include "refuse.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

/* ---- a receipt of known content ---- */

static char known[SCRATCH_PATH]; /* a directory with it */

/* A receipt of 20 steps that differs from others by one name. */
static void put_known(const char *model)
{
    struct tr_receipt made = {.numerics = 3, .seed = UINT64_MAX, .steps = 30};
    static const int64_t steps[] = {0, 7, 20};
    char path[SCRATCH_PATH], *text;
    made.program = tr_strdup("trireme 9.8.7");
    made.model = tr_strdup(model);
    memset(&made.settings, 0xab, sizeof made.settings);
    memset(&made.data, 0xcd, sizeof made.data);
    for (int i = 0; i < 3; i++) {
        struct tr_receipt_boundary boundary = {.step = steps[i]};
        memset(&boundary.root, 0x10 + i, sizeof boundary.root);
        memset(&boundary.chain, 0x20 + i, sizeof boundary.chain);
        struct tr_chain_begin begin = {made.settings, made.data, boundary.root};
        if (i == 0) must_train(tr_chain_begin(&begin, &boundary.chain));
        must_train(tr_receipt_add(&made, &boundary));
    }
    memset(made.parameters, 'e', TR_SHA256_TEXT - 1);
    must_train(tr_file_make_directories(NULL, scratch_join(known, family_place, "known")));
    must_train(tr_receipt_write(&made, &text));
    must_train(tr_file_write_atomic(NULL, scratch_join(path, known, TR_RECEIPT_FILE), text, strlen(text)));
    tr_free(text);
    tr_receipt_release(&made);
}

#define DIGEST(two) two two two two two two two two two two two two two two two two
#define AB          DIGEST("abab")
#define CD          DIGEST("cdcd")
#define E           DIGEST("eeee")
#define FIRST       DIGEST("1010")
#define LAST        DIGEST("1212")

/* The form without the ends of its lines and what indents the next ones. */
static void expect_form(const char *format, const char *expected)
{
    char *text, *to;
    must_train(tr_receipt_form(known, format, &text));
    to = text;
    for (const char *from = text; *from; from++) {
        *to = *from;
        if (*from != '\n' && (*from != ' ' || (from[-1] != '\n' && from[-1] != ' '))) to++;
    }
    *to = '\0';
    if (strcmp(text, expected) != 0) fail_msg("%s: %s instead of %s", format, text, expected);
    tr_text_free(text);
}

/* The SHA-256 of that receipt. */
#define OF_TOY "45f7bb756bcafcfd2a7947c063fe17a988a6ebd0be392256dd1de6e58dc8a3ac"

static void forms_are_as_they_are_written_down(void **state)
{
    (void)state;
    put_known("name: toy\n");
    expect_form(
        "cyclonedx",
        "{\"bomFormat\": \"CycloneDX\",\"specVersion\": \"1.6\","
        "\"serialNumber\": \"urn:uuid:45f7bb75-6bca-8fcf-ad2a-7947c063fe17\",\"version\": 1,"
        "\"metadata\": {\"tools\": {\"components\": [{\"type\": \"application\",\"name\": \"trireme "
        "9.8.7\"}]},"
        "\"component\": {\"type\": \"machine-learning-model\",\"bom-ref\": \"model\",\"name\": \"toy\","
        "\"modelCard\": {\"modelParameters\": {\"datasets\": [{\"ref\": \"data\"}]}},"
        "\"properties\": [{\"name\": \"trireme:receipt\",\"value\": \"" OF_TOY "\"}, "
        "{\"name\": \"trireme:parameters\",\"value\": \"" E "\"}, "
        "{\"name\": \"trireme:state\",\"value\": \"" LAST "\"}, "
        "{\"name\": \"trireme:settings\",\"value\": \"" AB "\"}, "
        "{\"name\": \"trireme:numerics\",\"value\": \"3\"}, "
        "{\"name\": \"trireme:seed\",\"value\": \"18446744073709551615\"}, "
        "{\"name\": \"trireme:steps\",\"value\": \"20\"}]}},"
        "\"components\": [{\"type\": \"data\",\"bom-ref\": \"data\",\"name\": \"training data\","
        "\"data\": [{\"type\": \"dataset\",\"name\": \"training data\"}],"
        "\"properties\": [{\"name\": \"trireme:data\",\"value\": \"" CD "\"}]}]}");
    expect_form("in-toto",
                "{\"_type\": \"https://in-toto.io/Statement/v1\",\"subject\": ["
                "{\"name\": \"parameters\",\"digest\": {\"trireme_parameters\": \"" E "\"}}, "
                "{\"name\": \"state\",\"digest\": {\"trireme_state\": \"" LAST "\"}}],"
                "\"predicateType\": \"https://slsa.dev/provenance/v1\","
                "\"predicate\": {\"buildDefinition\": {\"buildType\": \"urn:trireme:training:1\","
                "\"externalParameters\": {\"job\": \"toy\",\"model\": \"name: toy\\n\","
                "\"seed\": \"18446744073709551615\",\"steps\": 20},"
                "\"internalParameters\": {\"numerics\": 3},"
                "\"resolvedDependencies\": [{\"name\": \"settings\",\"digest\": {\"trireme_settings\": \"" AB
                "\"}}, "
                "{\"name\": \"training data\",\"digest\": {\"trireme_data\": \"" CD "\"}}, "
                "{\"name\": \"first state\",\"digest\": {\"trireme_state\": \"" FIRST "\"}}]},"
                "\"runDetails\": {\"builder\": {\"id\": \"urn:trireme:program:trireme:9.8.7\"},"
                "\"byproducts\": [{\"name\": \"run.receipt\",\"digest\": {\"sha256\": \"" OF_TOY "\"}}]}}}");
}

/* A model file without a name, or with something else there. */
static void a_model_without_a_name_is_a_model(void **state)
{
    static const char *const models[] = {"seed: 1\n", "name: [a, b]\n", "name: {a: b}\n"};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const char *const texts[] = {"\"name\": \"model\"", NULL}, *const job[] = {"\"job\": \"model\"",
                                                                                   NULL};
        put_known(models[i]);
        expect(known, "cyclonedx", texts);
        expect(known, "in-toto", job);
    }
}

/* A file of parameters in a directory that has a checkpoint's name, with bytes of its own. */
static void put_parameters(const char *checkpoint, size_t size, char sha256[TR_SHA256_TEXT])
{
    char directory[SCRATCH_PATH], path[SCRATCH_PATH], *bytes = malloc(size + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) bytes[i] = (char)(i * 31 + i / 251 + size);
    must_train(tr_sha256_of(bytes, size, sha256));
    must_train(tr_file_make_directories(NULL, scratch_join(directory, known, checkpoint)));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, directory, "parameters.safetensors"), bytes, size));
    free(bytes);
}

/* Whether the forms name the file with this digest, and keep no file open. */
static void expect_parameters(const char *sha256)
{
    char of_form[2 * TR_SHA256_TEXT], of_other[2 * TR_SHA256_TEXT];
    const char *const cyclonedx[] = {"\"modelCard\"", of_form, NULL}, *const in_toto[] = {of_other, NULL};
    const int before = dup(0);
    assert_true(before >= 0);
    close(before);
    snprintf(of_form, sizeof of_form, "\"content\": \"%s\"", sha256);
    snprintf(of_other, sizeof of_other, "\"sha256\": \"%s\"", sha256);
    expect(known, "cyclonedx", cyclonedx);
    expect(known, "in-toto", in_toto);
    const int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

/* The last checkpoint of the last boundary counts; files are as long as they are. */
static void the_parameters_are_those_of_the_last_boundary(void **state)
{
    static const size_t sizes[] = {(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (5 << 19) + 7};
    (void)state;
    char digest[TR_SHA256_TEXT], other[TR_SHA256_TEXT], path[SCRATCH_PATH], *text;
    put_known("name: toy\n");
    put_parameters("checkpoint-00000007", 10, other);
    put_parameters("checkpoint-00000021", 11, other);
    must_train(tr_receipt_form(known, "in-toto", &text));
    assert_null(strstr(text, "parameters.safetensors"));
    tr_text_free(text);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_parameters("checkpoint-00000020", sizes[i], digest);
        expect_parameters(digest);
    }
    put_parameters("checkpoint-00000020-2", 12, digest);
    expect_parameters(digest);
    assert_int_equal(unlink(scratch_join(path, known, "checkpoint-00000020-2/parameters.safetensors")), 0);
    assert_int_equal(tr_receipt_form(known, "in-toto", &text), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "checkpoint-00000020-2/parameters.safetensors"));
    assert_null(text);
    must_train(tr_file_remove(NULL, scratch_join(path, known, "checkpoint-00000020-2")));
}

static void lack_of_memory_is_told(void **state)
{
    static const char *const formats[] = {"json", "in-toto", "cyclonedx"};
    (void)state;
    char digest[TR_SHA256_TEXT];
    put_known("name: toy\n");
    put_parameters("checkpoint-00000020", 100, digest);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            char *text;
            refuse_begin(at);
            tr_status status = tr_receipt_form(known, formats[i], &text);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_true(done ? text != NULL : text == NULL);
            tr_text_free(text);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_name_all_digests),
        cmocka_unit_test(the_receipt_itself_is_the_file),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(forms_are_as_they_are_written_down),
        cmocka_unit_test(a_model_without_a_name_is_a_model),
        cmocka_unit_test(the_parameters_are_those_of_the_last_boundary),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
