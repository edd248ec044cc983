/* Fetches one file: downloads it under another name, verifies it, then renames it. */
#include "data/files/fetch.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/module.h"
#include "data/files/data_set.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Most bytes to accept for a file whose size is not known in advance. */
#define UNKNOWN_SIZE_MAX ((int64_t)64 << 20)

static const struct tr_module fetch_module = {
    .file = "trireme-fetch.so",
    .symbol = TR_FETCH_SYMBOL,
    .version = TR_FETCH_VERSION,
    .purpose = "downloads need",
    .advice = "download the files by hand, or install libcurl (Debian: libcurl4-openssl-dev)",
};

/* ---- one transfer ---- */

struct transfer {
    const char *path;
    struct tr_file_writer writer;
    int64_t done, most;
    tr_data_progress progress;
    void *user;
    tr_status status; /* why a callback stopped the transfer */
};

static int take(void *user, const void *data, size_t size)
{
    struct transfer *transfer = user;
    if ((int64_t)size > transfer->most - transfer->done) {
        transfer->status =
            tr_fail(TR_ECORRUPT, "more than the %" PRId64 " bytes that the file may have", transfer->most);
        return 1;
    }
    transfer->done += (int64_t)size;
    transfer->status = tr_file_write(&transfer->writer, data, size);
    return transfer->status != TR_OK;
}

static int tell(void *user, int64_t done, int64_t total)
{
    struct transfer *transfer = user;
    if (!transfer->progress || transfer->progress(transfer->user, transfer->path, done, total) == 0) return 0;
    transfer->status = tr_fail(TR_EINTERRUPTED, "%s: the download was stopped", transfer->path);
    return 1;
}

/* Reads `url` into the file `aside` and verifies it. */
static tr_status read_url(const struct tr_fetch_module *module, const char *url,
                          const struct tr_data_file *file, const char *aside, struct transfer *transfer)
{
    char message[256] = "";
    transfer->done = 0;
    transfer->status = TR_OK;
    TR_TRY(tr_file_begin(NULL, aside, TR_FILE_REPLACE, (uint64_t)file->size, &transfer->writer));
    enum tr_fetch_result result = module->get(url, take, tell, transfer, message, sizeof message);
    if (result == TR_FETCH_STOPPED) {
        tr_file_abandon(&transfer->writer);
        return tr_fail_in(transfer->status, "fetch %s", url);
    }
    if (result != TR_FETCH_OK) {
        tr_file_abandon(&transfer->writer);
        return tr_fail(TR_EIO, "fetch %s: %s; check the network, or download the file by hand", url, message);
    }
    TR_TRY(tr_file_finish(&transfer->writer, true));
    tr_status status = tr_data_file_verify(file, aside);
    return status == TR_OK ? TR_OK : tr_fail_in(status, "fetch %s", url);
}

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Data must not come over a connection that others can read and change, even though checksums are known. */
static tr_status check_mirror(const char *mirror)
{
    if (begins(mirror, "https://") || begins(mirror, "file:///")) return TR_OK;
    return tr_fail(TR_EINVAL, "mirror \"%s\": give https://HOST/FOLDER or file:///FOLDER", mirror);
}

tr_status tr_data_file_fetch(const struct tr_data_file *file, const char *const *mirrors, const char *path,
                             tr_data_progress progress, void *user)
{
    const void *loaded;
    struct transfer transfer = {.path = path, .progress = progress, .user = user};
    transfer.most = file->size > 0 ? file->size : UNKNOWN_SIZE_MAX;
    for (int i = 0; mirrors[i]; i++) TR_TRY(check_mirror(mirrors[i]));
    TR_TRY(tr_module_load(&fetch_module, &loaded));
    const struct tr_fetch_module *module = loaded;
    char *aside = tr_format("%s.%ld.tmp", path, (long)getpid());
    if (!aside) return TR_ENOMEM;
    tr_status status = TR_EIO;
    for (int i = 0; mirrors[i] && (status == TR_EIO || status == TR_ECORRUPT); i++) {
        char *url = tr_path_join(mirrors[i], file->name);
        status = url ? read_url(module, url, file, aside, &transfer) : TR_ENOMEM;
        if (status == TR_OK) status = tr_file_rename(NULL, aside, path);
        tr_free(url);
        if (status == TR_OK) break;
        unlink(aside); /* not through the file system table, whose message would hide the reason */
    }
    tr_free(aside);
    return status;
}
