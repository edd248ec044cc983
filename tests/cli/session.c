#include "cli/session.h"

#include "base/threads/clock.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE       120 /* seconds: a launcher may pause for 32 of them, and then train */
#define ARGUMENTS_MOST 64

/* ---- starting ---- */

static int open_terminal(int columns)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
    return terminal;
}

/* A data cache of this test program's own, away from that of whoever runs it. */
static char cache[SCRATCH_PATH];

static void remove_cache(void)
{
    scratch_remove(cache);
}

const char *session_cache(void)
{
    if (!cache[0]) {
        scratch_make(cache);
        atexit(remove_cache);
    }
    return cache;
}

static void make_pipe(int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

/* In the child: no way back. */
static void become(const struct setup *setup, const char *terminal, int in, int out, int err)
{
    const char *argv[ARGUMENTS_MOST + 2] = {setup->program ? setup->program : "trireme"};
    for (int i = 0; i < ARGUMENTS_MOST && setup->arguments[i]; i++) argv[i + 1] = setup->arguments[i];
    setsid();
    if (terminal) out = err = open(terminal, O_RDWR);
    if (setup->output) out = open(setup->output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
    if (setup->no_output) close(1);
    unsetenv("TRIREME_THREADS");
    unsetenv("TRIREME_ISA");
    unsetenv("TRIREME_DEVICE");
    unsetenv("NO_COLOR");
    setenv("TRIREME_DATA_CACHE_DIR", cache, 1);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    for (int i = 0; setup->environment && setup->environment[i]; i++) putenv((char *)setup->environment[i]);
    signal(SIGINT, setup->ignores_interrupt ? SIG_IGN : SIG_DFL);
    execvp(setup->program ? setup->program : TRIREME_PROGRAM, (char *const *)argv);
    _exit(98);
}

void session_start(struct session *session, const struct setup *setup)
{
    int in[2], out[2], err[2];
    *session = (struct session){.out = -1, .err = -1, .terminal = -1, .patience = PATIENCE};
    for (int i = 0; i < 2; i++) assert_non_null(session->text[i] = calloc(1, 1));
    session_cache();
    make_pipe(in);
    make_pipe(out);
    make_pipe(err);
    if (setup->columns > 0) session->terminal = open_terminal(setup->columns);
    const char *terminal = session->terminal >= 0 ? ptsname(session->terminal) : NULL;
    session->process = fork();
    assert_true(session->process >= 0);
    if (session->process == 0) become(setup, terminal, in[0], out[1], err[1]);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    if (setup->input) {
        signal(SIGPIPE, SIG_IGN);
        size_t length = strlen(setup->input);
        assert_true(length < 60000); /* fits into the pipe, so that nobody waits */
        assert_int_equal(write(in[1], setup->input, length), length);
    }
    close(in[1]);
    session->out = out[0];
    session->err = err[0];
    if (setup->closed_output) {
        close(session->out);
        session->out = -1;
    }
    if (session->terminal >= 0) {
        close(session->out);
        session->out = session->terminal;
    }
}

/* ---- reading ---- */

static void append(struct session *session, int which, const char *bytes, size_t count)
{
    char *grown = realloc(session->text[which], session->size[which] + count + 1);
    assert_non_null(grown);
    memcpy(grown + session->size[which], bytes, count);
    session->size[which] += count;
    grown[session->size[which]] = '\0';
    session->text[which] = grown;
}

/* Reads what is there; a terminal whose other end is closed gives EIO. False at the end. */
static bool drain(struct session *session, int which, int *descriptor)
{
    char bytes[4096];
    ssize_t count = read(*descriptor, bytes, sizeof bytes);
    if (count > 0) append(session, which, bytes, (size_t)count);
    if (count > 0 || (count < 0 && errno == EINTR)) return true;
    close(*descriptor);
    *descriptor = -1;
    return false;
}

static void give_up(struct session *session, const char *what)
{
    kill(session->process, SIGKILL);
    session_show(session);
    fail_msg("%s took longer than %g s", what, session->patience);
}

/* Waits for more output. False when both streams are at their end. */
static bool read_more(struct session *session, double deadline, const char *what)
{
    struct pollfd polled[2] = {{.fd = session->out, .events = POLLIN},
                               {.fd = session->err, .events = POLLIN}};
    if (session->out < 0 && session->err < 0) return false;
    double left = deadline - tr_clock_seconds();
    int ready = left > 0 ? poll(polled, 2, (int)(left * 1000) + 1) : 0;
    if (ready == 0) give_up(session, what);
    if (polled[0].revents) drain(session, 0, &session->out);
    if (polled[1].revents) drain(session, 1, &session->err);
    return true;
}

void session_wait_for(struct session *session, int which, const char *part)
{
    double deadline = tr_clock_seconds() + session->patience;
    while (!strstr(session->text[which], part)) {
        if (read_more(session, deadline, part)) continue;
        session_show(session);
        fail_msg("the program ended without writing \"%s\"", part);
    }
}

void session_read(struct session *session)
{
    if (!read_more(session, tr_clock_seconds() + session->patience, "more output"))
        fail_msg("the program has ended");
}

void session_signal(struct session *session, int number)
{
    assert_int_equal(kill(session->process, number), 0);
}

void session_resize(struct session *session, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(session->terminal, TIOCSWINSZ, &size), 0);
}

int session_end(struct session *session)
{
    int status;
    double deadline = tr_clock_seconds() + session->patience;
    while (read_more(session, deadline, "the program")) continue;
    assert_int_equal(waitpid(session->process, &status, 0), session->process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void session_release(struct session *session)
{
    if (session->out >= 0) close(session->out);
    if (session->err >= 0) close(session->err);
    for (int i = 0; i < 2; i++) free(session->text[i]);
    *session = (struct session){.out = -1, .err = -1, .terminal = -1, .patience = PATIENCE};
}

void session_show(const struct session *session)
{
    /* Not by print_message(), which ends after a kilobyte. */
    fprintf(stderr, "---- stdout\n%s\n---- stderr\n%s\n----\n", session->text[0], session->text[1]);
}

/* ---- all at once ---- */

static int run_list(struct session *session, struct setup setup, va_list list)
{
    const char *arguments[ARGUMENTS_MOST + 1] = {NULL};
    for (int i = 0; i < ARGUMENTS_MOST; i++)
        if (!(arguments[i] = va_arg(list, const char *))) break;
    setup.arguments = arguments;
    session_start(session, &setup);
    return session_end(session);
}

int run(struct session *session, ...)
{
    va_list list;
    va_start(list, session);
    int code = run_list(session, (struct setup){0}, list);
    va_end(list);
    return code;
}

int run_with(struct session *session, struct setup setup, ...)
{
    va_list list;
    va_start(list, setup);
    int code = run_list(session, setup, list);
    va_end(list);
    return code;
}

void expect_error(int code, const char *part, const struct session *session, int got)
{
    const char *end = strchr(session->text[1], '\n');
    bool one_line = end && end[1] == '\0';
    if (got != code || !one_line || !strstr(session->text[1], part) || session->size[0] > 0)
        session_show(session);
    assert_int_equal(got, code);
    assert_true(one_line);
    assert_non_null(strstr(session->text[1], part));
    assert_int_equal(session->size[0], 0);
}

/* ---- a place to work ---- */

static char place[SCRATCH_PATH];

#define IMAGES 64
#define SIDE   6

static void write_bytes(const char *path, const uint8_t *header, size_t header_size, const uint8_t *bytes,
                        size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, header_size, file), header_size);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Class c has its two bright rows at 2 c, with some noise that follows from the place alone. */
static void write_images(void)
{
    static uint8_t images[IMAGES][SIDE][SIDE], labels[IMAGES];
    static const uint8_t images_header[16] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    static const uint8_t labels_header[8] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    for (int i = 0; i < IMAGES; i++) {
        labels[i] = (uint8_t)(i % 3);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                images[i][y][x] = (uint8_t)((y / 2 == i % 3 ? 200 : 20) + (i * 7 + y * 5 + x * 3) % 40);
    }
    write_bytes("images.idx", images_header, sizeof images_header, &images[0][0][0], sizeof images);
    write_bytes("labels.idx", labels_header, sizeof labels_header, labels, sizeof labels);
}

void write_text(const char *path, const char *text)
{
    write_bytes(path, (const uint8_t *)"", 0, (const uint8_t *)text, strlen(text));
}

int place_make(void **state)
{
    (void)state;
    scratch_make(place);
    if (chdir(place) != 0) return -1;
    write_images();
    write_text("tiny.yaml", "name: tiny\n"
                            "data:\n"
                            "  train: {idx: {images: images.idx, labels: labels.idx}}\n"
                            "  test: {idx: {images: images.idx, labels: labels.idx}}\n"
                            "input: {scale: 1/255}\n"
                            "layers:\n"
                            "  - dense: {units: 8, activation: relu}\n"
                            "  - dropout: 0.2\n"
                            "  - dense: 3\n"
                            "optimizer: {rule: adam, rate: 0.01}\n"
                            "train: {batch: 10, microbatches: 3, steps: 40, log_every: 10}\n");
    return 0;
}

int place_remove(void **state)
{
    (void)state;
    if (chdir("/") != 0) return -1;
    scratch_remove(place);
    return 0;
}

const char *hash_in(const char *text)
{
    static char hash[65];
    const char *at = strstr(text, "\nhash ");
    assert_non_null(at);
    at += 6 + strspn(at + 6, " ");
    assert_int_equal(strspn(at, "0123456789abcdef"), 64);
    memcpy(hash, at, 64);
    return hash;
}

static const char *tiny_hash(void)
{
    static char hash[65];
    struct session session;
    if (hash[0]) return hash;
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "alone", NULL), 0);
    memcpy(hash, hash_in(session.text[0]), sizeof hash);
    session_release(&session);
    return hash;
}

void expect_tiny_hash(struct session *session, int code)
{
    const char *expected = tiny_hash(); /* before hash_in(), whose storage it uses */
    if (code != 0) session_show(session);
    assert_int_equal(code, 0);
    assert_string_equal(hash_in(session->text[0]), expected);
}

struct setup setup_with(const char *program, const char *format, ...)
{
    static char variable[1024];
    static const char *environment[] = {variable, NULL};
    va_list values;
    va_start(values, format);
    vsnprintf(variable, sizeof variable, format, values);
    va_end(values);
    return (struct setup){.program = program, .environment = environment};
}
