#include "data/files/spill.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "data/files/data_set.h"
#include "data/files/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes that are checked or unpacked at a time. */
#define PIECE ((size_t)16 << 20)

static tr_status fail_disk(const char *directory, size_t size, int error)
{
    char text[TR_TEXT_NUMBER_SIZE];
    return tr_fail(
        TR_EIO,
        "%s: a file of %s for data on their way cannot be made: %s; make room there, or name another "
        "directory for the data cache",
        directory, tr_text_from_bytes((int64_t)size, text), strerror(error));
}

/* Opens a file and removes its name. */
static tr_status open_file(const char *directory, int *out)
{
    char *path = tr_path_join(directory, "spill-XXXXXX");
    if (!path) return TR_ENOMEM;
    *out = mkostemp(path, O_CLOEXEC);
    int error = errno;
    if (*out >= 0) unlink(path);
    tr_free(path);
    return *out >= 0 ? TR_OK : fail_disk(directory, 0, error);
}

static tr_status map(int descriptor, const char *directory, size_t size, struct tr_spill *out)
{
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return fail_disk(directory, size, errno);
    *out = (struct tr_spill){data, size};
    return TR_OK;
}

tr_status tr_spill_make(const char *directory, size_t size, struct tr_spill *out)
{
    int descriptor;
    *out = (struct tr_spill){0};
    if (size == 0) size = 1;
    TR_TRY(open_file(directory, &descriptor));
    /* Reserves room at once: writing to a mapped page without room on the disk would kill the process. */
    int error = posix_fallocate(descriptor, 0, (off_t)size);
    tr_status status = error ? fail_disk(directory, size, error) : map(descriptor, directory, size, out);
    close(descriptor);
    return status;
}

void tr_spill_leave(const struct tr_spill *spill)
{
    if (spill->data) madvise(spill->data, spill->size, MADV_DONTNEED);
}

void tr_spill_release(struct tr_spill *spill)
{
    if (spill->data) munmap(spill->data, spill->size);
    *spill = (struct tr_spill){0};
}

/* ---- texts ---- */

static tr_status write_piece(int descriptor, const char *directory, const uint8_t *piece, size_t size)
{
    while (size > 0) {
        ssize_t written = write(descriptor, piece, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail_disk(directory, size, errno);
        piece += written;
        size -= (size_t)written;
    }
    return TR_OK;
}

/* Unpacks the file, and has each piece checked. */
static tr_status unpack(tr_inflate *inflate, int descriptor, const char *directory,
                        struct tr_line_check *check, size_t *size)
{
    uint8_t *piece = tr_alloc(PIECE, 1);
    tr_status status = piece ? TR_OK : TR_ENOMEM;
    for (size_t got = 1; status == TR_OK && got > 0; *size += got) {
        got = 0;
        status = tr_inflate_read(inflate, piece, PIECE, &got);
        if (status == TR_OK && got > 0) status = tr_line_check(check, piece, got);
        if (status == TR_OK) status = write_piece(descriptor, directory, piece, got);
    }
    tr_free(piece);
    return status;
}

static tr_status spill_packed(const char *path, const char *directory, struct tr_line_check *check,
                              struct tr_spilled_text *out)
{
    tr_inflate *inflate = NULL;
    int descriptor;
    TR_TRY(open_file(directory, &descriptor));
    tr_status status = tr_inflate_create(path, out->map.data, out->map.size, TR_PACKING_GZIP, &inflate);
    if (status == TR_OK) status = unpack(inflate, descriptor, directory, check, &out->size);
    if (status == TR_OK && out->size > 0) status = map(descriptor, directory, out->size, &out->unpacked);
    tr_inflate_destroy(&inflate);
    close(descriptor);
    out->data = out->unpacked.data;
    return status;
}

tr_status tr_spill_lines(const char *path, const char *directory, struct tr_spilled_text *out)
{
    struct tr_line_check check = {.path = path};
    *out = (struct tr_spilled_text){0};
    TR_TRY(tr_data_map(path, &out->map));
    if (tr_packing_of(out->map.data, out->map.size) == TR_PACKING_GZIP)
        return spill_packed(path, directory, &check, out);
    out->data = out->map.data;
    out->size = out->map.size;
    for (size_t at = 0; at < out->size; at += PIECE) {
        TR_TRY(tr_line_check(&check, out->data + at, out->size - at < PIECE ? out->size - at : PIECE));
        tr_spilled_text_leave(out);
    }
    return TR_OK;
}

void tr_spilled_text_leave(const struct tr_spilled_text *text)
{
    if (text->map.data) tr_file_map_leave(&text->map);
    tr_spill_leave(&text->unpacked);
}

void tr_spilled_text_release(struct tr_spilled_text *text)
{
    tr_file_unmap(&text->map);
    tr_spill_release(&text->unpacked);
    *text = (struct tr_spilled_text){0};
}
