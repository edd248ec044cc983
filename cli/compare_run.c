/* A run of a comparison: this program once more, alone or by `trireme launch`, told to write JSON.
 *
 * The child is in a process group of its own, so that a Ctrl-C reaches the comparison alone, and ends in good
 * order when the comparison dies. SIGTERM asks it to finish the step and to say how far it came.
 */
#include "compare.h"

#include "exit_codes.h"
#include "output.h"
#include "signals.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "strategy/strategy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_SECONDS  0.1  /* between two looks at clock and signals */
#define GRACE_SECONDS 60.0 /* for a step to be finished and saved */
#define LINE_MOST     (1 << 20)

/* ---- arguments ---- */

struct arguments {
    char **item; /* ends with NULL; all owned */
    int count;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct arguments *arguments, const char *format, ...);

static void add(struct arguments *arguments, const char *format, ...)
{
    char text[4096];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    char **more = tr_realloc(arguments->item, (size_t)arguments->count + 2, sizeof *more);
    if (more) arguments->item = more;
    char *copy = more && length >= 0 && (size_t)length < sizeof text ? tr_strdup(text) : NULL;
    arguments->failed |= copy == NULL;
    if (!copy) return;
    more[arguments->count++] = copy;
    more[arguments->count] = NULL;
}

static void release(struct arguments *arguments)
{
    for (int i = 0; i < arguments->count; i++) tr_free(arguments->item[i]);
    tr_free(arguments->item);
}

static void add_self(struct arguments *arguments)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    add(arguments, "%s", self);
}

static void make_training(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_case *one, const char *out, struct arguments *arguments)
{
    add_self(arguments);
    if (one->ranks > 1) {
        add(arguments, "launch");
        add(arguments, "--processes=%d", one->ranks);
        add(arguments, "--threads=%d", one->threads);
    }
    add(arguments, "train");
    add(arguments, "%s", orders->model);
    add(arguments, "--out=%s", out);
    add(arguments, "--log=json");
    add(arguments, "--quiet");
    add(arguments, "--strategy=%s", one->strategy);
    if (one->ranks == 1) {
        add(arguments, "--transport=none");
        add(arguments, "--threads=%d", one->threads);
    }
    if (orders->steps > 0) add(arguments, "--steps=%" PRId64, orders->steps);
    if (orders->seed >= 0) add(arguments, "--seed=%" PRId64, orders->seed);
    for (int32_t i = 0; i < orders->set->count; i++) add(arguments, "--set=%s", orders->set->item[i]);
    add(arguments, "--set=train.checkpoint_every=0");
    add(arguments, "--set=train.checkpoint_seconds=0");
    if (orders->until <= 0) return;
    add(arguments, "--set=train.until_accuracy=%.17g", orders->until);
    add(arguments, "--set=train.evaluate_every=%" PRId64, plan->evaluate_every);
    add(arguments, "--set=train.log_every=%" PRId64, plan->evaluate_every);
}

/* ---- a child ---- */

struct child {
    pid_t process;
    int output, error; /* what it writes; -1: closed */
    struct tr_text line;
    char last_words[4096]; /* the end of what came on stderr */
    size_t words;
    int status;                /* of waitpid() */
    double stop_at;            /* clock; when it is asked to end; 0: never */
    double kill_at;            /* after that; 0: it was not asked yet */
    bool out_of_time, stopped; /* why it was asked */
    struct cli_screen *screen;
    void (*hear)(struct child *child, const struct tr_json_value *object);
    /* For the listeners: */
    struct cli_compare_result *result;
    double until;
    const char *label;
};

/* In the child; comes back only as an exit code. */
static void become(char *const *arguments, pid_t parent, const int output[2], const int error[2])
{
    int input = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(CLI_EXIT_FAILED);
    unsetenv("TRIREME_TRANSPORT");
    unsetenv("TRIREME_LAUNCHED");
    unsetenv("TRIREME_THREADS");
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output[1], STDOUT_FILENO) >= 0 &&
        dup2(error[1], STDERR_FILENO) >= 0)
        execv(arguments[0], arguments);
    _exit(CLI_EXIT_FAILED);
}

