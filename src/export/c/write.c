/* The C export: a network as one C99 file that needs nothing but the C library. */
#include "export/c/network.h"
#include "export/formats.h"
#include "export/origin.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "job/feed.h"

#include <inttypes.h>
#include <string.h>

/* Texts that are no parts. */
extern const char tr_c_text_head[], tr_c_text_guards[];

/* Text from outside for a comment, which it must not end. Returned, free with tr_free(). */
static char *comment_text(const char *string)
{
    char *copy = tr_strdup(string);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127 || *c == '\\' || *c == '*') *c = ' ';
    return copy;
}

/* ---- declarations ---- */

static void add_input(const struct tr_c_network *network, struct tr_text *text)
{
    const struct tr_trace *trace = network->trace;
    const struct tr_shape *given = &trace->value[TR_VALUE_GIVEN].shape;
    if (network->tokens) {
        tr_text_addf(text,
                     "   `tokens` [length]: numbers of words, 0 to %" PRId64
                     "; 0 is the unknown word. `length` may be 0.\n",
                     trace->model->vocabulary - 1);
    } else if (given->rank != 3) {
        tr_text_addf(text, "   `input` [%s_INPUTS]: numbers %s.\n", network->upper,
                     trace->model->part_layers > 0
                         ? "of all sources, images first, as the first layers get them"
                         : "as in the data");
    } else {
        tr_text_addf(text,
                     "   `input` [%s_INPUTS]: an image, height %" PRId64 ", width %" PRId64
                     ", channels %" PRId64 " (which lie together), pixels from 0 to 255.\n",
                     network->upper, given->size[0], given->size[1], given->size[2]);
    }
}

