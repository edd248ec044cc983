/* Trains the job of a model file and says how it goes.
 *
 *     01-train models/mnist-quick.yaml runs/example [SETTING...]       e.g. train.epochs=1
 */
#include <trireme/trireme.h>

#include <stdio.h>

static int report(void *user, const struct tr_train_event *event)
{
    (void)user;
    if (event->kind == TR_EVENT_STEP)
        printf("step %lld of %lld: loss %.4f, accuracy %.4f\n", (long long)event->step,
               (long long)event->steps, event->loss, event->accuracy);
    if (event->kind == TR_EVENT_EVALUATION)
        printf("%s: loss %.4f, accuracy %.4f\n", event->name, event->loss, event->accuracy);
    if (event->kind == TR_EVENT_CHECKPOINT) printf("saved %s\n", event->name);
    if (event->kind == TR_EVENT_WARNING) fprintf(stderr, "warning: %s\n", event->name);
    if (event->kind == TR_EVENT_END) printf("hash %s\n", event->hash);
    return 0;
}

int main(int argc, char **argv)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL DIRECTORY [SETTING...]\n", argv[0]);
        return 2;
    }
    settings.model = argv[1];
    settings.out = argv[2];
    settings.set = (const char *const *)(argv + 3);
    settings.set_count = argc - 3;

    tr_status status = tr_trainer_create(&settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, report, NULL);
    if (status != TR_OK) fprintf(stderr, "%s: %s\n", tr_status_name(status), tr_error_message());
    tr_trainer_destroy(&trainer);
    return status == TR_OK ? 0 : 1;
}
