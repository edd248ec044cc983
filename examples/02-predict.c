/* Reads digits with a trained network: the first ones of the test data, with what the network makes of them.
 *
 *     02-predict runs/example [COUNT]
 */
#include <trireme/trireme.h>

#include <stdio.h>
#include <stdlib.h>

/* Draws an image with a character for each pixel. */
static void draw(const uint8_t *image, const struct tr_predict_info *info)
{
    static const char shades[] = " .:-=+*#%@";
    for (int32_t row = 0; row < info->height; row++) {
        for (int32_t column = 0; column < info->width; column++) {
            int32_t byte = image[(row * info->width + column) * info->channels];
            putchar(shades[byte * 9 / 255]);
        }
        putchar('\n');
    }
}

static tr_status predict(tr_predictor *predictor, const tr_source *digits, int64_t index)
{
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_status status = tr_predictor_info(predictor, &info);
    if (status != TR_OK) return status;
    int64_t size = tr_source_capacity(digits), length;
    uint8_t *image = (uint8_t *)malloc((size_t)size);
    float *probability = (float *)malloc((size_t)info.outputs * sizeof *probability);
    int32_t label = -1, best = 0;
    status = image && probability ? tr_source_read(digits, index, image, size, &length, &label) : TR_ENOMEM;
    if (status == TR_OK) status = tr_predictor_image(predictor, image, probability);
    if (status == TR_OK) {
        for (int32_t k = 1; k < info.outputs; k++)
            if (probability[k] > probability[best]) best = k;
        draw(image, &info);
        printf("read as %d with probability %.4f; it is %d\n\n", (int)best, (double)probability[best],
               (int)label);
    }
    free(image);
    free(probability);
    return status;
}

int main(int argc, char **argv)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor = NULL;
    tr_source *digits = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: %s CHECKPOINT [COUNT]\n", argv[0]);
        return 2;
    }
    settings.checkpoint = argv[1];
    int64_t count = argc > 2 ? atol(argv[2]) : 3;

    tr_status status = tr_predictor_create(&settings, &predictor);
    if (status == TR_OK) status = tr_predictor_open_data(predictor, "test", &digits);
    for (int64_t i = 0; status == TR_OK && i < count; i++) status = predict(predictor, digits, i);
    if (status != TR_OK) fprintf(stderr, "%s: %s\n", tr_status_name(status), tr_error_message());
    tr_source_close(&digits);
    tr_predictor_destroy(&predictor);
    return status == TR_OK ? 0 : 1;
}
