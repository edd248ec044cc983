/* Training inside of a program that has an event loop of its own: between two events a step, and never a
 * wait. A signal asks for a stop, by a flag that the creation of the trainer obeys, too; the state is kept in
 * memory, and the rest is trained from there, to the hash of a run that nobody stopped.
 *
 *     06-event-loop
 *
 * The loop waits for commands on a pipe, as a server would for its clients; the example writes them itself.
 */
#include <trireme/trireme.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POINTS 600

static float point[POINTS][2];
static int32_t above[POINTS];

static const char model[] = "name: halves\n"
                            "layers: [{dense: {units: 16, activation: tanh}}, {dropout: 0.1}, {dense: 2}]\n"
                            "loss: softmax_cross_entropy\n"
                            "optimizer: {rule: adam, rate: 0.01}\n"
                            "train: {batch: 50, steps: 60}\n";

static tr_stop *stop; /* for the handler alone */

static void on_signal(int number)
{
    (void)number;
    tr_stop_set(stop, 1);
}

static tr_status make_points(tr_source **out)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    uint32_t state = 7;
    int i, k;
    for (i = 0; i < POINTS; i++) {
        for (k = 0; k < 2; k++) {
            state = state * 1664525u + 1013904223u;
            point[i][k] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        above[i] = point[i][1] > point[i][0];
    }
    arrays.features.data = point;
    arrays.features.type = TR_ARRAY_FLOAT32;
    arrays.features.dimensions = 2;
    arrays.features.shape[0] = POINTS;
    arrays.features.shape[1] = 2;
    arrays.labels.data = above;
    arrays.labels.type = TR_ARRAY_INT32;
    arrays.labels.dimensions = 1;
    arrays.labels.shape[0] = POINTS;
    return tr_source_from_arrays(&arrays, out);
}

/* What the loop does with an event. */
struct loop {
    tr_trainer *trainer;
    int commands; /* the end of the pipe that is read */
    int events;   /* how many came */
    int over;
};

static void obey(struct loop *loop)
{
    char command;
    if (read(loop->commands, &command, 1) != 1) return;
    loop->events++;
    if (command == 'q') raise(SIGTERM);
}

/* Events first; where there is none, a step. */
static tr_status turn(struct loop *loop, const struct tr_train_info *info, struct tr_train_event *event)
{
    struct pollfd waiting;
    tr_status status = TR_OK;
    waiting.fd = loop->commands;
    waiting.events = POLLIN;
    waiting.revents = 0;
    if (poll(&waiting, 1, 0) > 0) {
        obey(loop);
        return TR_OK;
    }
    status = tr_trainer_step(loop->trainer, event);
    loop->over = status != TR_OK || event->step >= info->steps;
    return status;
}

/* Trains until `quit_at` steps are done, when somebody sends "q"; 0: to the end. The state is returned. */
static tr_status train(struct tr_train_settings settings, int quit_at, char hash[65], void **state,
                       size_t *size)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    struct loop loop;
    struct sigaction action;
    int pipes[2], stopped = 0;
    tr_status status;
    memset(&loop, 0, sizeof loop);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGTERM, &action, NULL);
    if (pipe(pipes) != 0) return TR_EIO;
    loop.commands = pipes[0];
    status = tr_stop_create(&stop);
    settings.stop = stop;
    if (status == TR_OK) status = tr_trainer_create(&settings, &loop.trainer);
    if (status == TR_OK) status = tr_trainer_info(loop.trainer, &info);
    while (status == TR_OK && !loop.over && !stopped) {
        status = turn(&loop, &info, &event);
        if (status == TR_OK && event.step == quit_at && quit_at > 0 && loop.events == 0 &&
            write(pipes[1], "q", 1) != 1)
            status = TR_EIO;
        stopped = loop.events > 0;
    }
    if (status == TR_OK) status = tr_trainer_hash(loop.trainer, hash);
    if (status == TR_OK) status = tr_trainer_save_state(loop.trainer, state, size);
    if (status == TR_OK && stopped) {
        /* With the flag set nothing begins, not even a trainer. */
        tr_trainer *refused = NULL;
        if (tr_trainer_create(&settings, &refused) != TR_EINTERRUPTED) status = TR_EINVAL;
        printf("stopped after step %ld\n", (long)event.step);
    }
    tr_trainer_destroy(&loop.trainer);
    tr_stop_destroy(&stop);
    close(pipes[0]);
    close(pipes[1]);
    return status;
}

int main(void)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct tr_named_source data;
    tr_source *points = NULL;
    char undisturbed[65] = "", half[65] = "", resumed[65] = "";
    void *state = NULL, *other = NULL;
    size_t size = 0, other_size = 0;
    tr_status status = make_points(&points);
    data.name = "train";
    data.source = points;
    settings.model_text = model;
    settings.data = &data;
    settings.data_count = 1;
    if (status == TR_OK) status = train(settings, 0, undisturbed, &other, &other_size);
    tr_state_free(other);
    if (status == TR_OK) status = train(settings, 25, half, &state, &size);
    settings.state.bytes = state;
    settings.state.size = size;
    if (status == TR_OK) status = train(settings, 0, resumed, &other, &other_size);
    if (status != TR_OK) fprintf(stderr, "%s: %s\n", tr_status_name(status), tr_error_message());
    printf("undisturbed  %s\nhalf         %s\nto the end   %s\n", undisturbed, half, resumed);
    tr_state_free(state);
    if (status == TR_OK) tr_state_free(other);
    tr_source_close(&points);
    return status == TR_OK && strcmp(undisturbed, resumed) == 0 && strcmp(undisturbed, half) != 0 ? 0 : 1;
}
