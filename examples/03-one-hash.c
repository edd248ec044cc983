/* One run, one hash: trains a job in one go on one thread; then again on two threads, stopped half-way,
 * saved, and resumed on three. The weights are the same, bit for bit.
 *
 *     03-one-hash models/mnist-quick.yaml runs/example-hash STEPS
 */
#include <trireme/trireme.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Trains up to `steps` of the job's steps and writes the hash; saves if there is an output directory. */
static tr_status train(struct tr_train_settings settings, int threads, int64_t steps, char hash[65])
{
    tr_trainer *trainer = NULL;
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    settings.threads = threads;
    tr_status status = tr_trainer_create(&settings, &trainer);
    while (status == TR_OK && event.step < steps) status = tr_trainer_step(trainer, &event);
    if (status == TR_OK) status = tr_trainer_hash(trainer, hash);
    if (status == TR_OK && settings.out) status = tr_trainer_save(trainer, NULL);
    tr_trainer_destroy(&trainer);
    return status;
}

int main(int argc, char **argv)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    char undisturbed[65], half[65], resumed[65];
    if (argc < 4) {
        fprintf(stderr, "usage: %s MODEL DIRECTORY STEPS\n", argv[0]);
        return 2;
    }
    settings.model = argv[1];
    settings.steps = atol(argv[3]);

    tr_status status = train(settings, 1, settings.steps, undisturbed);
    settings.out = argv[2];
    if (status == TR_OK) status = train(settings, 2, settings.steps / 2, half);
    settings.resume = argv[2];
    if (status == TR_OK) status = train(settings, 3, settings.steps, resumed);
    if (status != TR_OK) {
        fprintf(stderr, "%s: %s\n", tr_status_name(status), tr_error_message());
        return 1;
    }
    printf("1 thread, undisturbed:          %s\n", undisturbed);
    printf("2 threads, half-way:            %s\n", half);
    printf("3 threads, resumed to the end:  %s\n", resumed);
    return strcmp(undisturbed, resumed) == 0 && strcmp(undisturbed, half) != 0 ? 0 : 1;
}
