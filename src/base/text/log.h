/* Messages of the library besides results: warnings, and progress of long operations.
 *
 * The library prints nothing. The program sets a sink; without one all messages are dropped. Errors are
 * not logged but returned (base/fail.h).
 */
#ifndef TR_BASE_LOG_H
#define TR_BASE_LOG_H

enum tr_log_level {
    TR_LOG_DEBUG,
    TR_LOG_INFO,
    TR_LOG_WARNING, /* a problem that the library could work around */
};

/* "debug", "info", "warning". Static storage. */
const char *tr_log_level_name(enum tr_log_level level);

/* Receives each message, one line without line feed, borrowed for the call; on the thread that logs, one
 * at a time. It must not log.
 */
typedef void (*tr_log_sink)(void *user, enum tr_log_level level, const char *message);

/* Messages below `least` are dropped; NULL removes the sink. When this returns, the old sink is not
 * running. Any thread.
 */
void tr_log_set_sink(tr_log_sink sink, void *user, enum tr_log_level least);

/* Passes a message to the sink, cut at 1 KiB. Does not change the thread's error message. Any thread. */
void tr_log_line(enum tr_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
