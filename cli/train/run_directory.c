#include "cli/train/run_directory.h"

#include "base/alloc.h"
#include "base/options/config.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "checkpoint/checkpoint.h"
#include "job/file/override.h"
#include "strategy/strategy.h"
#include "train/describe/plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define RUNS "runs"

/* The job's name as the name of a directory that stays below RUNS. */
static void make_harmless(char *name)
{
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-+=.,@", *at)) *at = '-';
    if (*name == '.') *name = '-';
}

static tr_status directory_of_job(const char *model, const struct tr_string_list *set, char **out)
{
    tr_config *root = NULL;
    TR_TRY(tr_config_read(model, &root));
    tr_status status = TR_OK;
    char *name = NULL;
    const struct tr_job_settings changes = {
        .set = (const char *const *)set->item,
        .set_count = set->count,
        .first_of_strategy = tr_strategy_first_option,
    };
    TR_TRY_GOTO(tr_job_override(root, &changes), done);
    const tr_config *node = tr_config_get(root, "name");
    const char *text = node ? tr_config_text(node) : NULL;
    if (!text || !*text) {
        status = tr_config_fail(TR_EINVAL, node ? node : root,
                                "the job has no name; write `name: ...` into the file");
        goto done;
    }
    name = tr_strdup(text);
    if (!name) {
        status = TR_ENOMEM;
        goto done;
    }
    make_harmless(name);
    *out = tr_path_join(RUNS, name);
    if (!*out) status = TR_ENOMEM;
done:
    tr_free(name);
    tr_config_destroy(&root);
    return status;
}

/* A checkpoint lies in the directory of its run. */
static tr_status directory_of_resume(const char *resume, char **out)
{
    char *manifest = tr_path_join(resume, "manifest.json");
    if (!manifest) return TR_ENOMEM;
    *out = tr_file_exists(manifest) ? tr_path_parent(resume) : tr_strdup(resume);
    tr_free(manifest);
    return *out ? TR_OK : TR_ENOMEM;
}

tr_status cli_run_directory(const char *model, const struct tr_string_list *set, const char *resume,
                            char **out)
{
    return resume ? directory_of_resume(resume, out) : directory_of_job(model, set, out);
}

/* ---- numbered directories ---- */

/* The highest number of an entry "NAME-<number>" of a directory; 0 for none. */
static tr_status highest_number(const char *directory, const char *name, int64_t *out)
{
    struct tr_file_names names;
    size_t length = strlen(name);
    *out = 0;
    TR_TRY(tr_file_list(NULL, directory, &names));
    for (int64_t i = 0; i < names.count; i++) {
        int64_t number;
        const char *entry = names.name[i];
        if (strncmp(entry, name, length) != 0 || entry[length] != '-') continue;
        if (!tr_text_int64(entry + length + 1, &number) && number > *out && number < INT64_MAX) *out = number;
    }
    tr_file_names_free(&names);
    return TR_OK;
}

/* Makes "<base>-<number>", with the next free number. Other processes may do the same meanwhile. */
static tr_status make_numbered(const char *base, char **out)
{
    char *above = tr_path_parent(base);
    int64_t number = 0;
    tr_status status = above ? tr_file_make_directories(NULL, above) : TR_ENOMEM;
    if (status == TR_OK) status = highest_number(above, tr_path_name(base), &number);
    tr_free(above);
    for (; status == TR_OK; tr_free(*out)) {
        *out = tr_format("%s-%" PRId64, base, ++number);
        if (!*out) return TR_ENOMEM;
        status = tr_file_make_directory(NULL, *out);
        if (status == TR_OK) return TR_OK;
        if (tr_file_exists(*out)) status = TR_OK;
    }
    *out = NULL;
    return status;
}

tr_status cli_run_directory_new(const char *model, const struct tr_string_list *set, const char *resume,
                                char **out)
{
    char *kept = NULL, *base = NULL;
    if (!model) TR_TRY(tr_train_kept_file(resume, &kept));
    tr_status status = directory_of_job(model ? model : kept, set, &base);
    if (status == TR_OK) status = make_numbered(base, out);
    tr_free(base);
    tr_free(kept);
    return status;
}

void cli_run_directory_drop(const char *directory)
{
    rmdir(directory);
    rmdir(RUNS);
}

/* ---- what is there ---- */

tr_status cli_run_check_unused(const char *directory)
{
    int64_t step;
    TR_TRY(tr_checkpoint_latest(directory, &step));
    if (step < 0) return TR_OK;
    char *word = tr_text_word(directory);
    if (!word) return TR_ENOMEM;
    tr_fail(TR_EINVAL,
            "%s has checkpoints of an earlier run, up to step %" PRId64
            "; --resume %s goes on from there, --out DIR writes elsewhere, --overwrite removes them and "
            "begins anew",
            directory, step, word);
    tr_free(word);
    return TR_EINVAL;
}

tr_status cli_run_check_writable(const char *directory)
{
    tr_status status = TR_OK;
    char *there = tr_strdup(directory);
    /* A directory that does not exist will be made in its nearest existing parent. */
    while (there && !tr_file_exists(there)) {
        char *above = tr_path_parent(there);
        bool top = above && strcmp(above, there) == 0;
        tr_free(there);
        there = above;
        if (top) break;
    }
    char *trial = there ? tr_path_join(there, ".writable") : NULL;
    if (!trial)
        status = TR_ENOMEM;
    else if (!tr_file_is_directory(there))
        status = tr_fail(TR_EINVAL,
                         "nothing can be written to the output directory %s: %s is not a directory; choose "
                         "another with --out",
                         directory, there);
    else if ((status = tr_file_replace_check(trial)) != TR_OK && status != TR_ENOMEM)
        status = tr_fail(TR_EINVAL, "nothing can be written to the output directory %s: %s", directory,
                         tr_error_message());
    tr_free(trial);
    tr_free(there);
    return status;
}
