#include "report/sections/examples.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/images/image.h"
#include "report/draw/html.h"
#include "report/sections/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trireme/predict.h"

/* Larger matrices are unreadable. */
#define CLASSES_MOST 40
#define SHOWN        40    /* most wrong predictions to show */
#define EXAMPLES     20000 /* most examples to predict */
#define AT_ONCE      250

struct wrong {
    int64_t index;
    int32_t label, answer;
    float certainty;
};

struct look {
    tr_predictor *predictor;
    const char *set; /* the test data, or the validation data where there are no others */
    tr_source *source;
    struct tr_predict_info info;
    int64_t examples, right;
    int64_t *confusion; /* [outputs][outputs] true by predicted */
    struct wrong wrong[SHOWN];
    int64_t wrongs; /* found; the first SHOWN are kept */
};

/* ---- looking ---- */

static tr_status open_look(struct look *look, const char *directory)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    settings.checkpoint = directory;
    TR_TRY(tr_predictor_create(&settings, &look->predictor));
    look->info = (struct tr_predict_info)TR_PREDICT_INFO_INIT;
    TR_TRY(tr_predictor_info(look->predictor, &look->info));
    if (look->info.of_tokens) return tr_fail(TR_EUNSUPPORTED, "the network scores tokens, not examples");
    if (look->info.pixel_height > 0)
        return tr_fail(TR_EUNSUPPORTED, "the network scores pixels, not examples");
    if (!tr_predictor_has_data(look->predictor, "test") &&
        tr_predictor_has_data(look->predictor, "validation"))
        look->set = "validation";
    TR_TRY(tr_predictor_open_data(look->predictor, look->set, &look->source));
    if (tr_source_info(look->source)->labels == TR_LABEL_PIXELS)
        return tr_fail(TR_EUNSUPPORTED, "the data have labels of pixels, not of examples");
    if (!look->info.classification) return TR_OK;
    size_t outputs = (size_t)look->info.outputs;
    look->confusion = tr_alloc_zero(outputs * outputs, sizeof *look->confusion);
    return look->confusion ? TR_OK : TR_ENOMEM;
}

static void close_look(struct look *look)
{
    tr_free(look->confusion);
    tr_source_close(&look->source);
    tr_predictor_destroy(&look->predictor);
}

static int32_t best_of(const float *output, int32_t count)
{
    int32_t best = 0;
    for (int32_t i = 1; i < count; i++)
        if (output[i] > output[best]) best = i;
    return best;
}

static tr_status judge(struct look *look, int64_t index, const float *output, void *features,
                       int64_t capacity)
{
    int32_t label = -1, answer = best_of(output, look->info.outputs);
    int64_t length;
    TR_TRY(tr_source_read(look->source, index, features, capacity, &length, &label));
    if (label < 0 || label >= look->info.outputs)
        return tr_fail(TR_EFORMAT, "example %" PRId64 " has class %d", index, label);
    look->confusion[(int64_t)label * look->info.outputs + answer]++;
    look->examples++;
    look->right += label == answer;
    if (label == answer) return TR_OK;
    if (look->wrongs < SHOWN)
        look->wrong[look->wrongs] = (struct wrong){index, label, answer, output[answer]};
    look->wrongs++;
    return TR_OK;
}

static tr_status look_at_all(struct look *look)
{
    int64_t count = tr_source_info(look->source)->count, capacity = tr_source_capacity(look->source);
    int32_t outputs = look->info.outputs;
    if (count > EXAMPLES) count = EXAMPLES;
    float *output = tr_alloc((size_t)outputs * AT_ONCE, sizeof *output);
    void *features = tr_alloc((size_t)capacity + 1, sizeof(float));
    tr_status status = output && features ? TR_OK : TR_ENOMEM;
    for (int64_t first = 0; status == TR_OK && first < count; first += AT_ONCE) {
        int64_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
        status = tr_predictor_source(look->predictor, look->source, first, some, output);
        for (int64_t i = 0; status == TR_OK && i < some; i++)
            status = judge(look, first + i, output + i * outputs, features, capacity);
    }
    tr_free(features);
    tr_free(output);
    return status;
}

/* ---- showing ---- */

static const char *class_name(const struct look *look, int32_t class, char number[16])
{
    if (look->info.class_names) return look->info.class_names[class];
    snprintf(number, 16, "%d", class);
    return number;
}

