/* Runs a command and writes to a file the time until its first line that begins with a given text, and its
 * peak memory:
 *
 *     bench_watch FILE TEXT COMMAND [ARGUMENT...]      FILE receives "<milliseconds> <MiB>"
 *
 * The command's output passes through.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Starts the command with its output on a pipe; returns the reading end. */
static FILE *start(char **command, pid_t *child)
{
    int ends[2];
    if (pipe(ends) != 0 || (*child = fork()) < 0) return NULL;
    if (*child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s FILE TEXT COMMAND [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    pid_t child;
    const double begin = now();
    double first = -1;
    FILE *output = start(argv + 3, &child);
    if (!output) {
        perror(argv[3]);
        return 1;
    }
    char line[65536];
    while (fgets(line, sizeof line, output)) {
        if (first < 0 && strncmp(line, argv[2], strlen(argv[2])) == 0) first = now() - begin;
        fputs(line, stdout);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) < 0 || !WIFEXITED(status)) return 1;
    FILE *report = fopen(argv[1], "w");
    if (!report) {
        perror(argv[1]);
        return 1;
    }
    fprintf(report, "%.1f %.0f\n", first, (double)usage.ru_maxrss / 1024);
    return fclose(report) == 0 ? WEXITSTATUS(status) : 1;
}
