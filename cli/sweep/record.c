/* sweep.json:
 *
 *     {"sweep": 1, "model": PATH, "model_digest": SHA-256 of the file, "settings": [those of all points],
 *      "fields": [paths of the axes],
 *      "points": [{"directory": "point-0001", "values": [of the axes], "seed": 1 (-1: the file's), "fold": 1
 * (0: there are none), "state": "done", "loss": 0.1, "accuracy": 0.9, "set": "test", "seconds": 1.5, "step":
 * 100, "hash": ..., "failure":
 * ""}]}
 */
#include "cli/sweep/sweep.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RECORD      "sweep.json"
#define RECORD_MOST ((uint64_t)64 << 20)

static const char *const states[] = {"waiting", "done", "failed"};

/* ---- writing ---- */

static void write_point(struct tr_json_writer *json, const struct cli_sweep_orders *orders,
                        const struct cli_sweep_plan *plan, const struct cli_sweep_point *point)
{
    tr_json_open_object(json, NULL);
    tr_json_text(json, "directory", point->directory);
    tr_json_open_array(json, "values");
    for (int a = 0; a < plan->axes; a++) tr_json_text(json, NULL, point->value[a]);
    tr_json_close_array(json);
    tr_json_integer(json, "seed", point->seed);
    if (point->fold > 0) tr_json_integer(json, "fold", point->fold);
    tr_json_text(json, "state", states[point->state]);
    tr_json_double(json, "loss", point->loss);
    tr_json_double(json, "accuracy", point->accuracy);
    if (cli_sweep_has_figure(orders)) tr_json_double(json, orders->by, point->figure);
    tr_json_text(json, "set", point->set);
    tr_json_double(json, "seconds", point->seconds);
    tr_json_integer(json, "step", point->step);
    tr_json_text(json, "hash", point->hash);
    tr_json_text(json, "failure", point->failure);
    tr_json_close_object(json);
}

tr_status cli_sweep_write_record(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan)
{
    struct tr_json_writer json;
    char *text, *path = tr_path_join(orders->out, RECORD);
    if (!path) return TR_ENOMEM;
    tr_json_begin(&json, true);
    tr_json_integer(&json, "sweep", 1);
    tr_json_text(&json, "model", orders->model);
    tr_json_text(&json, "model_digest", orders->digest);
    tr_json_open_array(&json, "settings");
    for (int32_t i = 0; i < plan->fixed.count; i++) tr_json_text(&json, NULL, plan->fixed.item[i]);
    tr_json_close_array(&json);
    tr_json_open_array(&json, "fields");
    for (int a = 0; a < plan->axes; a++) tr_json_text(&json, NULL, plan->axis[a].path);
    tr_json_close_array(&json);
    tr_json_open_array(&json, "points");
    for (int i = 0; i < plan->count; i++) write_point(&json, orders, plan, &plan->points[i]);
    tr_json_close_array(&json);
    tr_status status = tr_json_finish(&json, &text);
    if (status == TR_OK) {
        status = tr_file_write_atomic(NULL, path, text, strlen(text));
        tr_free(text);
    }
    tr_free(path);
    return status;
}

/* ---- reading ---- */

static bool is_text(const struct tr_json_value *value, const char *text)
{
    return value->kind == TR_JSON_TEXT && strcmp(value->text, text) == 0;
}

static bool same_texts(const struct tr_json_value *array, char *const *item, int count)
{
    const struct tr_json_value *at = array->first;
    if (array->count != count) return false;
    for (int i = 0; i < count; i++, at = at->next)
        if (!is_text(at, item[i])) return false;
    return true;
}

/* Settings that must be the same as when the sweep began. */
static tr_status check_head(const struct cli_sweep_orders *orders, const struct cli_sweep_plan *plan,
                            const char *path, const struct tr_json_value *root)
{
    const struct tr_json_value *settings, *fields;
    const char *digest;
    char *paths[CLI_SWEEP_AXES];
    TR_TRY(tr_json_get_text(root, path, "model_digest", &digest));
    TR_TRY(tr_json_get_array(root, path, "settings", &settings));
    TR_TRY(tr_json_get_array(root, path, "fields", &fields));
    for (int a = 0; a < plan->axes; a++) paths[a] = plan->axis[a].path;
    const char *other = NULL;
    if (strcmp(digest, orders->digest) != 0) other = "another model file, or before it was changed";
    if (!same_texts(settings, plan->fixed.item, plan->fixed.count)) other = "other settings for all points";
    if (!same_texts(fields, paths, plan->axes)) other = "other fields that points differ in";
    if (!other) return TR_OK;
    return tr_fail(TR_EMISMATCH, "\"%s\" has a sweep of %s; choose another directory by --out", orders->out,
                   other);
}

static bool same_point(const struct cli_sweep_plan *plan, const struct cli_sweep_point *point,
                       const struct tr_json_value *values, int64_t seed, int64_t fold)
{
    return point->seed == seed && point->fold == fold && same_texts(values, point->value, plan->axes);
}

