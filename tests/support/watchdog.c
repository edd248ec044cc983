/* Linked into every test program: one that hangs prints the stacks of its threads and fails, a little
 * before ctest would end it without output. TRIREME_TEST_SECONDS, which tests/CMakeLists.txt sets, says
 * when.
 *
 * All of it runs in a handler of SIGALRM, while other threads may hold any lock: so it neither allocates
 * memory nor writes to streams. Children of a test have no alarm.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define FRAMES 64
/* How long a thread may take to show its stack; one that blocks the signal never does. */
#define ANSWER_MILLISECONDS 1000

static int seconds;
static void *frame[FRAMES]; /* of the thread that was asked last */
static atomic_int frames;   /* -1: it has not answered */

/* SIGTRAP: threads of the library do not block it, and cmocka leaves it alone. */
static void on_trap(int number)
{
    (void)number;
    atomic_store(&frames, backtrace(frame, FRAMES));
}

static void say(const char *text)
{
    size_t length = strlen(text);
    if (write(STDERR_FILENO, text, length) != (ssize_t)length) _exit(1);
}

/* Where the program itself lies, which is the first that is visited. */
struct place {
    uintptr_t base, end;
};

static int find_program(struct dl_phdr_info *info, size_t size, void *user)
{
    struct place *place = user;
    (void)size;
    *place = (struct place){info->dlpi_addr, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > place->end) place->end = end;
    }
    return 1;
}

/* The names of functions are not in the program's dynamic symbols: addr2line finds them, where it is there.
 */
static void say_functions(int count)
{
    static char text[FRAMES][24], program[64];
    static char *arguments[FRAMES + 5];
    static char name[] = "addr2line", options[] = "-pfe";
    struct place place;
    pid_t child;
    int used = 0;
    dl_iterate_phdr(find_program, &place);
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid());
    arguments[used++] = name;
    arguments[used++] = options;
    arguments[used++] = program;
    for (int i = 0; i < count; i++) {
        uintptr_t call = (uintptr_t)frame[i] - 1; /* a return address is after its call */
        if (call < place.base || call >= place.end) continue;
        snprintf(text[i], sizeof text[i], "%#llx", (unsigned long long)(call - place.base));
        arguments[used++] = text[i];
    }
    arguments[used] = NULL;
    dup2(STDERR_FILENO, STDOUT_FILENO); /* for its output; later output is not shown */
    if (posix_spawnp(&child, name, NULL, NULL, arguments, environ) == 0) waitpid(child, NULL, 0);
}

static void say_thread(long thread)
{
    char line[64];
    const struct timespec look = {.tv_nsec = 1000000};
    atomic_store(&frames, -1);
    snprintf(line, sizeof line, "thread %ld:\n", thread);
    say(line);
    if (thread == syscall(SYS_gettid))
        on_trap(SIGTRAP);
    else if (syscall(SYS_tgkill, getpid(), thread, SIGTRAP) != 0)
        return; /* it has ended meanwhile */
    for (int i = 0; i < ANSWER_MILLISECONDS && atomic_load(&frames) < 0; i++) nanosleep(&look, NULL);
    int count = atomic_load(&frames);
    if (count < 0) {
        say("  does not answer\n");
        return;
    }
    backtrace_symbols_fd(frame, count, STDERR_FILENO);
    say_functions(count);
}

struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

static void say_threads(void)
{
    static _Alignas(struct entry) char entries[8192];
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long bytes;
    while (tasks >= 0 && (bytes = syscall(SYS_getdents64, tasks, entries, sizeof entries)) > 0)
        for (long at = 0; at < bytes;) {
            const struct entry *entry = (const void *)(entries + at);
            if (entry->name[0] != '.') say_thread(strtol(entry->name, NULL, 10));
            at += entry->length;
        }
}

static void on_alarm(int number)
{
    (void)number;
    char line[128];
    struct sigaction trap = {.sa_handler = on_trap};
    sigaction(SIGTRAP, &trap, NULL);
    snprintf(line, sizeof line, "\nThe test hangs: no end after %d s. The stacks of its threads:\n", seconds);
    say(line);
    say_threads();
    signal(SIGABRT, SIG_DFL);
    abort();
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("TRIREME_TEST_SECONDS");
    struct sigaction action = {.sa_handler = on_alarm};
    seconds = text ? atoi(text) : 0;
    if (seconds <= 0) return;
    backtrace(frame, FRAMES); /* the first call loads a library, which no handler may */
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)seconds);
}
