/* The C export: a network as one C99 file that needs only the C library. */
#include "export/c/network.h"
#include "export/formats.h"
#include "export/origin.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Text from outside for a comment, which it must not end. Returned, free with tr_free(). */
static char *comment_text(const char *string)
{
    char *copy = tr_strdup(string);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127 || *c == '\\' || *c == '*') *c = ' ';
    return copy;
}

/* ---- declarations ---- */

/* A source of an example; joined ones have names. */
static void add_source(const struct tr_c_network *network, int number, struct tr_text *text)
{
    const struct tr_shape *given = &network->trace->value[TR_VALUE_GIVEN + number].shape;
    char *name = comment_text(tr_trace_given_name(network->trace, number));
    if (number > 0) tr_text_add(text, ";\n   then ");
    if (name && name[0]) tr_text_addf(text, "%s: ", name);
    if (given->rank == 3)
        tr_text_addf(text,
                     "an image, height %" PRId64 ", width %" PRId64 ", channels %" PRId64
                     " (which lie together), pixels from 0 to 255",
                     given->size[0], given->size[1], given->size[2]);
    else if (network->trace->given > 1)
        tr_text_addf(text, "%" PRId64 " numbers as in the data", tr_shape_count(given));
    else
        tr_text_add(text, "numbers as in the data");
    text->failed |= !name;
    tr_free(name);
}

static void add_input(const struct tr_c_network *network, struct tr_text *text)
{
    if (network->tokens) {
        tr_text_addf(text,
                     "   `tokens` [length]: numbers of words, 0 to %" PRId64
                     "; 0 is the unknown word. `length` may be 0.\n",
                     network->trace->model->vocabulary - 1);
        return;
    }
    tr_text_addf(text, "   `input` [%s_INPUTS]: ", network->upper);
    for (int i = 0; i < network->trace->given; i++) add_source(network, i, text);
    tr_text_add(text, ".\n");
}

/* The number of tokens in the workspace, which can be changed when the file is compiled. */
static void add_tokens(const struct tr_c_network *network, struct tr_text *text)
{
    if (!network->tokens || network->most_tokens == 0) return;
    tr_text_addf(text,
                 "/* The longest text, in tokens: the workspace is made for so many. Another number may be "
                 "defined before\n   every use of this file. */\n"
                 "#ifndef %s_TOKENS\n#define %s_TOKENS %" PRId64 "\n#endif\n",
                 network->upper, network->upper, network->most_tokens);
}

static void add_workspace(const struct tr_c_network *network, struct tr_text *text)
{
    int64_t floats = network->workspace;
    if (tr_c_goes_on(network)) floats += tr_c_floats_of_texts(network);
    if (floats == 0 && network->workspace_each == 0) floats = 1;
    const int64_t each = network->workspace_each + (tr_c_goes_on(network) && tr_c_keeps_all(network));
    tr_text_addf(text,
                 each > 0 ? "#define %s_WORKSPACE (%s) /* floats */\n\n"
                          : "#define %s_WORKSPACE %s /* floats */\n\n",
                 network->upper, tr_c_size(network, floats, each).text);
    if (each > 0)
        tr_text_addf(
            text,
            "#if %s_TOKENS < 1 || %s_WORKSPACE > 0x7fffffff\n#error \"%s_TOKENS is out of range\"\n#endif\n",
            network->upper, network->upper, network->upper);
}