/* The point of the plan that a member describes, added if it is of an earlier sweep. */
static tr_status find_point(struct cli_sweep_plan *plan, const char *path, const struct tr_json_value *object,
                            struct cli_sweep_point **out)
{
    const struct tr_json_value *values;
    char *value[CLI_SWEEP_AXES];
    int64_t seed, fold = tr_json_integer_or(object, "fold", 0);
    int axes = 0;
    TR_TRY(tr_json_get_array(object, path, "values", &values));
    TR_TRY(tr_json_get_integer(object, path, "seed", -1, INT64_MAX, &seed));
    for (const struct tr_json_value *at = values->first; at; at = at->next)
        if (axes < CLI_SWEEP_AXES && at->kind == TR_JSON_TEXT) value[axes++] = (char *)(uintptr_t)at->text;
    if (fold < 0 || fold > INT32_MAX) return tr_fail(TR_EFORMAT, "%s: a point has no number of a fold", path);
    if (axes != plan->axes || values->count != axes)
        return tr_fail(TR_EFORMAT,
                       "%s: a point has not one value for each field; remove the file to begin anew", path);
    for (int i = 0; i < plan->count; i++) {
        *out = &plan->points[i];
        if (same_point(plan, *out, values, seed, fold)) return TR_OK;
    }
    if (plan->count >= 2 * CLI_SWEEP_POINTS)
        return tr_fail(TR_EFORMAT, "%s has more than %d points; choose another directory by --out", path,
                       CLI_SWEEP_POINTS);
    return cli_sweep_add(plan, value, seed, (int32_t)fold, out);
}

/* A directory's name is used in commands: only names that this program writes are accepted. */
static bool is_directory_name(const char *name)
{
    size_t digits = strncmp(name, "point-", 6) == 0 ? strspn(name + 6, "0123456789") : 0;
    return digits >= 4 && digits <= 9 && name[6 + digits] == '\0';
}

static tr_status take_point(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan,
                            const char *path, const struct tr_json_value *object)
{
    struct cli_sweep_point *point;
    const char *directory, *state = tr_json_text_or_empty(object, "state");
    TR_TRY(find_point(plan, path, object, &point));
    TR_TRY(tr_json_get_text(object, path, "directory", &directory));
    if (!is_directory_name(directory))
        return tr_fail(TR_EFORMAT, "%s: \"%.40s\" is no directory of a point; remove the file to begin anew",
                       path, directory);
    snprintf(point->directory, sizeof point->directory, "%s", directory);
    if (strcmp(state, states[CLI_SWEEP_DONE]) != 0 && strcmp(state, states[CLI_SWEEP_FAILED]) != 0)
        return TR_OK;
    point->state = strcmp(state, states[CLI_SWEEP_DONE]) == 0 ? CLI_SWEEP_DONE : CLI_SWEEP_FAILED;
    point->loss = tr_json_number_or_nan(object, "loss");
    point->accuracy = tr_json_number_or_nan(object, "accuracy");
    point->figure = tr_json_number_or_nan(object, orders->by);
    point->seconds = tr_json_number_or_nan(object, "seconds");
    point->step = tr_json_integer_or(object, "step", 0);
    snprintf(point->set, sizeof point->set, "%s", tr_json_text_or_empty(object, "set"));
    snprintf(point->hash, sizeof point->hash, "%s", tr_json_text_or_empty(object, "hash"));
    snprintf(point->failure, sizeof point->failure, "%s", tr_json_text_or_empty(object, "failure"));
    return TR_OK;
}

static tr_status take_record(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan,
                             const char *path, const struct tr_file_content *content)
{
    const struct tr_json_value *points;
    tr_json *document;
    TR_TRY(tr_json_parse(content->data, content->size, path, &document));
    const struct tr_json_value *root = tr_json_root(document);
    tr_status status = check_head(orders, plan, path, root);
    if (status == TR_OK) status = tr_json_get_array(root, path, "points", &points);
    if (status == TR_OK)
        for (const struct tr_json_value *at = points->first; at && status == TR_OK; at = at->next)
            status = take_point(orders, plan, path, at);
    tr_json_destroy(&document);
    return status;
}

/* Numbers after the highest one in use. */
static void name_directories(struct cli_sweep_plan *plan)
{
    int64_t last = 0, number;
    for (int i = 0; i < plan->count; i++)
        if (plan->points[i].directory[0] && !tr_text_int64(plan->points[i].directory + 6, &number) &&
            number > last)
            last = number;
    for (int i = 0; i < plan->count; i++)
        if (!plan->points[i].directory[0])
            snprintf(plan->points[i].directory, sizeof plan->points[i].directory, "point-%04" PRId64, ++last);
}

tr_status cli_sweep_recall(const struct cli_sweep_orders *orders, struct cli_sweep_plan *plan)
{
    struct tr_file_content content;
    char *path = tr_path_join(orders->out, RECORD);
    tr_status status = path ? TR_OK : TR_ENOMEM;
    if (status == TR_OK && tr_file_exists(path)) {
        status = tr_file_read(path, RECORD_MOST, &content);
        if (status == TR_OK) {
            status = take_record(orders, plan, path, &content);
            tr_file_content_free(&content);
        }
    }
    tr_free(path);
    if (status == TR_OK) name_directories(plan);
    return status;
}
