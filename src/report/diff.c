/* Where two runs differ first: their digests (train/observe/digests.h) are compared step by step, in the
 * order in which a step computes: outputs by microbatch and layer, the gradient, the parameters.
 */
#include "trireme/report.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/file/settings.h"
#include "report/run.h"
#include "train/observe/digests.h"

#include <inttypes.h>
#include <string.h>

#define FILE_MOST (1 << 30)

/* The digests of a run by step; for a repeated step, the last ones. */
struct digests {
    struct recorded {
        int64_t step;
        const struct tr_json_value *line;
    } * step;
    int64_t steps;
    struct tr_json_lines lines;
};

/* ---- reading ---- */

/* There is room for a step for each line. */
static void take_line(struct digests *digests, const struct tr_json_value *line)
{
    const struct tr_json_value *step = tr_json_find(line, "step");
    if (!step || step->kind != TR_JSON_INTEGER) return;
    /* The beginning of a resumed run has only parameters; the earlier record of that step has more. */
    bool begins = !tr_json_find(line, "outputs");
    const struct recorded *end = digests->step + digests->steps;
    while (end > digests->step && end[-1].step > step->integer) end--;
    bool again = end > digests->step && end[-1].step == step->integer;
    digests->steps = end - digests->step - (again && !begins);
    if (again && begins) return;
    digests->step[digests->steps++] = (struct recorded){step->integer, line};
}

/* *there is false where the run recorded none. */
static tr_status read_digests(const char *directory, struct digests *digests, bool *there)
{
    char *path = tr_path_join(directory, TR_DIGESTS_FILE);
    if (!path) return TR_ENOMEM;
    tr_status status = tr_json_lines_read(path, FILE_MOST, &digests->lines);
    tr_free(path);
    *there = status == TR_OK;
    if (status != TR_OK) return status == TR_ENOTFOUND ? TR_OK : status;
    digests->step = tr_alloc((size_t)digests->lines.count, sizeof *digests->step);
    if (!digests->step) return TR_ENOMEM;
    for (int64_t i = 0; i < digests->lines.count; i++)
        take_line(digests, tr_json_root(digests->lines.line[i]));
    return TR_OK;
}

static void release_digests(struct digests *digests)
{
    tr_json_lines_release(&digests->lines);
    tr_free(digests->step);
}

/* ---- comparing ---- */

static bool same(const struct tr_json_value *a, const struct tr_json_value *b)
{
    return a && b && a->kind == TR_JSON_TEXT && b->kind == TR_JSON_TEXT && strcmp(a->text, b->text) == 0;
}

/* The first member of an object that differs in the other one, or is missing there; NULL if there is none. */
static const char *first_difference(const struct tr_json_value *a, const struct tr_json_value *b)
{
    if (!a || a->kind != TR_JSON_OBJECT) return NULL;
    for (const struct tr_json_value *member = a->first; member; member = member->next)
        if (!same(member, tr_json_find(b, member->key))) return member->key;
    return NULL;
}

static bool outputs_differ(const struct tr_json_value *a, const struct tr_json_value *b, struct tr_text *text)
{
    const struct tr_json_value *left = tr_json_find(a, "outputs"), *right = tr_json_find(b, "outputs");
    if (!left || !right || left->kind != TR_JSON_ARRAY || right->kind != TR_JSON_ARRAY) return false;
    int64_t microbatch = 0;
    left = left->first;
    right = right->first;
    for (; left && right; left = left->next, right = right->next, microbatch++) {
        const char *name = first_difference(left, right);
        if (!name) continue;
        tr_text_addf(text, "microbatch %" PRId64 ", output of layer \"%s\"", microbatch, name);
        return true;
    }
    if (left || right) tr_text_add(text, "the number of microbatches");
    return left || right;
}

static bool tensors_differ(const struct tr_json_value *a, const struct tr_json_value *b, const char *kind,
                           const char *what, struct tr_text *text)
{
    const struct tr_json_value *left = tr_json_find(a, kind), *right = tr_json_find(b, kind);
    const char *name = left && right ? first_difference(left, right) : NULL;
    if (name) tr_text_addf(text, "%s \"%s\"", what, name);
    return name != NULL;
}

