/* What an import takes and what it says: settings that do not go together, the model file that a directory
 * makes, and tensors under other names, of other shapes or of no use. */
#include "base/alloc.h"
#include "base/text/log.h"
#include "export/hub/hub_given.h"
#include "io/safetensors.h"
#include "refuse.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char heard[2048];

static void hear(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    if (level == TR_LOG_WARNING) snprintf(heard, sizeof heard, "%s", message);
}

static void expect_message(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

/* ---- settings ---- */

#define ENCODER                                                                                              \
    "{\"model_type\": \"bert\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 1, "   \
    "\"num_attention_heads\": 2, \"vocab_size\": 300, \"architectures\": [\"BertFor%sClassification\"]}"

static void settings_go_together(void **state)
{
    char hub[SCRATCH_PATH], peft[SCRATCH_PATH], config[512];
    static const struct {
        const char *file; /* "hub" and "peft" are directories */
        bool bytes, model, text, base;
        const char *message;
    } cases[] = {
        {"hub", false, true, false, false, "/hub\" makes the model file itself; leave out yours"},
        {"hub", false, false, true, false, "/hub\" makes the model file itself; leave out yours"},
        {"peft", false, true, false, true, "/peft\" makes the model file itself; leave out yours"},
        {"hub", false, false, false, true,
         "`base` is of adapters of PEFT, and \"%s/hub\" is no directory with an adapter_config.json"},
        {NULL, true, true, false, true, "`base` is of adapters of PEFT, and \"(memory)\" is no directory"},
        {"peft", false, false, false, false,
         "/peft\" has adapters of PEFT; name the run with the network that they are for as `base`"},
        {"hub", false, false, false, false,
         "/hub\" is an encoder; give a file of texts, each a line with the numbers of its tokens, a tab and "
         "its label, as `text`"},
    };
    (void)state;
    must_train(tr_file_make_directories(NULL, scratch_join(hub, scratch_place, "hub")));
    must_train(tr_file_make_directories(NULL, scratch_join(peft, scratch_place, "peft")));
    snprintf(config, sizeof config, ENCODER, "Sequence");
    scratch_write_text("hub/config.json", config);
    scratch_write_text("peft/adapter_config.json", "{}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
        char message[SCRATCH_PATH + 256];
        void *bytes = &settings;
        size_t size = 1;
        if (cases[i].file) settings.file = strcmp(cases[i].file, "hub") == 0 ? hub : peft;
        settings.bytes = cases[i].bytes ? "x" : NULL;
        settings.bytes_size = 1;
        settings.model = cases[i].model ? "model.yaml" : NULL;
        settings.model_text = cases[i].text ? "name: x" : NULL;
        settings.base = cases[i].base ? "run" : NULL;
        assert_int_equal(tr_import_state(&settings, &bytes, &size), TR_EINVAL);
        snprintf(message, sizeof message, cases[i].message, scratch_place);
        expect_message(message);
        assert_null(bytes);
        assert_int_equal(size, 0);
    }
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    char *path = config;
    settings.file = hub;
    assert_int_equal(tr_import(&settings, &path), TR_EINVAL);
    expect_message("an import needs a directory for the checkpoint");
    assert_null(path);
    snprintf(config, sizeof config, ENCODER, "Token");
    scratch_write_text("hub/config.json", config);
    settings.out = scratch_in("out");
    assert_int_equal(tr_import(&settings, NULL), TR_EINVAL);
    expect_message("a tab and their labels, as `text`");
    assert_false(tr_file_exists(scratch_in("out")));
}

/* ---- directories ---- */

static void expect_model(const char *out, const char *part)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, out, "model.yaml"), 1 << 16, &content));
    if (!strstr(content.data, part)) fail_msg("\"%s\" is not in\n%s", part, content.data);
    tr_file_content_free(&content);
}

/* Its name is that of the directory; windows are short where there is no text but config.json. */
static void the_model_file_of_a_directory(void **state)
{
    struct given_network network = given_llama_linear;
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    char given[SCRATCH_PATH], slashes[SCRATCH_PATH + 2], out[SCRATCH_PATH], line[SCRATCH_PATH + 64],
        text[2001];
    static const char places[] = "\"max_position_embeddings\": 16";
    const char *at = strstr(network.config, places);
    (void)state;
    assert_non_null(at);
    char *config = tr_format("%.*s\"max_position_embeddings\": 300%s", (int)(at - network.config),
                             network.config, at + strlen(places));
    assert_non_null(config);
    network.config = config;
    given_import(&network, scratch_join(given, scratch_place, "small"),
                 scratch_join(out, scratch_place, "a"));
    tr_free(config);
    expect_model(out, "name: \"small\"\n");
    snprintf(line, sizeof line, "path: \"%s/config.json\", ", given);
    expect_model(out, line);
    expect_model(out, ", window: 16}}");
    for (int i = 0; i < 2000; i++) text[i] = "abcd "[i % 5];
    text[2000] = '\0';
    scratch_write_text("long.txt", text);
    snprintf(slashes, sizeof slashes, "%s//", given);
    for (int relative = 0; relative < 2; relative++) {
        char file[SCRATCH_PATH];
        settings.file = slashes;
        settings.out = scratch_join(out, scratch_place, relative ? "b" : "c");
        settings.text = relative ? "long.txt" : scratch_join(file, scratch_place, "long.txt");
        settings.directory = relative ? scratch_place : NULL;
        must_train(tr_import(&settings, NULL));
        expect_model(out, "name: \"small\"\n");
        snprintf(line, sizeof line, "path: \"%s\", ", settings.text);
        expect_model(out, line);
        expect_model(out, ", window: 128}}");
    }
}