static void add_matrix(struct tr_text *html, const struct look *look)
{
    int32_t outputs = look->info.outputs;
    char number[16];
    tr_text_add(html, "<div class=\"scroll\"><table class=\"confusion\"><caption>rows: true class, columns: "
                      "predicted</caption><thead><tr><td></td>");
    for (int32_t c = 0; c < outputs; c++) tr_html_element(html, "th", NULL, class_name(look, c, number));
    tr_text_add(html, "</tr></thead><tbody>");
    for (int32_t r = 0; r < outputs; r++) {
        const int64_t *row = look->confusion + (int64_t)r * outputs;
        int64_t sum = 0;
        for (int32_t c = 0; c < outputs; c++) sum += row[c];
        tr_text_add(html, "<tr>");
        tr_html_element(html, "th", NULL, class_name(look, r, number));
        for (int32_t c = 0; c < outputs; c++) {
            /* Shades of a hundredth, by the share of the row. */
            double share = sum ? (double)row[c] / (double)sum : 0;
            tr_text_addf(html, "<td class=\"%s\" style=\"--h:%.2f\">", r == c ? "right" : "wrong",
                         r == c           ? share
                         : share * 10 > 1 ? 1
                                          : share * 10);
            if (row[c]) tr_text_addf(html, "%" PRId64, row[c]);
            tr_text_add(html, "</td>");
        }
        tr_text_add(html, "</tr>");
    }
    tr_text_add(html, "</tbody></table></div>");
}

static tr_status add_image(struct tr_text *html, const struct look *look, const struct wrong *wrong)
{
    const struct tr_source_info *info = tr_source_info(look->source);
    struct tr_image_size size = {info->height, info->width, info->channels};
    int64_t capacity = tr_source_capacity(look->source), length;
    uint8_t *pixels = tr_alloc((size_t)capacity + 1, 1), *png = NULL;
    size_t bytes;
    int32_t label;
    char a[16], b[16];
    if (!pixels) return TR_ENOMEM;
    tr_status status = tr_source_read(look->source, wrong->index, pixels, capacity, &length, &label);
    if (status == TR_OK) status = tr_image_encode(pixels, size, &png, &bytes);
    if (status == TR_OK) {
        tr_text_addf(html,
                     "<figure><img width=\"56\" alt=\"%s example %" PRId64 "\" src=\"data:image/png;base64,",
                     look->set, wrong->index);
        tr_html_base64(html, png, bytes);
        tr_text_add(html, "\"><figcaption>");
        tr_html_element(html, "b", NULL, class_name(look, wrong->label, a));
        tr_text_add(html, " read as ");
        tr_html_element(html, "b", NULL, class_name(look, wrong->answer, b));
        tr_text_addf(html, "<br><small>%.0f %%, no. %" PRId64 "</small></figcaption></figure>",
                     (double)wrong->certainty * 100, wrong->index);
    }
    tr_free(png);
    tr_free(pixels);
    return status;
}

static tr_status add_wrong(struct tr_text *html, const struct look *look)
{
    const struct tr_source_info *info = tr_source_info(look->source);
    int64_t shown = look->wrongs < SHOWN ? look->wrongs : SHOWN;
    bool grey_or_colour = info->channels == 1 || info->channels == 3;
    if (info->features != TR_FEATURE_IMAGE || !grey_or_colour || shown == 0) return TR_OK;
    tr_text_addf(html, "<h3>Misread: %" PRId64 " of %" PRId64 "%s</h3><div class=\"misread\">", look->wrongs,
                 look->examples, shown < look->wrongs ? ", the first of them" : "");
    for (int64_t i = 0; i < shown; i++) TR_TRY(add_image(html, look, &look->wrong[i]));
    tr_text_add(html, "</div>");
    return TR_OK;
}

static tr_status add_look(struct tr_text *html, const struct look *look)
{
    tr_html_elementf(html, "p", NULL,
                     "Step %" PRId64 ": %" PRId64 " of %" PRId64 " %s examples are right, %.2f %%.",
                     look->info.step, look->right, look->examples, look->set,
                     look->examples ? 100.0 * (double)look->right / (double)look->examples : 0);
    if (look->info.outputs <= CLASSES_MOST) add_matrix(html, look);
    return add_wrong(html, look);
}

tr_status tr_report_examples(struct tr_text *html, const char *directory)
{
    struct look look = {.set = "test"};
    tr_status status = open_look(&look, directory);
    tr_html_elementf(html, "h2", NULL, "%s data", strcmp(look.set, "test") == 0 ? "Test" : "Validation");
    if (status == TR_OK && !look.info.classification) {
        status = tr_report_values(html, look.predictor, look.set, look.source);
    } else if (status == TR_OK) {
        status = look_at_all(&look);
        if (status == TR_OK) status = add_look(html, &look);
    }
    if (status != TR_OK && status != TR_ENOMEM) {
        tr_text_add(html, "<p class=\"note\">The data could not be looked at: ");
        tr_html_text(html, tr_error_message());
        tr_text_add(html, "</p>");
        status = TR_OK;
    }
    close_look(&look);
    return status;
}