/* Describes the first difference of a step in the order of computing. */
static bool steps_differ(const struct tr_json_value *a, const struct tr_json_value *b, struct tr_text *text)
{
    if (outputs_differ(a, b, text)) return true;
    const struct tr_json_value *left = tr_json_find(a, "loss"), *right = tr_json_find(b, "loss");
    if (left && right && !same(left, right)) {
        tr_text_add(text, "the loss");
        return true;
    }
    return tensors_differ(a, b, "gradient", "gradient of", text) ||
           tensors_differ(a, b, "parameters", "parameter", text);
}

/* Looks for the first difference in steps that both runs recorded. */
static bool digests_differ(const struct digests *a, const struct digests *b, struct tr_text *text)
{
    int64_t i = 0, j = 0, common = 0, last = 0;
    while (i < a->steps && j < b->steps) {
        int64_t left = a->step[i].step, right = b->step[j].step;
        if (left != right) {
            *(left < right ? &i : &j) += 1;
            continue;
        }
        struct tr_text what = TR_TEXT_INIT;
        bool differ = steps_differ(a->step[i].line, b->step[j].line, &what);
        if (differ) {
            tr_text_addf(text, "first difference: step %" PRId64 ", %s", left, what.bytes ? what.bytes : "");
            if (common > 0)
                tr_text_addf(text, "; equal up to step %" PRId64 " (%" PRId64 " steps compared)", last,
                             common);
            tr_text_add(text, "\n");
        }
        if (what.failed) text->failed = true;
        tr_text_release(&what);
        if (differ) return true;
        last = left;
        common++;
        i++;
        j++;
    }
    if (common > 0)
        tr_text_addf(text,
                     "digests: equal in all %" PRId64 " steps that both recorded, up to step %" PRId64 "\n",
                     common, last);
    else
        tr_text_add(text, "digests: the runs recorded none of the same step\n");
    return false;
}

/* Without digests, reports tell roughly. */
static bool reports_differ(const struct tr_run *a, const struct tr_run *b, struct tr_text *text)
{
    int64_t i = 0, j = 0, last = 0;
    while (i < a->points && j < b->points) {
        const struct tr_run_point *left = &a->point[i], *right = &b->point[j];
        if (left->step != right->step) {
            *(left->step < right->step ? &i : &j) += 1;
            continue;
        }
        if (memcmp(&left->loss, &right->loss, sizeof left->loss) != 0) {
            tr_text_addf(text,
                         "the reported losses differ from step %" PRId64
                         " on (%.9g and %.9g)%s; train both with record_digests to learn more\n",
                         left->step, left->loss, right->loss, last ? "" : ", the first that both reported");
            return true;
        }
        last = left->step;
        i++;
        j++;
    }
    if (last) tr_text_addf(text, "the reported losses are equal up to step %" PRId64 "\n", last);
    return false;
}

/* ---- both runs ---- */

/* What is known of two runs, one of which may not have ended. */
enum verdict { OPEN, EQUAL, DIFFERENT };

/* How many differences are named. */
#define NAMED_MOST 8

/* Adds what differs between two texts of settings, after `before`; nothing where one of the runs did not say
   or is no such text. */
static void add_differences(const char *a, const char *b, const char *before, struct tr_text *text)
{
    char *differences = NULL;
    if (!*a || !*b) return;
    tr_status status = tr_settings_compare(a, b, " and ", NAMED_MOST, &differences);
    if (status == TR_ENOMEM) text->failed = true;
    if (status == TR_OK && *differences) tr_text_addf(text, "%s%s", before, differences);
    tr_free(differences);
}

static bool settings_differ(const struct tr_run *a, const struct tr_run *b, struct tr_text *text)
{
    if (strcmp(a->settings, b->settings) == 0) {
        tr_text_addf(text, "settings: equal (%.16s)\n", a->settings);
        return false;
    }
    tr_text_addf(text, "settings: differ (%.16s and %.16s)", a->settings, b->settings);
    if (*a->settings_text && *b->settings_text) {
        add_differences(a->settings_text, b->settings_text, "; ", text);
    } else {
        if (a->seed != b->seed) tr_text_addf(text, "; seed %" PRId64 " and %" PRId64, a->seed, b->seed);
        if (a->batch != b->batch) tr_text_addf(text, "; batch %" PRId64 " and %" PRId64, a->batch, b->batch);
        if (a->microbatches != b->microbatches)
            tr_text_addf(text, "; microbatches %" PRId64 " and %" PRId64, a->microbatches, b->microbatches);
        if (a->parameters != b->parameters)
            tr_text_addf(text, "; parameters %" PRId64 " and %" PRId64, a->parameters, b->parameters);
    }
    tr_text_add(text, "\n");
    return true;
}