/* ---- tensors ---- */

static float zeros[64];

#define W1 "dense1.weight"
#define B1 "dense1.bias"
#define W2 "dense2.weight"
#define B2 "dense2.bias"

static const char *import_set; /* an override, or NULL */

/* Writes tensors with such names and shapes, as far as they have names. */
static void import_write(const struct tr_stored_tensor *tensors)
{
    int64_t count = 0;
    char file[SCRATCH_PATH];
    while (tensors[count].name) count++;
    must_train(tr_safetensors_replace(NULL, scratch_join(file, scratch_place, "net.safetensors"), tensors,
                                      count, NULL, 0));
    scratch_write_text("table.csv", "1,2,0\n3,4,1\n5,7,1\n2,1,0\n");
}

static tr_status import_read(const char *prefix, const char *rename, bool partial)
{
    struct tr_import_settings settings = TR_IMPORT_SETTINGS_INIT;
    void *bytes;
    size_t size;
    char file[SCRATCH_PATH];
    settings.file = scratch_join(file, scratch_place, "net.safetensors");
    settings.model_text = "name: tiny\ndata: {train: {csv: {path: table.csv}}}\n"
                          "layers: [{dense: 3}, {dense: 2}]\noptimizer: {rule: sgd, rate: 0.1}\n"
                          "train: {batch: 4, steps: 3}\n";
    settings.directory = scratch_place;
    settings.prefix = prefix;
    settings.rename = &rename;
    settings.rename_count = rename != NULL;
    settings.partial = partial;
    settings.set = &import_set;
    settings.set_count = import_set != NULL;
    heard[0] = '\0';
    tr_log_set_sink(hear, NULL, TR_LOG_DEBUG);
    const tr_status status = tr_import_state(&settings, &bytes, &size);
    tr_log_set_sink(NULL, NULL, TR_LOG_DEBUG);
    if (status == TR_OK) tr_state_free(bytes);
    return status;
}

static tr_status import(const struct tr_stored_tensor *tensors, const char *prefix, const char *rename,
                        bool partial)
{
    import_write(tensors);
    return import_read(prefix, rename, partial);
}

#define TENSOR(name, ...)                                                                                    \
    {                                                                                                        \
        name, TR_DTYPE_F32, sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}, zeros                 \
    }
#define ALL(p) TENSOR(p W1, 3, 2), TENSOR(p B1, 3), TENSOR(p W2, 2, 3), TENSOR(p B2, 2)

static void parts_are_told(void **state)
{
    static const struct tr_stored_tensor all[] = {ALL(""), {0}},
                                         some[] = {TENSOR(W1, 3, 2), TENSOR(B1, 3), TENSOR(W2, 4, 3), {0}},
                                         none[] = {TENSOR("w", 3, 2), TENSOR(B2, 7), {0}};
    (void)state;
    must_train(import(all, NULL, NULL, false));
    must_train(import(all, NULL, NULL, true));
    assert_string_equal(heard, "");
    must_train(import(some, NULL, NULL, true));
    const char *told = strstr(heard, "/net.safetensors\", so as the model file says: ");
    assert_non_null(told);
    assert_string_equal(strstr(told, "says: "),
                        "says: dense2.weight F32[2,3] (there F32[4,3]), dense2.bias F32[2]");
    assert_int_equal(import(none, NULL, NULL, true), TR_EMISMATCH);
    expect_message("/net.safetensors\" has nothing that the network could take, which has dense1.weight "
                   "F32[3,2], dense1.bias F32[3], dense2.weight F32[2,3], dense2.bias F32[2] (there F32[7]); "
                   "map the names of layers by `rename`");
}

