/* Running the program: with pipes or in a terminal of any width, with signals, in a directory of the test's
 * own.
 *
 * Every wait has a deadline, after which the program is killed and the test fails.
 */
#ifndef TESTS_CLI_SESSION_H
#define TESTS_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct setup {
    const char *program;            /* NULL: trireme */
    const char *const *arguments;   /* after the program's name, ends with NULL */
    const char *input;              /* standard input, NULL: empty */
    const char *const *environment; /* "NAME=value" in addition, ends with NULL; or NULL */
    const char *output;             /* file that becomes stdout, or NULL */
    int columns;                    /* > 0: stdout and stderr are a terminal of so many columns */
    bool closed_output;             /* stdout is a pipe that nobody reads */
    bool no_output;                 /* stdout is closed */
    bool ignores_interrupt;         /* SIGINT is ignored from the beginning, as under nohup */
};

struct session {
    pid_t process;
    int out, err, terminal; /* descriptors, -1 where there is none */
    char *text[2];          /* stdout (or the terminal), stderr; NUL-terminated */
    size_t size[2];
    double patience; /* seconds that every wait may take; the default until changed */
};

void session_start(struct session *session, const struct setup *setup);
/* Reads until stdout (which = 0) or stderr (1) contains `part`. */
void session_wait_for(struct session *session, int which, const char *part);
/* Waits until there is more to read, and reads it. */
void session_read(struct session *session);
void session_signal(struct session *session, int number);
void session_resize(struct session *session, int columns);
/* Waits for the end and returns the exit code, or minus the signal that ended it. */
int session_end(struct session *session);
void session_release(struct session *session);

/* The directory of the data cache that programs are given, unless the setup says otherwise. Static storage.
 */
const char *session_cache(void);

/* All at once with pipes: run(&session, "train", "m.yaml", NULL). The session is to be released. */
int run(struct session *session, ...) __attribute__((sentinel));
/* The same with a setup whose arguments are ignored. */
int run_with(struct session *session, struct setup setup, ...) __attribute__((sentinel));
/* Runs, demands the exit code and forgets the output. */
#define expect_exit(code, ...)                                                                               \
    do {                                                                                                     \
        struct session expect_session_;                                                                      \
        int expect_code_ = run(&expect_session_, __VA_ARGS__, NULL);                                         \
        if (expect_code_ != (code)) session_show(&expect_session_);                                          \
        assert_int_equal(expect_code_, (code));                                                              \
        session_release(&expect_session_);                                                                   \
    } while (0)
/* Prints what the program wrote, for failing tests. */
void session_show(const struct session *session);

/* Fails the test unless the exit code is `code`, stderr is a single line that contains `part`, and stdout is
 * empty. */
void expect_error(int code, const char *part, const struct session *session, int got);

/* ---- a place to work ---- */

/* For cmocka's group: makes a directory with a small data set (images.idx, labels.idx: 64 images of 6 x 6 in
   3 classes) and a job (tiny.yaml) and goes there; and removes it. */
int place_make(void **state);
int place_remove(void **state);
void write_text(const char *path, const char *text);
/* The 64 digits after "hash" in a summary, in static storage. */
const char *hash_in(const char *text);
/* Fails the test, and shows the session, unless it ended with `code` 0 and with the hash of tiny.yaml in one
   process on the processor, which is trained once. */
void expect_tiny_hash(struct session *session, int code);
/* A variable "NAME=value" in addition, for the next program; NULL: trireme. */
struct setup setup_with(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
