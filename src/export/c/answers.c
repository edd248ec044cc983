/* Scores as probabilities in C: one call of a part for the outputs of each loss. */
#include "export/c/network.h"

#include <inttypes.h>

static int32_t parts_of(const struct tr_c_network *network, struct tr_answer_part part[TR_LOSS_HEADS])
{
    const struct tr_model *model = network->trace->model;
    return tr_loss_parts(&model->loss, tr_loss_width(&model->loss, tr_shape_count(&model->output)), part);
}

static bool has_probabilities(const struct tr_c_network *network)
{
    return tr_loss_has_probabilities(&network->trace->model->loss);
}

const char *tr_c_answers_are(const struct tr_c_network *network)
{
    struct tr_answer_part part[TR_LOSS_HEADS];
    if (parts_of(network, part) > 1) return "the outputs of all losses, in their order";
    if (network->trace->model->loss.pixels > 0)
        return "height x width x classes, a score for each class of each pixel; the greatest is the answer";
    return part[0].kind == TR_ANSWER_CLASSES ? "a score for each class; the greatest is the answer"
           : part[0].kind == TR_ANSWER_YES   ? "a score for each question; above 0 the answer is yes"
                                             : "values";
}

void tr_c_declare_answers(const struct tr_c_network *network, struct tr_text *text)
{
    static const char *const are[] = {
        [TR_ANSWER_VALUES] = "%s%" PRId64 " values as they are",
        [TR_ANSWER_CLASSES] = "%sthe probabilities of %" PRId64 " classes",
        [TR_ANSWER_YES] = "%sthe probability of yes for each of %" PRId64 " questions",
    };
    struct tr_answer_part part[TR_LOSS_HEADS];
    const int32_t parts = parts_of(network, part);
    if (!has_probabilities(network)) return;
    tr_text_addf(text, "/* Turns scores [%s_OUTPUTS] into probabilities [%s_OUTPUTS]: ", network->upper,
                 network->upper);
    for (int32_t i = 0; i < parts; i++)
        tr_text_addf(text, are[part[i].kind], i ? ",\n   then " : "", part[i].outputs);
    if (network->trace->model->loss.pixels > 0) tr_text_add(text, " for each pixel");
    tr_text_addf(text,
                 ".\n   They may be the same memory. */\n"
                 "void %s_probabilities(const float *scores, float *probabilities);\n",
                 network->name);
}

void tr_c_write_answers(struct tr_c_network *network)
{
    static const struct {
        enum tr_c_part part;
        const char *function;
    } calls[] = {
        [TR_ANSWER_VALUES] = {TR_C_copy, "copy"},
        [TR_ANSWER_CLASSES] = {TR_C_distribution, "distribution"},
        [TR_ANSWER_YES] = {TR_C_sigmoid_of, "sigmoid_of"},
    };
    struct tr_answer_part part[TR_LOSS_HEADS];
    const int32_t parts = parts_of(network, part);
    int64_t first = 0;
    if (!has_probabilities(network)) return;
    tr_text_addf(&network->body, "\nvoid %s_probabilities(const float *scores, float *probabilities)\n{\n",
                 network->name);
    if (network->trace->model->loss.pixels > 0) {
        const int64_t width = part[0].outputs;
        tr_text_addf(&network->body, "    for (int32_t p = 0; p < %" PRId64 "; p++)\n    ",
                     network->trace->model->loss.pixels);
        tr_c_begin_call(network, NULL, TR_C_distribution, "distribution");
        tr_text_addf(&network->body,
                     "%" PRId64 ", scores + %" PRId64 " * p, probabilities + %" PRId64 " * p);\n}\n", width,
                     width, width);
        return;
    }
    for (int32_t i = 0; i < parts; first += part[i++].outputs) {
        tr_c_begin_call(network, NULL, calls[part[i].kind].part, calls[part[i].kind].function);
        tr_text_addf(&network->body, "%" PRId64 ", scores + %" PRId64 ", probabilities + %" PRId64 ");\n",
                     part[i].outputs, first, first);
    }
    tr_text_add(&network->body, "}\n");
}
