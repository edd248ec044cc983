/* The interface of the download module, so that only `trireme data fetch` loads libcurl.
 *
 * The module is a separate shared object that shares no code with the library; it reports failures as
 * text.
 */
#ifndef TR_DATA_FETCH_H
#define TR_DATA_FETCH_H

#include <stddef.h>
#include <stdint.h>

#define TR_FETCH_VERSION 2
#define TR_FETCH_SYMBOL  "tr_fetch_module"

enum tr_fetch_result {
    TR_FETCH_OK,
    TR_FETCH_FAILED, /* `message` says why */
    TR_FETCH_STOPPED /* a callback stopped the transfer */
};

struct tr_fetch_module {
    int version; /* TR_FETCH_VERSION */
    /* Reads `url` (https, also where a server redirects, or file) and hands its bytes to `write`, which
       returns non-zero to stop. `progress` is called from time to time with the bytes so far and in all
       (0: unknown), and can stop likewise; it may be NULL. On failure `message`, of `size` bytes, says
       why. */
    enum tr_fetch_result (*get)(const char *url, int (*write)(void *user, const void *data, size_t size),
                                int (*progress)(void *user, int64_t done, int64_t total), void *user,
                                char *message, size_t size);
};

#endif