static void add_strategy(const struct tr_run *run, struct tr_text *text)
{
    tr_text_addf(text, "%s on %" PRId64 " process%s", run->strategy, run->ranks, run->ranks == 1 ? "" : "es");
}

/* How the processes shared the job, which by itself says nothing about the parameters. */
static void compare_strategies(const struct tr_run *a, const struct tr_run *b, struct tr_text *text)
{
    if (!*a->strategy || !*b->strategy) return;
    bool same = strcmp(a->strategy, b->strategy) == 0 && a->ranks == b->ranks;
    bool equal = same && strcmp(a->strategy_options, b->strategy_options) == 0;
    tr_text_add(text, equal ? "strategy: equal (" : "strategy: differ (");
    add_strategy(a, text);
    if (!same) {
        tr_text_add(text, " and ");
        add_strategy(b, text);
    } else if (!equal) {
        add_differences(a->strategy_options, b->strategy_options, ": ", text);
    }
    tr_text_add(text, ")\n");
}

static enum verdict compare_hashes(const struct tr_run *a, const struct tr_run *b, struct tr_text *text)
{
    if (!*a->hash && !*b->hash) {
        tr_text_add(text, "hash: neither run did end\n");
        return OPEN;
    }
    if (!*a->hash || !*b->hash) {
        tr_text_addf(text, "hash: %s did not end\n", *a->hash ? b->path : a->path);
        return OPEN;
    }
    bool equal = strcmp(a->hash, b->hash) == 0;
    tr_text_addf(text, equal ? "hash: equal (%.16s)\n" : "hash: differ (%.16s and %.16s)\n", a->hash,
                 b->hash);
    return equal ? EQUAL : DIFFERENT;
}

/* Other settings may lead to the same parameters, but without a hash this is unknown. */
static tr_status compare(const struct tr_run *a, const struct tr_run *b, struct tr_text *text,
                         enum verdict *verdict)
{
    struct digests left = {0}, right = {0};
    bool has_left, has_right = false;
    bool differ = settings_differ(a, b, text);
    compare_strategies(a, b, text);
    *verdict = compare_hashes(a, b, text);
    if (*verdict != OPEN) differ = false;
    tr_status status = read_digests(a->path, &left, &has_left);
    if (status == TR_OK) status = read_digests(b->path, &right, &has_right);
    if (status == TR_OK && has_left && has_right)
        differ |= digests_differ(&left, &right, text);
    else if (status == TR_OK && *verdict != EQUAL)
        differ |= reports_differ(a, b, text);
    if (differ) *verdict = DIFFERENT;
    release_digests(&left);
    release_digests(&right);
    return status;
}

tr_status tr_diff(const char *run_a, const char *run_b, bool *equal, char **out)
{
    static const char *const verdicts[] = {
        [OPEN] = "no difference was found, but without the hashes of both runs they may not be equal\n",
        [EQUAL] = "the runs are equal\n",
        [DIFFERENT] = "the runs are not equal\n",
    };
    struct tr_run *a = NULL, *b = NULL;
    enum verdict verdict = OPEN;
    struct tr_text text = TR_TEXT_INIT, head = TR_TEXT_INIT;
    tr_status status = tr_run_read(run_a, &a);
    if (status == TR_OK) status = tr_run_read(run_b, &b);
    if (status == TR_OK) status = compare(a, b, &text, &verdict);
    if (status == TR_OK) {
        *equal = verdict == EQUAL;
        tr_text_add(&head, verdicts[verdict]);
        if (text.bytes) tr_text_add(&head, text.bytes);
        head.failed |= text.failed;
        status = tr_text_finish(&head, out);
    }
    tr_text_release(&head);
    tr_text_release(&text);
    tr_run_destroy(&a);
    tr_run_destroy(&b);
    return status;
}
