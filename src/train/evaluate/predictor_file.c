/* A file as data: read like the job's training data. */
#include "train/evaluate/predictor.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/csv.h"
#include "data/text/text_source.h"

#include <string.h>

/* Parts of the training data that a file may lack. */
struct lack {
    bool labels, skipped;
};

/* The description of the training data with another path. Returned, free with tr_free(). */
static tr_status describe(const tr_config *train, const char *format, const char *path, struct lack lack,
                          char **out)
{
    char *text;
    tr_config *root;
    bool table = strcmp(format, tr_source_format_csv.name) == 0;
    TR_TRY(tr_config_dump(train, &text));
    tr_status status = tr_config_parse(text, strlen(text), "data.train", &root);
    tr_free(text);
    if (status != TR_OK) return status;
    status = tr_config_put_text(root, format, "path", path);
    if (status == TR_OK && lack.labels && table) status = tr_config_put_text(root, format, "label", "none");
    if (status == TR_OK && lack.labels && table)
        status = tr_config_put_texts(root, format, "label_columns", 0, NULL);
    if (status == TR_OK && lack.labels && !table)
        status = tr_config_put_text(root, format, "labels", "false");
    if (status == TR_OK && lack.labels && !table) status = tr_config_put_text(root, format, "tags", "false");
    if (status == TR_OK && lack.skipped) status = tr_config_put_texts(root, format, "skip_columns", 0, NULL);
    if (status == TR_OK) status = tr_config_dump(root, out);
    tr_config_destroy(&root);
    return status;
}

static tr_status open_lacking(tr_predictor *predictor, const char *format, const char *path, struct lack lack,
                              tr_source **out)
{
    char *description;
    TR_TRY(describe(predictor->job->data.train, format, path, lack, &description));
    tr_status status = tr_predictor_open_source(predictor, description, NULL, out);
    tr_free(description);
    return status;
}

tr_status tr_predictor_open_file(tr_predictor *predictor, const char *path, tr_source **out)
{
    static const struct lack lacks[] = {{false, false}, {true, false}, {false, true}, {true, true}};
    const tr_config *train = predictor->job->data.train;
    bool table = train && tr_config_get(train, tr_source_format_csv.name);
    if (!table && !(train && tr_config_get(train, tr_source_format_text.name)))
        return tr_fail(
            TR_EINVAL,
            "\"%s\" alone says too little: the network of \"%s\" was trained neither on a table nor on "
            "lines of text; describe the data as in a model file, {FORMAT: {OPTION: VALUE}}",
            path, predictor->path);
    const char *format = table ? tr_source_format_csv.name : tr_source_format_text.name;
    for (int i = 0; i < (table ? 4 : 2); i++) {
        tr_status status = open_lacking(predictor, format, path, lacks[i], out);
        if (status == TR_OK || status == TR_ENOMEM || status == TR_EIO || status == TR_ENOTFOUND)
            return status;
    }
    /* Reports the fault of the interpretation closest to the training data. */
    return open_lacking(predictor, format, path, lacks[0], out);
}
