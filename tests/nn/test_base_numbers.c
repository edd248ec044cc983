/* The frozen base of adapters: its hash by the formula, who holds it and for how long, and where devices read
 * it.
 */
#include "nn/base_numbers.h"

#include "support/networks.h"
#include "support/operations/shadow.h"

#include "base/alloc.h"
#include "refuse.h"

#include <math.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const char text[] = "layers: [{dense: {units: 4, name: a}}, tanh, {dense: {units: 3, name: b}}]\n"
                           "adapters: {rank: 2}\n";
static const char *const lines[] = {"a.weights 5x4\n", "a.bias 4\n", "b.weights 4x3\n", "b.bias 3\n"};
enum { TENSORS = 4, MOST = 20 };
static const int counts[TENSORS] = {20, 4, 12, 3};

static float numbers[TENSORS][MOST];
static const float *host[TENSORS];

static struct tr_model *make(void)
{
    struct tr_model *model;
    must(network_build(text, "5", 0, &model));
    return model;
}

/* network_build() has the base in the arena; here it is apart. */
static struct tr_model *make_apart(void)
{
    tr_config *root;
    struct tr_model *model;
    const struct tr_model_input input = {.shape = {1, {5}, false}};
    must(tr_config_parse(text, sizeof text - 1, "m.yaml", &root));
    must(tr_model_build(root, &input, &model));
    tr_config_destroy(&root);
    assert_int_equal(model->base_count, TENSORS);
    return model;
}

static int set_up(void **state)
{
    (void)state;
    for (int t = 0; t < TENSORS; t++) {
        host[t] = numbers[t];
        for (int i = 0; i < MOST; i++) numbers[t][i] = (float)(t + 1) / (float)(i + 1);
    }
    return 0;
}

static void hex_of(EVP_MD_CTX *context, char hex[65])
{
    unsigned char digest[32];
    assert_int_equal(EVP_DigestFinal_ex(context, digest, NULL), 1);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    EVP_MD_CTX_free(context);
}

static EVP_MD_CTX *begin_hash(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_true(context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1);
    return context;
}

/* A line with name and sizes and the bytes, one parameter after the other; and that hash, in front of those
   that are learned. */
static void the_base_has_a_hash(void **state)
{
    struct tr_model *model = make_apart();
    char expected[65], got[TR_SHA256_TEXT], line[80];
    EVP_MD_CTX *context = begin_hash();
    (void)state;
    for (int t = 0; t < TENSORS; t++) {
        EVP_DigestUpdate(context, lines[t], strlen(lines[t]));
        EVP_DigestUpdate(context, numbers[t], (size_t)counts[t] * sizeof(float));
    }
    hex_of(context, expected);
    must(tr_model_take_base(model, host, NULL, NULL));
    assert_string_equal(model->base_hash, expected);
    float *values = tr_alloc_zero((size_t)model->arena_floats, sizeof *values);
    assert_non_null(values);
    tr_model_initialize(model, 3, 0, 1, values);
    context = begin_hash();
    EVP_DigestUpdate(context, line, (size_t)snprintf(line, sizeof line, "base %s\n", expected));
    for (int k = 0; k < model->parameter_count; k++) {
        const struct tr_parameter *parameter = &model->parameters[k];
        char shape[TR_SHAPE_TEXT];
        EVP_DigestUpdate(context, line,
                         (size_t)snprintf(line, sizeof line, "%s %s\n", parameter->name,
                                          tr_shape_text(&parameter->shape, shape)));
        EVP_DigestUpdate(context, values + parameter->offset, (size_t)parameter->count * sizeof *values);
    }
    hex_of(context, expected);
    must(tr_model_hash(model, values, got));
    assert_string_equal(got, expected);
    tr_free(values);
    tr_model_destroy(&model);
}

static int released;
static void release(void *user)
{
    assert_ptr_equal(user, &released);
    released++;
}