static tr_status start(struct child *child, char *const *arguments)
{
    int output[2], error[2];
    pid_t parent = getpid();
    if (pipe2(output, O_CLOEXEC) != 0) return tr_fail(TR_EIO, "no pipe for a run: %s", strerror(errno));
    if (pipe2(error, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return tr_fail(TR_EIO, "no pipe for a run: %s", strerror(errno));
    }
    cli_output_flush(); /* or the child would write it, too */
    child->process = fork();
    if (child->process == 0) become(arguments, parent, output, error);
    close(output[1]);
    close(error[1]);
    child->output = output[0];
    child->error = error[0];
    if (child->process > 0) {
        setpgid(child->process, child->process);
        fcntl(child->output, F_SETFL, O_NONBLOCK);
        fcntl(child->error, F_SETFL, O_NONBLOCK);
        return TR_OK;
    }
    close(child->output);
    close(child->error);
    return tr_fail(TR_ENOMEM, "a run cannot be started: %s", strerror(errno));
}

static void hear_line(struct child *child)
{
    tr_json *document;
    if (child->line.failed || child->line.length == 0 || child->line.bytes[0] != '{') return;
    if (tr_json_parse(child->line.bytes, child->line.length, "a run", &document) != TR_OK) return;
    child->hear(child, tr_json_root(document));
    tr_json_destroy(&document);
}

static void hear_output(struct child *child, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end ? (size_t)(end - bytes) : count;
        if (child->line.length + length < LINE_MOST) tr_text_add_bytes(&child->line, bytes, length);
        if (!end) return;
        hear_line(child);
        tr_text_release(&child->line);
        bytes = end + 1;
        count -= length + 1;
    }
}

static void hear_error(struct child *child, const char *bytes, size_t count)
{
    size_t room = sizeof child->last_words - 1;
    if (count > room) {
        bytes += count - room;
        count = room;
    }
    if (child->words + count > room) {
        size_t gone = child->words + count - room;
        memmove(child->last_words, child->last_words + gone, child->words - gone);
        child->words -= gone;
    }
    memcpy(child->last_words + child->words, bytes, count);
    child->words += count;
    child->last_words[child->words] = '\0';
}

/* Reads what is there; closes the descriptor at its end. */
static void drain(struct child *child, int *descriptor,
                  void (*take)(struct child *child, const char *bytes, size_t count))
{
    char bytes[8192];
    while (*descriptor >= 0) {
        ssize_t count = read(*descriptor, bytes, sizeof bytes);
        if (count > 0) {
            take(child, bytes, (size_t)count);
            continue;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) return;
        close(*descriptor);
        *descriptor = -1;
    }
}

/* Asks the child to end when its time is over or the user wants to, and makes it when it does not. */
static void press_on(struct child *child)
{
    double now = tr_clock_seconds();
    bool late = child->stop_at > 0 && now >= child->stop_at;
    if (child->kill_at > 0) {
        child->stopped |= cli_signals_received() != 0;
        if (now < child->kill_at) return;
        kill(-child->process, SIGKILL);
        child->kill_at = now + GRACE_SECONDS;
    } else if (cli_signals_received() != 0 || late) {
        child->stopped = cli_signals_received() != 0;
        child->out_of_time = !child->stopped;
        child->kill_at = now + GRACE_SECONDS;
        kill(child->process, SIGTERM);
    }
}

/* Listens to the child until it has ended and nothing more can come. */
static void attend(struct child *child)
{
    bool ended = false;
    while (!ended) {
        struct pollfd watched[2] = {{child->output, POLLIN, 0}, {child->error, POLLIN, 0}};
        poll(watched, 2, (int)(LOOK_SECONDS * 1000));
        drain(child, &child->output, hear_output);
        drain(child, &child->error, hear_error);
        ended = waitpid(child->process, &child->status, WNOHANG) == child->process;
        press_on(child);
    }
    drain(child, &child->output, hear_output);
    drain(child, &child->error, hear_error);
    if (child->output >= 0) close(child->output);
    if (child->error >= 0) close(child->error);
    tr_text_release(&child->line);
}

