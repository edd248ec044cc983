#include "job.h"

#include "base/threads/clock.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- chance ---- */

static uint64_t chance_state;

void chance_begin(void)
{
    const char *given = getenv("TRIREME_TEST_SEED");
    chance_state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("TRIREME_TEST_SEED=%llu\n", (unsigned long long)chance_state);
}

int chance(int limit)
{
    /* Knuth's generator; the upper half is random enough for this. */
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((chance_state >> 33) % (uint64_t)limit);
}

/* ---- the job ---- */

static int job_steps;
static char undisturbed[65];

/* Steps between two checkpoints at most: fewer than a job of many steps makes between two kills, or it would
 * begin anew for ever, and its launcher would pause longer each time. */
#define SAVED_WITHIN 300

void job_write(int steps)
{
    char text[1024];
    int every = steps / 40 > SAVED_WITHIN ? SAVED_WITHIN : steps / 40;
    snprintf(text, sizeof text,
             "name: job\n"
             "data:\n"
             "  train: {idx: {images: images.idx, labels: labels.idx}}\n"
             "  test: {idx: {images: images.idx, labels: labels.idx}}\n"
             "layers:\n"
             "  - dense: {units: 300, activation: relu}\n"
             "  - dropout: 0.2\n"
             "  - dense: {units: 300, activation: relu}\n"
             "  - dense: 3\n"
             "optimizer: {rule: adam, rate: 0.001, ema: 0.99}\n"
             "train: {batch: 32, microbatches: 4, steps: %d, checkpoint_every: %d, log_every: 0}\n",
             steps, every > 1 ? every : 1);
    write_text("job.yaml", text);
    job_steps = steps;
    undisturbed[0] = '\0';
}

