/* fetch_with CERTIFICATE URL: prints what the download module reads from an address; the certificate is
 * trusted in place of those that the system trusts. Exit code 1, and the reason on stderr, where it reads
 * nothing.
 *
 * The module is linked in, so that this program may stand between it and libcurl.
 */
#include "data/files/fetch.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>

extern const struct tr_fetch_module tr_fetch_module;

static const char *certificate;

/* All options that the module sets are pointers or longs, which are passed alike. */
CURLcode __real_curl_easy_setopt(CURL *curl, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *curl, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    if (option == CURLOPT_URL) __real_curl_easy_setopt(curl, CURLOPT_CAINFO, certificate);
    return __real_curl_easy_setopt(curl, option, value);
}

static int print(void *user, const void *data, size_t size)
{
    (void)user;
    return fwrite(data, 1, size, stdout) != size;
}

int main(int argc, char **argv)
{
    char message[256] = "";
    if (argc != 3) return 2;
    certificate = argv[1];
    enum tr_fetch_result result = tr_fetch_module.get(argv[2], print, NULL, NULL, message, sizeof message);
    if (result == TR_FETCH_OK) return 0;
    fprintf(stderr, "%s\n", message);
    return 1;
}
