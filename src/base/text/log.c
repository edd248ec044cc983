#include "base/text/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tr_log_sink the_sink;
static void *sink_user;
static enum tr_log_level least_level;

const char *tr_log_level_name(enum tr_log_level level)
{
    static const char *const names[] = {
        [TR_LOG_DEBUG] = "debug", [TR_LOG_INFO] = "info", [TR_LOG_WARNING] = "warning"};
    return names[level];
}

void tr_log_set_sink(tr_log_sink sink, void *user, enum tr_log_level least)
{
    pthread_mutex_lock(&lock);
    the_sink = sink;
    sink_user = user;
    least_level = least;
    pthread_mutex_unlock(&lock);
}

void tr_log_line(enum tr_log_level level, const char *format, ...)
{
    pthread_mutex_lock(&lock);
    if (the_sink && level >= least_level) {
        char message[1024];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        the_sink(sink_user, level, message);
    }
    pthread_mutex_unlock(&lock);
}
