/* The download module over libcurl: a separate shared object. */
#include "data/files/fetch.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>

#define CONNECT_SECONDS 20L
#define STALL_SECONDS   60L /* without a byte, after which a transfer fails */

__attribute__((visibility("default"))) extern const struct tr_fetch_module tr_fetch_module;

struct transfer {
    int (*write)(void *user, const void *data, size_t size);
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
    int stopped;
};

static size_t take(char *data, size_t size, size_t count, void *transfer_)
{
    struct transfer *transfer = transfer_;
    if (transfer->write(transfer->user, data, size * count) == 0) return size * count;
    transfer->stopped = 1;
    return 0;
}

static int tell(void *transfer_, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up_done)
{
    struct transfer *transfer = transfer_;
    (void)up_total, (void)up_done;
    if (!transfer->progress || transfer->progress(transfer->user, done, total) == 0) return 0;
    transfer->stopped = 1;
    return 1;
}

/* A libcurl that does not know these protocols must not allow all it has: false where it does not know
   them. */
static bool allow_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,file") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https") == CURLE_OK;
#else
    return curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | CURLPROTO_FILE)) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, (long)CURLPROTO_HTTPS) == CURLE_OK;
#endif
}

static enum tr_fetch_result get(const char *url, int (*write)(void *user, const void *data, size_t size),
                                int (*progress)(void *user, int64_t done, int64_t total), void *user,
                                char *message, size_t size)
{
    struct transfer transfer = {write, progress, user, 0};
    char reason[CURL_ERROR_SIZE] = "";
    CURL *curl = curl_easy_init();
    if (!curl) {
        snprintf(message, size, "libcurl cannot be set up");
        return TR_FETCH_FAILED;
    }
    curl_easy_setopt(curl, CURLOPT_URL, url);
    if (!allow_protocols(curl)) {
        curl_easy_cleanup(curl);
        snprintf(message, size, "this libcurl has no https");
        return TR_FETCH_FAILED;
    }
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "trireme/" TRIREME_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, tell);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    if (code == CURLE_OK) return TR_FETCH_OK;
    if (transfer.stopped) return TR_FETCH_STOPPED;
    snprintf(message, size, "%s", reason[0] ? reason : curl_easy_strerror(code));
    return TR_FETCH_FAILED;
}

const struct tr_fetch_module tr_fetch_module = {.version = TR_FETCH_VERSION, .get = get};