/* Runs a command to its end. */
static tr_status carry_out(struct child *child, struct arguments *arguments)
{
    if (arguments->failed) return TR_ENOMEM;
    TR_TRY(start(child, arguments->item));
    attend(child);
    return TR_OK;
}

/* ---- what is heard ---- */

static double number_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    if (value && value->kind == TR_JSON_INTEGER) return (double)value->integer;
    return value && value->kind == TR_JSON_REAL ? value->real : NAN;
}

static int64_t integer_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_INTEGER ? value->integer : 0;
}

static const char *text_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_TEXT ? value->text : "";
}

static const struct tr_json_value *array_of(const struct tr_json_value *object, const char *key)
{
    const struct tr_json_value *value = tr_json_find(object, key);
    return value && value->kind == TR_JSON_ARRAY ? value : NULL;
}

#define RANKS_MOST 1024

static void take_statistics(const struct tr_json_value *object, double seconds,
                            struct cli_compare_result *result)
{
    struct tr_train_rank ranks[RANKS_MOST];
    int64_t bins[TR_STALENESS_BINS] = {0};
    const struct tr_json_value *list = array_of(object, "ranks"), *staleness = array_of(object, "staleness");
    struct tr_train_statistics statistics = {
        .rank = ranks, .steps = integer_of(object, "steps"), .asynchronous = staleness != NULL};
    if (!list) return;
    for (const struct tr_json_value *at = list->first; at && statistics.ranks < RANKS_MOST; at = at->next)
        ranks[statistics.ranks++] = (struct tr_train_rank){
            .bytes_sent = integer_of(at, "bytes_sent"),
            .bytes_received = integer_of(at, "bytes_received"),
            .bytes_shared = integer_of(at, "bytes_shared"),
            .wait_seconds = number_of(at, "wait_seconds"),
            .compute_seconds = number_of(at, "compute_seconds"),
        };
    statistics.staleness = bins;
    statistics.staleness_bins = TR_STALENESS_BINS;
    int bin = 0;
    for (const struct tr_json_value *at = staleness ? staleness->first : NULL; at && bin < TR_STALENESS_BINS;
         at = at->next)
        bins[bin++] = at->kind == TR_JSON_INTEGER ? at->integer : 0;
    result->has_statistics = true;
    result->statistics = cli_statistics_of(&statistics, seconds);
    result->dropped = integer_of(object, "dropped");
}

/* A line of `trireme train --log json`. */
static void hear_training(struct child *child, const struct tr_json_value *object)
{
    struct cli_compare_result *result = child->result;
    const char *event = text_of(object, "event");
    if (strcmp(event, "step") == 0) {
        char status[200], left[TR_TEXT_NUMBER_SIZE];
        result->seconds = number_of(object, "seconds");
        double share = number_of(object, "step") / number_of(object, "steps");
        snprintf(status, sizeof status, "  %s: step %.0f of %.0f, loss %.4f, %s so far", child->label,
                 number_of(object, "step"), number_of(object, "steps"), number_of(object, "loss"),
                 tr_text_from_seconds(result->seconds, left));
        if (share < 1) cli_screen_status(child->screen, status);
    } else if (strcmp(event, "evaluation") == 0) {
        result->accuracy = number_of(object, "accuracy");
        result->loss = number_of(object, "loss");
        if (child->until > 0 && isnan(result->target_epochs) && result->accuracy >= child->until) {
            result->target_seconds = result->seconds;
            result->target_epochs = number_of(object, "epoch");
        }
    } else if (strcmp(event, "end") == 0) {
        result->step = integer_of(object, "step");
        result->seconds = number_of(object, "seconds");
        result->examples_per_second = number_of(object, "examples_per_second");
        snprintf(result->hash, sizeof result->hash, "%s", text_of(object, "hash"));
        const struct tr_json_value *statistics = tr_json_find(object, "statistics");
        if (statistics) take_statistics(statistics, result->seconds, result);
    }
}