static void add_declarations(const struct tr_c_network *network, struct tr_text *text)
{
    const struct tr_trace *trace = network->trace;
    const char *name = network->name, *upper = network->upper;
    if (!network->tokens)
        tr_text_addf(text, "#define %s_INPUTS    %" PRId64 "\n", upper,
                     network->value[TR_VALUE_GIVEN].floats);
    tr_text_addf(text, "#define %s_OUTPUTS   %" PRId64 "\n", upper, tr_shape_count(&trace->model->output));
    tr_text_addf(text, "#define %s_WORKSPACE %" PRId64 " /* floats */\n\n", upper, network->workspace);
    if (network->most_tokens > 0)
        tr_text_addf(text, "#define %s_TOKENS    %" PRId64 " /* at most; further ones are not read */\n\n",
                     upper, network->most_tokens);
    tr_text_add(text, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    tr_text_add(text, "/* Predicts one example.\n");
    add_input(network, text);
    tr_text_addf(
        text, "   `output` [%s%s_OUTPUTS]: %s%s.\n", trace->model->output.sequence ? "length * " : "", upper,
        trace->model->output.sequence ? "for each token, " : "",
        network->settings->classification ? "a score for each class; the greatest is the answer" : "values");
    tr_text_addf(text, "   `workspace` [%s_WORKSPACE]: overwritten. The three do not overlap. */\n", upper);
    tr_text_addf(text, "void %s_predict(%s, float *output, float *workspace);\n", name,
                 network->tokens ? "const int32_t *tokens, int32_t length" : "const float *input");
    if (trace->model->output.sequence && !network->whole)
        tr_text_addf(text,
                     "/* Predicts for token number `t` of a text (from 0), whose tokens before have gone "
                     "through the same\n"
                     "   workspace, which keeps them. `output` [%s_OUTPUTS] as above. */\n"
                     "void %s_next(int32_t t, int32_t token, float *output, float *workspace);\n",
                     upper, name);
    if (tr_c_goes_on(network)) tr_c_declare_texts(network, text);
    if (network->settings->classification)
        tr_text_addf(
            text,
            "/* Turns scores [%s_OUTPUTS] into probabilities [%s_OUTPUTS]; they may be the same memory. */\n"
            "void %s_probabilities(const float *scores, float *probabilities);\n",
            upper, upper, name);
    tr_text_add(text, "#ifdef __cplusplus\n}\n#endif\n\n");
}

/* ---- the file ---- */

static tr_status write_file(struct tr_c_network *network, const char *origin, const char *file,
                            struct tr_file_writer *writer)
{
    struct tr_text text = TR_TEXT_INIT;
    const struct tr_c_names names = {network->name, network->upper, file};
    TR_TRY(tr_c_network_body(network));
    if (network->settings->classification) tr_c_parts_use(&network->parts, TR_C_probabilities);
    if (tr_c_goes_on(network)) tr_c_parts_use(&network->parts, TR_C_draw);
    tr_text_addf(&text, "/* %s\n", origin);
    tr_c_fill(tr_c_text_head, &names, &text);
    add_declarations(network, &text);
    tr_text_addf(&text, "#ifndef %s_DECLARATIONS\n", network->upper);
    tr_c_fill(tr_c_text_guards, &names, &text);
    tr_text_add(&text, "\n");
    tr_c_parts_write(&network->parts, &names, &text);
    tr_status status = tr_c_flush(&text, writer);
    tr_text_release(&text);
    if (status == TR_OK) status = tr_c_write_parameters(network, writer);
    if (status == TR_OK) status = tr_c_flush(&network->body, writer);
    if (status == TR_OK && tr_c_goes_on(network)) {
        status = tr_c_write_texts(network, &text);
        if (status == TR_OK) status = tr_c_flush(&text, writer);
        tr_text_release(&text);
    }
    static const char end[] = "\n#endif\n";
    return status == TR_OK ? tr_file_write(writer, end, sizeof end - 1) : status;
}

tr_status tr_c_write(const struct tr_trace *trace, const struct tr_c_settings *settings,
                     struct tr_file_writer *writer)
{
    struct tr_c_network network;
    char *origin = comment_text(settings->origin), *file = comment_text(settings->file);
    tr_status status = tr_c_network_plan(trace, settings, &network);
    if (status == TR_OK && !(origin && file)) status = TR_ENOMEM;
    if (status == TR_OK) status = write_file(&network, origin, file, writer);
    tr_c_network_release(&network);
    tr_free(file);
    tr_free(origin);
    return status;
}

/* The vocabulary of a network that goes on with texts, which the labels of a corpus make one; else NULL.
   Returned, destroy with tr_vocabulary_destroy(). */
static tr_status open_vocabulary(const struct tr_job *job, tr_vocabulary **out)
{
    int32_t classes;
    *out = NULL;
    bool goes_on = job->state && job->features == TR_FEATURE_TOKENS && tr_job_is_of_tokens(job) &&
                   tr_job_is_classification(job) &&
                   tr_shape_count(&job->model->output) >= job->model->vocabulary;
    return goes_on ? tr_vocabulary_read(job->state, out, &classes) : TR_OK;
}

tr_status tr_export_c(const struct tr_export *what, const char *path)
{
    const struct tr_job *job = what->job;
    tr_vocabulary *vocabulary;
    struct tr_op_load_images images;
    struct tr_trace *trace;
    bool has_images = tr_job_image_entry(job, &images);
    TR_TRY(
        tr_trace_create(job->model, what->parameters, has_images ? &images : NULL, &what->scaling, &trace));
    char *origin = tr_export_origin(what);
    tr_status status = open_vocabulary(job, &vocabulary);
    struct tr_c_settings settings = {what->name, tr_path_name(path), origin, tr_job_is_classification(job),
                                     vocabulary};
    struct tr_file_replacement file;
    if (status == TR_OK) status = origin ? tr_file_replace_begin(NULL, path, 0, &file) : TR_ENOMEM;
    if (status == TR_OK) {
        status = tr_c_write(trace, &settings, &file.writer);
        if (status == TR_OK)
            status = tr_file_replace_finish(&file);
        else
            tr_file_replace_abandon(&file);
    }
    tr_vocabulary_destroy(&vocabulary);
    tr_free(origin);
    tr_trace_destroy(&trace);
    return status;
}