const char *job_hash(void)
{
    if (undisturbed[0]) return undisturbed;
    struct session session;
    int code = run(&session, "train", "job.yaml", "-o", "undisturbed", "--overwrite", "-t", "1", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    memcpy(undisturbed, hash_in(session.text[0]), sizeof undisturbed);
    session_release(&session);
    return undisturbed;
}

int job_end(struct job *job)
{
    return session_end(&job->session);
}

void job_release(struct job *job)
{
    session_release(&job->session);
}

/* ---- its processes ---- */

static void nap(int milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

struct process {
    pid_t id;
    int rank; /* -1: it is none */
    char name[32];
};

/* Whether `text`, strings one after the other, has this one; *value (may be NULL) gets what follows it. */
static bool holds(const char *text, size_t size, const char *beginning, bool whole, const char **value)
{
    size_t length = strlen(beginning);
    for (const char *at = text; at < text + size; at += strlen(at) + 1) {
        if (strncmp(at, beginning, length) != 0 || (whole && at[length])) continue;
        if (value) *value = at + length;
        return true;
    }
    return false;
}

static size_t read_file(pid_t process, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    return length;
}

void process_variable(pid_t process, const char *name, char *out, size_t size)
{
    static char text[1 << 16];
    char beginning[64];
    const char *value = NULL;
    snprintf(beginning, sizeof beginning, "%s=", name);
    size_t length = read_file(process, "environ", text, sizeof text);
    if (!holds(text, length, beginning, false, &value)) fail_msg("process %d has no %s", (int)process, name);
    snprintf(out, size, "%s", value);
}

/* A zombie has no environment any more. */
static bool look_at(const struct job *job, pid_t id, struct process *out)
{
    static char text[1 << 16];
    const char *rank, *ticket;
    size_t length = read_file(id, "environ", text, sizeof text);
    if (!holds(text, length, job->mark, true, NULL)) return false;
    *out = (struct process){.id = id, .rank = -1};
    if (holds(text, length, "OMPI_COMM_WORLD_RANK=", false, &rank)) out->rank = atoi(rank);
    if (holds(text, length, "TRIREME_LOCAL=", false, &ticket) && (rank = strchr(ticket, ':')))
        out->rank = atoi(rank + 1);
    read_file(id, "comm", out->name, sizeof out->name);
    out->name[strcspn(out->name, "\n")] = '\0';
    return true;
}

static int list(const struct job *job, struct process *out, int most)
{
    DIR *processes = opendir("/proc");
    assert_non_null(processes);
    int count = 0;
    for (struct dirent *entry; count < most && (entry = readdir(processes));) {
        pid_t id = (pid_t)atoi(entry->d_name);
        if (id > 0 && look_at(job, id, &out[count])) count++;
    }
    closedir(processes);
    return count;
}

#define MOST 128

pid_t job_rank(const struct job *job, int rank)
{
    struct process found[MOST];
    int count = list(job, found, MOST);
    for (int i = 0; i < count; i++)
        if (found[i].rank == rank) return found[i].id;
    return 0;
}

pid_t job_mpirun(const struct job *job)
{
    struct process found[MOST];
    int count = list(job, found, MOST);
    for (int i = 0; i < count; i++)
        if (strcmp(found[i].name, "mpirun") == 0 || strcmp(found[i].name, "orterun") == 0 ||
            strcmp(found[i].name, "prterun") == 0)
            return found[i].id;
    return 0;
}

int job_processes(const struct job *job)
{
    struct process found[MOST];
    return list(job, found, MOST);
}

void job_expect_gone(const struct job *job, double seconds)
{
    double end = tr_clock_seconds() + seconds;
    struct process found[MOST];
    int count;
    while ((count = list(job, found, MOST)) > 0) {
        if (tr_clock_seconds() > end) {
            for (int i = 0; i < count; i++) {
                print_error("left behind: %s (process %d, rank %d)\n", found[i].name, (int)found[i].id,
                            found[i].rank);
                kill(found[i].id, SIGKILL);
            }
            fail();
        }
        nap(20);
    }
}

/* The launcher pauses up to a minute between attempts that come no further, which is what early kills make.
 */
#define COMING_SECONDS 90

pid_t job_wait_for_rank(struct job *job, int rank, int milliseconds)
{
    double end = tr_clock_seconds() + COMING_SECONDS;
    while (!job_rank(job, rank)) {
        if (!job_processes(job)) return 0;
        if (tr_clock_seconds() > end) {
            session_show(&job->session);
            fail_msg("rank %d did not come", rank);
        }
        nap(10);
    }
    nap(milliseconds);
    return job_rank(job, rank);
}

static void add_arguments(struct job *job, va_list list)
{
    for (const char *next; (next = va_arg(list, const char *));) {
        assert_true(job->argument_count < JOB_ARGUMENTS);
        job->arguments[job->argument_count++] = next;
    }
}

static void begin(struct job *job, const char *program)
{
    static int started;
    const char *environment[] = {job->mark, NULL};
    snprintf(job->mark, sizeof job->mark, "TRIREME_TEST_MARK=%d.%d", (int)getpid(), started++);
    session_start(&job->session, &(struct setup){.program = program,
                                                 .arguments = job->arguments,
                                                 .environment = environment,
                                                 .columns = job_columns});
    /* Until then it is a process of the test's. */
    for (int i = 0; i < 500 && job_processes(job) == 0; i++) nap(10);
}

void job_start(struct job *job, ...)
{
    va_list list;
    *job = (struct job){.arguments = {"launch", "--transport", job_transport}, .argument_count = 3};
    va_start(list, job);
    add_arguments(job, list);
    va_end(list);
    begin(job, NULL);
}

void job_start_after(struct job *job, const char *prelude, ...)
{
    char code[1024];
    va_list list;
    snprintf(code, sizeof code, "%s\nexec \"$0\" \"$@\"", prelude);
    *job = (struct job){.arguments = {"-c", code, TRIREME_PROGRAM, "launch", "--transport", job_transport},
                        .argument_count = 6};
    va_start(list, prelude);
    add_arguments(job, list);
    va_end(list);
    begin(job, "sh");
}

static pid_t stranger(const struct job *job, const char *name)
{
    const char *at = strstr(job->session.text[1], name);
    return at ? (pid_t)atoi(at + strlen(name)) : 0;
}

void job_expect_strangers_alive(void (*hit)(struct job *job))
{
    static const char prelude[] =
        "stranger() { exec env -u TRIREME_TEST_MARK sleep 1000 </dev/null >/dev/null 2>&1; }\n"
        "stranger & echo child $! >&2\n"
        "(stranger & echo orphan $! >&2; sleep 1) &";
    struct job job;
    job_start_after(&job, prelude, "-n", "2", "train", "job.yaml", "--overwrite", "-o", "strangers",
                    "--steps", "1000000", "--log", "none", "-t", "1", NULL);
    session_wait_for(&job.session, 0, "output ");
    pid_t child = stranger(&job, "child "), orphan = stranger(&job, "orphan ");
    assert_true(child > 0 && orphan > 0);
    nap(1500);
    hit(&job);
    assert_int_equal(job_end(&job), 1);
    job_expect_gone(&job, 5);
    job_release(&job);
    bool lives = kill(child, 0) == 0, lives_on = kill(orphan, 0) == 0;
    kill(child, SIGKILL);
    kill(orphan, SIGKILL);
    assert_true(lives);
    assert_true(lives_on);
}

int job_columns;
const char *job_transport = "local";

bool job_argument(int count, char **arguments, const char *option)
{
    bool found = false;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--mpi") == 0) job_transport = "mpi";
        found |= strcmp(arguments[i], option) == 0;
    }
    return found;
}

void skip_without_mpi(void)
{
    if (TRIREME_HAS_MPI && access("/usr/bin/mpirun", X_OK) == 0) return;
    fprintf(stderr, "skipped: Open MPI (libopenmpi-dev, openmpi-bin) was not found\n");
    skip();
}

void skip_without_transport(void)
{
    if (strcmp(job_transport, "mpi") == 0) skip_without_mpi();
}