/* The numbers are given back once: with the model, by the next ones, or at once where they are refused. */
static void numbers_are_given_back_once(void **state)
{
    struct tr_model *model = make_apart();
    char hash[TR_SHA256_TEXT];
    (void)state;
    released = 0;
    assert_null(tr_base_numbers_host(model));
    must(tr_model_take_base(model, host, release, &released));
    assert_int_equal(released, 0);
    for (int t = 0; t < TENSORS; t++) assert_ptr_equal(tr_base_numbers_host(model)[t], numbers[t]);
    memcpy(hash, model->base_hash, sizeof hash);
    must(tr_model_take_base(model, host, release, &released));
    assert_int_equal(released, 1);
    static const float wrong[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        const float right = numbers[2][11];
        numbers[2][11] = wrong[i];
        assert_int_equal(tr_model_take_base(model, host, release, &released), TR_ENONFINITE);
        assert_non_null(strstr(tr_error_message(), "tensor \"b.weights\" holds "));
        assert_non_null(strstr(tr_error_message(), " at element 11"));
        numbers[2][11] = right;
        assert_int_equal(released, 2 + i);
        assert_string_equal(model->base_hash, hash); /* what it had, it has */
    }
    tr_model_destroy(&model);
    assert_int_equal(released, 5);
    model = make_apart();
    must(tr_model_take_base(model, host, NULL, NULL));
    assert_int_equal(released, 5);
    tr_model_destroy(&model);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        struct tr_model *model = make_apart();
        const int64_t live = tr_alloc_live();
        released = 0;
        refuse_begin(at);
        const tr_status status = tr_model_take_base(model, host, release, &released);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(released, !done);
        if (!done) assert_int_equal(tr_alloc_live(), live);
        if (!done) assert_null(tr_base_numbers_host(model));
        tr_model_destroy(&model);
        assert_int_equal(released, 1);
    }
    /* The same of a device's side: nothing is left, and the next try succeeds. */
    struct tr_model *model = make_apart();
    tr_device *device;
    must(tr_model_take_base(model, host, NULL, NULL));
    must(tr_device_create("cpu", 1, NULL, &device));
    done = false;
    for (int64_t at = 0; !done; at++) {
        const float *const *places;
        refuse_begin(at);
        const tr_status status = tr_base_numbers_enter(model, device, &places);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(places != NULL, done);
        if (done) tr_base_numbers_leave(model, device);
    }
    tr_model_destroy(&model);
    tr_device_destroy(&device);
}

/* A device that reads the host's memory reads it in place; any other has one copy as long as it is used. */
static void devices_read_one_copy(void **state)
{
    struct tr_model *model = make_apart();
    tr_device *cpu, *shadow;
    const float *const *in_place, *const *copy, *const *again;
    (void)state;
    must(tr_device_create("cpu", 1, NULL, &cpu));
    must(shadow_create(1, NULL, &shadow));
    assert_int_equal(tr_base_numbers_enter(model, cpu, &copy), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "the network has adapters, but the numbers of their base are not there");
    assert_null(copy);
    must(tr_model_take_base(model, host, NULL, NULL));
    const int64_t taken = (int64_t)shadow_taken;
    for (int round = 0; round < 2; round++) {
        must(tr_base_numbers_enter(model, cpu, &in_place));
        for (int t = 0; t < TENSORS; t++) assert_ptr_equal(in_place[t], numbers[t]);
        must(tr_base_numbers_enter(model, shadow, &copy));
        const int64_t with_one = (int64_t)shadow_taken;
        assert_true(with_one > taken);
        for (int t = 0; t < TENSORS; t++) {
            float back[MOST];
            must(tr_device_to_host(shadow, back, copy[t], (size_t)counts[t] * sizeof *back));
            must(tr_device_wait(shadow));
            assert_memory_equal(back, numbers[t], (size_t)counts[t] * sizeof *back);
        }
        must(tr_base_numbers_enter(model, shadow, &again));
        assert_ptr_equal(again, copy);
        assert_int_equal((int64_t)shadow_taken, with_one);
        tr_base_numbers_leave(model, shadow);
        assert_int_equal((int64_t)shadow_taken, with_one);
        tr_base_numbers_leave(model, shadow);
        assert_int_equal((int64_t)shadow_taken, taken);
        tr_base_numbers_leave(model, cpu);
    }
    tr_model_destroy(&model);
    tr_device_destroy(&cpu);
    tr_device_destroy(&shadow);
}

/* A network without a base of its own has nothing to give. */
static void other_networks_have_none(void **state)
{
    struct tr_model *model = make();
    tr_device *device;
    const float *const *places = host;
    (void)state;
    assert_int_equal(model->base_count, 0);
    must(tr_device_create("cpu", 1, NULL, &device));
    must(tr_base_numbers_enter(model, device, &places));
    assert_null(places);
    tr_base_numbers_leave(model, device);
    tr_device_destroy(&device);
    tr_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_has_a_hash),      cmocka_unit_test(numbers_are_given_back_once),
        cmocka_unit_test(missing_memory_is_told),   cmocka_unit_test(devices_read_one_copy),
        cmocka_unit_test(other_networks_have_none),
    };
    return cmocka_run_group_tests_name("nn.base_numbers", tests, set_up, NULL);
}