/* The object of `trireme eval --json`. */
static void hear_evaluation(struct child *child, const struct tr_json_value *object)
{
    child->result->accuracy = number_of(object, "accuracy");
    child->result->loss = number_of(object, "loss");
}

/* The last line that a failed run wrote. */
static void note_failure(const struct child *child, struct cli_compare_result *result)
{
    const char *words = child->last_words;
    size_t length = child->words;
    while (length > 0 && words[length - 1] == '\n') length--;
    size_t begin = length;
    while (begin > 0 && words[begin - 1] != '\n') begin--;
    if (length > begin)
        snprintf(result->failure, sizeof result->failure, "%.*s", (int)(length - begin), words + begin);
    else if (WIFSIGNALED(child->status))
        snprintf(result->failure, sizeof result->failure, "ended by signal %d", WTERMSIG(child->status));
    else
        snprintf(result->failure, sizeof result->failure, "exit code %d", WEXITSTATUS(child->status));
}

static enum cli_compare_end end_of(const struct child *child)
{
    int code = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;
    if (code == CLI_EXIT_DONE) return CLI_COMPARE_DONE;
    if (child->stopped) return CLI_COMPARE_STOPPED;
    if (child->out_of_time && code == CLI_EXIT_INTERRUPTED) return CLI_COMPARE_OUT_OF_TIME;
    return CLI_COMPARE_FAILED;
}

/* ---- a run ---- */

/* A run that its budget ended has saved and has not been evaluated at that point. */
static tr_status evaluate(const char *out, struct cli_screen *screen, struct cli_compare_result *result)
{
    struct arguments arguments = {0};
    struct cli_compare_result evaluated = {.accuracy = NAN, .loss = NAN};
    struct child child = {.screen = screen, .hear = hear_evaluation, .result = &evaluated};
    add_self(&arguments);
    add(&arguments, "eval");
    add(&arguments, "%s", out);
    add(&arguments, "--json");
    tr_status status = carry_out(&child, &arguments);
    release(&arguments);
    if (status != TR_OK || isnan(evaluated.loss)) return status; /* no test data, say */
    result->accuracy = evaluated.accuracy;
    result->loss = evaluated.loss;
    return TR_OK;
}

tr_status cli_compare_run(const struct cli_compare_orders *orders, const struct cli_compare_plan *plan,
                          const struct cli_compare_case *one, struct cli_screen *screen,
                          struct cli_compare_result *result)
{
    struct arguments arguments = {0};
    *result = (struct cli_compare_result){
        .accuracy = NAN, .loss = NAN, .target_seconds = NAN, .target_epochs = NAN};
    char label[200], *out = tr_path_join(orders->place, "run");
    if (!out) return TR_ENOMEM;
    snprintf(label, sizeof label, "%s on %d worker%s", one->strategy, one->workers,
             one->workers == 1 ? "" : "s");
    struct child child = {
        .screen = screen,
        .hear = hear_training,
        .result = result,
        .until = orders->until,
        .label = label,
        .stop_at = orders->budget > 0 ? tr_clock_seconds() + orders->budget : 0,
    };
    make_training(orders, plan, one, out, &arguments);
    cli_screen_status(screen, label);
    tr_status status = carry_out(&child, &arguments);
    release(&arguments);
    if (status == TR_OK) {
        result->end = end_of(&child);
        if (result->end == CLI_COMPARE_FAILED) note_failure(&child, result);
        if (result->end == CLI_COMPARE_OUT_OF_TIME) status = evaluate(out, screen, result);
    }
    tr_status removed = tr_file_remove(NULL, out);
    tr_free(out);
    return status == TR_OK ? removed : status;
}
