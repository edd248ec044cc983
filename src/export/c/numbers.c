/* Numbers as constants of C: in hexadecimal, which every compiler reads as exactly that value. */
#include "export/c/network.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void tr_c_constant(float value, char text[TR_C_CONSTANT])
{
    int exponent;
    float fraction = frexpf(fabsf(value), &exponent);
    uint32_t mantissa = (uint32_t)ldexpf(fraction, 24);
    exponent -= 24;
    if (mantissa == 0) {
        snprintf(text, TR_C_CONSTANT, signbit(value) ? "-0.0f" : "0.0f");
        return;
    }
    for (; mantissa % 2 == 0; mantissa /= 2) exponent++;
    snprintf(text, TR_C_CONSTANT, "%s0x%" PRIx32 "p%df", signbit(value) ? "-" : "", mantissa, exponent);
}

#define NUMBERS_PER_WRITE 4096
#define NUMBERS_PER_LINE  7

tr_status tr_c_flush(struct tr_text *text, struct tr_file_writer *writer)
{
    char *bytes;
    size_t length = text->length;
    TR_TRY(tr_text_finish(text, &bytes));
    tr_status status = tr_file_write(writer, bytes, length);
    tr_free(bytes);
    return status;
}

static tr_status write_numbers(const struct tr_parameter *parameter, const float *values,
                               struct tr_text *text, struct tr_file_writer *writer)
{
    for (int64_t i = 0; i < parameter->count; i++) {
        char number[TR_C_CONSTANT];
        if (!isfinite(values[i]))
            return tr_fail(TR_ENONFINITE,
                           "element %" PRId64 " of parameter \"%s\" is %s, which no constant of C can be; "
                           "export an earlier checkpoint",
                           i, parameter->name, isnan(values[i]) ? "NaN" : "infinite");
        tr_c_constant(values[i], number);
        tr_text_add(text, number);
        tr_text_add(text, (i + 1) % NUMBERS_PER_LINE && i + 1 < parameter->count ? ", " : ",\n");
        if (i % NUMBERS_PER_WRITE == NUMBERS_PER_WRITE - 1) TR_TRY(tr_c_flush(text, writer));
    }
    return TR_OK;
}

tr_status tr_c_write_parameters(const struct tr_c_network *network, struct tr_file_writer *writer)
{
    const struct tr_model *model = network->trace->model;
    struct tr_text text = TR_TEXT_INIT;
    tr_status status = TR_OK;
    for (int i = 0; i < model->parameter_count && status == TR_OK; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        char name[2 * TR_C_IDENTIFIER], shape[TR_SHAPE_TEXT];
        if (!network->parameter_used[i]) continue;
        tr_text_addf(&text, "/* %s */\nstatic const float %s_%s[%" PRId64 "] = {\n",
                     tr_shape_text(&parameter->shape, shape), network->name,
                     tr_c_parameter_name(network, i, name), parameter->count);
        status = write_numbers(parameter, network->trace->parameters + parameter->offset, &text, writer);
        tr_text_add(&text, "};\n\n");
        if (status == TR_OK) status = tr_c_flush(&text, writer);
    }
    tr_text_release(&text);
    return status;
}
