/* Status codes and messages.
 *
 * Every fallible function of the library returns a tr_status. On any other status than TR_OK the calling
 * thread's message states what failed, with which values, and what to do next. The library never exits and
 * never prints.
 */
#ifndef TRIREME_STATUS_H
#define TRIREME_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TR_API __attribute__((visibility("default")))
#else
#define TR_API
#endif

/* The result of a call. */
typedef enum tr_status {
    TR_OK = 0,           /* success */
    TR_EINVAL = 1,       /* an argument, option or model file is wrong */
    TR_ENOMEM = 2,       /* an allocation failed */
    TR_EIO = 3,          /* a file could not be read or written */
    TR_EFORMAT = 4,      /* bytes from a file do not follow their format */
    TR_ECORRUPT = 5,     /* a checksum does not match */
    TR_EMISMATCH = 6,    /* two things that must agree do not (a checkpoint and a model, say) */
    TR_EUNSUPPORTED = 7, /* this build or machine does not support the request */
    TR_ENONFINITE = 8,   /* a loss or gradient became NaN or infinite */
    TR_EINTERRUPTED = 9, /* a stop was requested; state was kept */
    TR_ENOTFOUND = 10,   /* a named thing does not exist */
    TR_EPEER = 11        /* another process of the job died, hung or gave up; restart from a checkpoint */
} tr_status;

/* The short name of a status ("invalid", "out of memory", ...). Static storage. Any thread. */
TR_API const char *tr_status_name(tr_status status);

/* The calling thread's message of the last failure, "" if there was none. Valid until that thread's next
   failing call. Any thread. */
TR_API const char *tr_error_message(void);

#ifdef __cplusplus
}
#endif
#endif
