/* trireme models: the models that ship with the program. */
#include "cli/program/commands.h"
#include "cli/terminal/output.h"
#include "cli/program/shipped.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "base/text/table.h"

#include <string.h>

#define FILE_MOST (1 << 20)

struct options {
    struct cli_common common;
    bool json;
};

static const struct tr_option table[] = {
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_HELP(struct options),
};

/* Where the first sentence of a text ends, or NULL: at a full stop before a capital. "et al. 2017" goes on.
 */
static const char *end_of_sentence(const char *text, size_t length)
{
    const char *limit = text + length;
    for (const char *at = text; (at = memmem(at, (size_t)(limit - at), ". ", 2)); at++)
        if (at + 2 == limit || (at[2] >= 'A' && at[2] <= 'Z')) return at;
    return NULL;
}

/* The first sentence of the comment at the top of a model file; "" without one. Returned, free with
   tr_free(). */
static tr_status read_about(const char *path, char **out)
{
    struct tr_file_content file;
    struct tr_text about = TR_TEXT_INIT;
    TR_TRY(tr_file_read(path, FILE_MOST, &file));
    for (const char *at = file.data; *at == '#'; at++) {
        at += 1 + strspn(at + 1, " ");
        size_t length = strcspn(at, "\n");
        const char *end = end_of_sentence(at, length);
        if (about.length > 0) tr_text_add(&about, " ");
        tr_text_add_bytes(&about, at, end ? (size_t)(end - at) : length);
        at += length;
        if (end || at[-1] == '.' || !*at) break;
    }
    tr_file_content_free(&file);
    if (about.length > 0 && about.bytes[about.length - 1] == '.') about.bytes[--about.length] = '\0';
    tr_text_add(&about, "");
    return tr_text_finish(&about, out);
}

/* Adds a model to the table, or prints it as a line of JSON. */
static tr_status tell(const char *directory, const char *name, bool json, struct tr_table *lines)
{
    char *about = NULL, *path = tr_format("%s/%s.yaml", directory, name);
    tr_status status = path ? read_about(path, &about) : TR_ENOMEM;
    if (status == TR_OK && json) {
        struct tr_json_writer writer;
        tr_json_begin(&writer, false);
        tr_json_text(&writer, "name", name);
        tr_json_text(&writer, "path", path);
        tr_json_text(&writer, "about", about);
        status = cli_print_json(&writer);
    } else if (status == TR_OK) {
        tr_table_cell(lines, "%s", name);
        tr_table_cell(lines, "%s", about);
    }
    tr_free(about);
    tr_free(path);
    return status;
}

static tr_status run(const void *options_)
{
    const struct options *options = options_;
    struct tr_table lines;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_file_names names;
    char *directory, *all;
    TR_TRY(cli_shipped_models(&directory, &names));
    tr_status status = TR_OK;
    tr_table_begin(&lines, "ll");
    for (int64_t i = 0; i < names.count && status == TR_OK; i++)
        status = tell(directory, names.name[i], options->json, &lines);
    tr_table_finish(&lines, &text);
    if (!options->json) tr_text_addf(&text, "\nin %s\n", directory);
    if (status == TR_OK && !options->json) {
        status = tr_text_finish(&text, &all);
        if (status == TR_OK) cli_print_lines(all);
    }
    tr_text_release(&text);
    tr_file_names_free(&names);
    tr_free(directory);
    return status;
}

const struct cli_command cli_models = {
    .name = "models",
    .summary = "list the models that ship with Trireme",
    .about = "Lists the model files that ship with Trireme, and their paths. Their names can be used instead "
             "of a model file, as in `trireme train mnist-quick`, from any directory; a file of that name in "
             "the current directory comes first.",
    CLI_OPTIONS(table, struct options),
    .run = run,
};
