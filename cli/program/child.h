/* Another run of this program as a child, whose JSON lines are read.
 *
 * The child is in a separate process group, so that a Ctrl-C reaches this program alone, and ends in good
 * order when this program dies. SIGTERM asks it to finish what it does and to say how far it came.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/text/json.h"

#include <sys/types.h>

#define CLI_CHILDREN_MOST 256 /* at a time */

/* The words of a command. Begins as zeros. */
struct cli_arguments {
    char **item; /* ends with NULL; all owned */
    int count;
    bool failed; /* one is missing: too little memory, or it is too long */
};
void cli_arguments_add(struct cli_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The path of this program. */
void cli_arguments_add_self(struct cli_arguments *arguments);
void cli_arguments_release(struct cli_arguments *arguments);

struct cli_child {
    /* Set by the caller. */
    double stop_at; /* by the clock: the time to ask it to end; 0: never */
    void (*hear)(void *user, const struct tr_json_value *object); /* called with each object on a line of
                                                                     stdout */
    void *user;

    /* How it ended. */
    int code;                  /* exit code, or minus the signal that ended it */
    bool out_of_time, stopped; /* it was asked to end: by `stop_at`, or by a signal to this program */
    bool starved;              /* some of its lines were not heard: too little memory */
    char last_words[4096];     /* the end of its output on stderr */

    /* Private. */
    pid_t process;
    int output, error;
    struct tr_text line;
    size_t words;
    double kill_at; /* when to kill it, once it was asked to end; 0: it was not */
};

/* Runs a command to its end; cli_signals_catch() is on. TR_EIO, TR_ENOMEM if it could not be started;
   TR_ENOMEM if it was not heard whole. */
tr_status cli_child_run(struct cli_child *child, const struct cli_arguments *arguments);

/* The last line of its stderr, or otherwise its code; for people. For one that has ended. */
void cli_child_explain(const struct cli_child *child, char *text, size_t size);

/* For several at a time: starts one. Errors as above; after one there is nothing to attend to. */
tr_status cli_child_start(struct cli_child *child, const struct cli_arguments *arguments);
/* Waits a moment, less if one of the running children has output. */
void cli_child_wait(struct cli_child *const *children, int count);
/* Reads a child's output and asks it to end if its time is over. True once it has ended and its result is
   known; then it must not be called again. */
bool cli_child_attend(struct cli_child *child);

#endif
