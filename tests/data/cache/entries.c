#include "data/cache/entries.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

const char entry_key[TR_SHA256_TEXT] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
char entry_warning[256];

static void keep_warning(void *user, enum tr_log_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(entry_warning, sizeof entry_warning, "%s", message);
}

int write_entry_data(void **unused)
{
    (void)unused;
    uint8_t images[16 + 3 * 4] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2}, masks[sizeof images];
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1};
    memcpy(masks, images, sizeof masks);
    for (size_t i = 16; i < sizeof images; i++) images[i] = (uint8_t)(i * 37);
    for (size_t i = 16; i < sizeof images; i++) masks[i] = (uint8_t)(i % 3);
    write_file("images", images, sizeof images);
    write_file("masks", masks, sizeof masks);
    write_file("labels", labels, sizeof labels);
    write_text("table", "a,b,label\n1,2,0.5\n3,9,1.5\n-4,0.5,2\n");
    write_text("bad", "a,b,label\n1,2,0\n3,x,1\n-4,y,2\n5,6,1\n7,8,1\n");
    write_text("named", "a,b,label\n1,2,cat\n3,9,ox\n-4,0.5,cat\n");
    write_text("texts", "a good film\t1\nbad\t0\nnot good at all\t0\n");
    write_text("tags", "a good film\t0 1 -\nbad\t2\n");
    write_text("corpus", "the quick brown fox jumps over it");
    tr_log_set_sink(keep_warning, NULL, TR_LOG_WARNING);
    return 0;
}

tr_status write_entry_to(const tr_file_system *files, const tr_source *source)
{
    static const uint8_t page[TR_UNPACKED_PAGE];
    struct tr_file_replacement file;
    const char *path = test_path("entry");
    TR_TRY(tr_file_replace_begin(files, path, 0, &file));
    tr_status status = tr_file_write(&file.writer, page, sizeof page);
    if (status == TR_OK) status = tr_unpacked_write(source, entry_key, &file.writer);
    if (status == TR_OK) return tr_file_replace_finish(&file);
    tr_file_replace_abandon(&file);
    return status;
}

tr_status write_entry(const tr_source *source)
{
    return write_entry_to(NULL, source);
}

struct entry make_entry(const char *description)
{
    struct entry entry;
    tr_source *source = must_open(description);
    assert_int_equal(write_entry(source), TR_OK);
    tr_source_close(&source);
    entry.file = read_file(test_path("entry"));
    memcpy(&entry.tail, entry.file.data + entry.file.size - sizeof entry.tail, sizeof entry.tail);
    return entry;
}

tr_status open_sealed(struct entry *entry, bool verify, tr_source **out)
{
    const int64_t live = tr_alloc_live();
    struct tr_file_map map;
    for (int i = 0; i < TR_UNPACKED_SECTIONS; i++) {
        struct tr_unpacked_extent *place = &entry->tail.section[i];
        if (place->offset < 0 || place->bytes < 0 || place->offset + place->bytes > (int64_t)entry->file.size)
            continue;
        place->crc = tr_crc32c(0, entry->file.data + place->offset, (size_t)place->bytes);
    }
    entry->tail.crc = tr_crc32c(0, &entry->tail, offsetof(struct tr_unpacked_tail, crc));
    memcpy(entry->file.data + entry->file.size - sizeof entry->tail, &entry->tail, sizeof entry->tail);
    write_file("entry", entry->file.data, entry->file.size);
    *out = NULL;
    assert_int_equal(tr_file_map(test_path("entry"), &map), TR_OK);
    const tr_status status = tr_unpacked_open(&map, "it", entry_key, verify, out);
    assert_null(map.data);
    if (status != TR_OK) assert_int_equal(tr_alloc_live(), live);
    if (status != TR_OK) assert_null(*out);
    return status;
}
