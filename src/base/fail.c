/* Thread-local message of the last failure. */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[TR_MESSAGE_SIZE];

static const char *const names[] = {
    [TR_OK] = "ok",
    [TR_EINVAL] = "invalid",
    [TR_ENOMEM] = "out of memory",
    [TR_EIO] = "input/output",
    [TR_EFORMAT] = "bad format",
    [TR_ECORRUPT] = "corrupt",
    [TR_EMISMATCH] = "mismatch",
    [TR_EUNSUPPORTED] = "unsupported",
    [TR_ENONFINITE] = "not finite",
    [TR_EINTERRUPTED] = "interrupted",
    [TR_ENOTFOUND] = "not found",
    [TR_EPEER] = "lost another process",
};

const char *tr_status_name(tr_status status)
{
    size_t index = (size_t)status;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown status";
}

const char *tr_error_message(void)
{
    return message;
}

tr_status tr_fail(tr_status status, const char *format, ...)
{
    /* Formatted in a separate buffer, since an argument may be the current message. */
    char text[TR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof message);
    return status;
}

tr_status tr_fail_in(tr_status status, const char *format, ...)
{
    char text[2 * TR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, TR_MESSAGE_SIZE, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : (size_t)length < TR_MESSAGE_SIZE ? (size_t)length : TR_MESSAGE_SIZE - 1;
    snprintf(text + used, sizeof text - used, ": %s", message);
    memcpy(message, text, TR_MESSAGE_SIZE - 1);
    return status;
}

void tr_failure_keep(struct tr_failure *failure, tr_status status)
{
    failure->status = status;
    memcpy(failure->message, message, sizeof message);
}

tr_status tr_failure_restore(const struct tr_failure *failure)
{
    memcpy(message, failure->message, sizeof message);
    return failure->status;
}