static void prefixes_may_be_there(void **state)
{
    static const struct tr_stored_tensor masked[] = {ALL("p."), TENSOR("p.mask", 1), {0}},
                                         bare[] = {ALL("p."), TENSOR("mask", 1), {0}},
                                         mixed[] = {TENSOR("p." W1, 3, 2),
                                                    TENSOR(B1, 3),
                                                    TENSOR(W2, 2, 3),
                                                    TENSOR("p." B2, 2),
                                                    {0}};
    (void)state;
    must_train(import(masked, "p.", "mask=", false));
    must_train(import(bare, "p.", "mask=", false));
    must_train(import(mixed, "p.", NULL, false));
    assert_int_equal(import(masked, "p.", "p.mask=", false), TR_EMISMATCH);
    expect_message("has a tensor \"p.mask\", F32[1], for which the network has no place");
    assert_int_equal(import(masked, "p.", NULL, false), TR_EMISMATCH);
    assert_int_equal(import(masked, NULL, NULL, false), TR_EMISMATCH);
    expect_message("has no tensor \"dense1.weight\", of which the network wants F32[3,2]; it has "
                   "\"p.dense1.weight\": give `prefix` p.; name layers");
}

/* Names that are near: with another beginning, which may have 106 letters; or written in another way. */
static void near_names_are_told(void **state)
{
    char longest[122], longer[123];
    struct tr_stored_tensor one[] = {TENSOR(longest, 3, 2), {0}};
    (void)state;
    snprintf(longest, sizeof longest, "%.106s.%s",
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
             "aaaaaaa"
             "aaaaaaaaaa",
             W1);
    assert_int_equal(strlen(longest), 120);
    assert_int_equal(import(one, NULL, NULL, false), TR_EMISMATCH);
    expect_message("aa.dense1.weight\": give `prefix` aa");
    snprintf(longer, sizeof longer, "a%s", longest);
    one[0].name = longer;
    assert_int_equal(import(one, NULL, NULL, false), TR_EMISMATCH);
    expect_message("of which the network wants F32[3,2]; name layers as the file does");
    one[0].name = "adense1.weight";
    assert_int_equal(import(one, NULL, NULL, false), TR_EMISMATCH);
    expect_message("wants F32[3,2]; it has \"adense1.weight\", F32[3,2]; name layers");
    one[0].name = ".dense1.weight";
    assert_int_equal(import(one, NULL, NULL, false), TR_EMISMATCH);
    expect_message("wants F32[3,2]; it has \".dense1.weight\", F32[3,2]; name layers");
    one[0].name = "a.dense1.weights";
    assert_int_equal(import(one, NULL, NULL, false), TR_EMISMATCH);
    assert_null(strstr(tr_error_message(), "give `prefix`"));
}

/* The longest name that a layer can have is one to rename, also where the layer has no tensors. */
static void long_names_can_be_told(void **state)
{
    static const struct tr_stored_tensor all[] = {ALL(""), {0}};
    char name[64], rename[80], set[128];
    (void)state;
    memset(name, 'n', sizeof name);
    name[63] = '\0';
    snprintf(rename, sizeof rename, "x=%s", name);
    snprintf(set, sizeof set, "layers=[{dense: 3}, {relu: {name: %s}}, {dense: 2}]", name);
    import_set = set;
    must_train(import(all, NULL, rename, false));
    name[62] = '\0';
    snprintf(rename, sizeof rename, "x=%s", name);
    assert_int_equal(import(all, NULL, rename, false), TR_EINVAL);
    expect_message("there is no layer \"nnnn");
    import_set = NULL;
}

#define LATE 150 /* allocations of an import at most, behind those of its trainer */

/* Imports with allocation `at` refused; whether there are fewer. */
static bool imported_without(int64_t at, const char *prefix, bool partial, tr_status expected)
{
    const int64_t live = tr_alloc_live();
    refuse_begin(at);
    const tr_status status = import_read(prefix, NULL, partial);
    const bool done = refuse_end();
    if (status != expected && (status != TR_ENOMEM || done))
        fail_msg("allocation %d: %d, %s", (int)at, (int)status, tr_error_message());
    if (status == TR_OK) assert_true(done);
    assert_int_equal(tr_alloc_live(), live);
    return done;
}

/* Each allocation once the trainer is made: only a hint at another name may be missing for it. */
static void memory_may_fail(void **state)
{
    static const struct tr_stored_tensor all[] = {ALL("p."), {0}},
                                         some[] = {TENSOR(W1, 3, 2), TENSOR(B1, 3), TENSOR(W2, 4, 3), {0}};
    static const struct {
        const struct tr_stored_tensor *tensors;
        const char *prefix;
        bool partial;
        tr_status status;
    } cases[] = {{all, "p.", false, TR_OK}, {some, NULL, true, TR_OK}, {all, NULL, false, TR_EMISMATCH}};
    const int64_t most = 1000000;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        import_write(cases[i].tensors);
        assert_true(imported_without(most, cases[i].prefix, cases[i].partial, cases[i].status));
        int64_t at = most - refuse_left - LATE;
        while (!imported_without(at, cases[i].prefix, cases[i].partial, cases[i].status)) at++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_go_together), cmocka_unit_test(the_model_file_of_a_directory),
        cmocka_unit_test(parts_are_told),       cmocka_unit_test(prefixes_may_be_there),
        cmocka_unit_test(near_names_are_told),  cmocka_unit_test(long_names_can_be_told),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests_name("export.import", tests, scratch_place_make, scratch_place_remove);
}