static void add_declarations(const struct tr_c_network *network, struct tr_text *text)
{
    const struct tr_trace *trace = network->trace;
    const char *name = network->name, *upper = network->upper;
    if (!network->tokens) tr_text_addf(text, "#define %s_INPUTS    %" PRId64 "\n", upper, network->inputs);
    tr_text_addf(text, "#define %s_OUTPUTS   %" PRId64 "\n", upper, tr_shape_count(&trace->model->output));
    add_tokens(network, text);
    add_workspace(network, text);
    tr_text_add(text, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    tr_text_add(text, "/* Predicts one example.\n");
    add_input(network, text);
    char returned[3 * TR_C_IDENTIFIER] = "";
    if (network->tokens && network->most_tokens > 0)
        snprintf(returned, sizeof returned,
                 "\n   Returns how many tokens were read: `length`, or %s_TOKENS of a longer text.", upper);
    else if (network->tokens)
        snprintf(returned, sizeof returned, "\n   Returns `length`.");
    tr_text_addf(text, "   `output` [%s%s_OUTPUTS]: %s%s.\n",
                 trace->model->output.sequence ? "length * " : "", upper,
                 trace->model->output.sequence ? "for each token, " : "", tr_c_answers_are(network));
    tr_text_addf(text, "   `workspace` [%s_WORKSPACE]: overwritten. The three do not overlap.%s */\n", upper,
                 returned);
    tr_text_addf(text, "%s %s_predict(%s, float *output, float *workspace);\n",
                 network->tokens ? "int32_t" : "void", name,
                 network->tokens ? "const int32_t *tokens, int32_t length" : "const float *input");
    char below[TR_C_IDENTIFIER + 8] = "";
    if (network->most_tokens > 0) snprintf(below, sizeof below, "%s_TOKENS", upper);
    if (trace->model->output.sequence && !network->whole)
        tr_text_addf(text,
                     "/* Predicts for token number `t` of a text (from 0%s%s), whose tokens before have gone "
                     "through the same\n"
                     "   workspace, which keeps them. `output` [%s_OUTPUTS] as above. */\n"
                     "void %s_next(int32_t t, int32_t token, float *output, float *workspace);\n",
                     network->most_tokens > 0 ? ", below " : "", below, upper, name);
    if (tr_c_goes_on(network)) tr_c_declare_texts(network, text);
    tr_c_declare_answers(network, text);
    tr_text_add(text, "#ifdef __cplusplus\n}\n#endif\n\n");
}

/* ---- the file ---- */

static tr_status write_file(struct tr_c_network *network, const char *origin, const char *file,
                            struct tr_file_writer *writer)
{
    struct tr_text text = TR_TEXT_INIT;
    const struct tr_c_names names = {network->name, network->upper, file, network->texts};
    TR_TRY(tr_c_network_body(network));
    tr_c_write_answers(network);
    if (tr_c_goes_on(network)) tr_c_parts_use(&network->parts, TR_C_draw);
    tr_text_addf(&text, "/* %s\n", origin);
    tr_c_fill("head", &names, &text);
    add_declarations(network, &text);
    tr_text_addf(&text, "#ifndef %s_DECLARATIONS\n", network->upper);
    tr_c_fill("guards", &names, &text);
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

/* The vocabulary of a network that continues texts, made of the labels of a corpus; else NULL, also where
   texts end: such files take and give numbers of tokens. Returned, destroy with tr_vocabulary_destroy(). */
static tr_status open_vocabulary(const struct tr_job *job, tr_vocabulary **out)
{
    int32_t classes;
    *out = NULL;
    bool goes_on = job->state && job->features == TR_FEATURE_TOKENS && tr_job_is_of_tokens(job) &&
                   tr_job_is_classification(job) &&
                   tr_shape_count(&job->model->output) >= job->model->vocabulary &&
                   !tr_vocabulary_state_has_boundary(job->state);
    return goes_on ? tr_vocabulary_read(job->state, out, &classes) : TR_OK;
}

tr_status tr_export_c(const struct tr_export *what, const char *path)
{
    const struct tr_job *job = what->job;
    tr_vocabulary *vocabulary;
    struct tr_trace *trace;
    TR_TRY(tr_trace_create(job->model, what->parameters, what->intake, &trace));
    char *origin = tr_export_origin(what);
    tr_status status = open_vocabulary(job, &vocabulary);
    struct tr_c_settings settings = {what->name, tr_path_name(path), origin, vocabulary};
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
