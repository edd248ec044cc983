/* Evidence of a step: which entries the work of a device leaves, which bytes they have and who wrote a number
 * last; what was in memory before; leaves and digests as dispute/evidence.h writes them down. */
#include "dispute/evidence.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/device.h"
#include "dispute/witness.h"
#include "refuse.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define FLOATS 100 /* 400 bytes: a whole leaf and a part of one */
#define BYTES  ((int64_t)FLOATS * 4)

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

/* A watched device with two blocks of memory; the first one was written before. */
struct scene {
    tr_device *device;
    float *a, *b;
    float sent[FLOATS];
    struct tr_evidence evidence;
};

/* The copy or wait of that number, from 0, fails on the devices that scenes watch; counts down. */
static int fails = -1;
static struct tr_device_class failing;
static const struct tr_device_class *real;

static tr_status count_one(void)
{
    return fails-- == 0 ? tr_fail(TR_EIO, "the device is gone") : TR_OK;
}

static tr_status to_device(tr_device *device, void *to, const void *from, size_t bytes)
{
    TR_TRY(count_one());
    return real->to_device(device, to, from, bytes);
}

static tr_status to_host(tr_device *device, void *to, const void *from, size_t bytes)
{
    TR_TRY(count_one());
    return real->to_host(device, to, from, bytes);
}

static tr_status wait_for_all(tr_device *device)
{
    TR_TRY(count_one());
    return real->wait ? real->wait(device) : TR_OK;
}

static void begin(struct scene *s)
{
    tr_device *inner;
    *s = (struct scene){0};
    must(tr_device_create("ref", 1, NULL, &inner));
    real = inner->class;
    failing = *real;
    failing.to_device = to_device;
    failing.to_host = to_host;
    failing.wait = wait_for_all;
    inner->class = &failing;
    must(tr_witness_create(inner, &s->device));
    assert_ptr_equal(tr_witness_inner(s->device), inner);
    must(tr_device_alloc(s->device, (size_t)BYTES, (void **)&s->a));
    must(tr_device_alloc(s->device, (size_t)BYTES, (void **)&s->b));
    for (int i = 0; i < FLOATS; i++) s->sent[i] = (float)i;
    must(tr_device_to_device(s->device, s->a, s->sent, (size_t)BYTES));
    must(tr_device_to_device(s->device, s->b, s->sent, (size_t)BYTES));
}

static void end(struct scene *s)
{
    tr_evidence_release(&s->evidence);
    tr_device_free(s->device, s->a);
    tr_device_free(s->device, s->b);
    tr_device_destroy(&s->device);
}

/* An upload to the middle of b, ten numbers of a that become 7, and a look at b. */
static tr_status work(struct scene *s)
{
    float back[FLOATS];
    const struct tr_op_fill fill = {10, 7, s->a + 20};
    TR_TRY(tr_evidence_memory(&s->evidence, TR_EVIDENCE_INITIAL, "parameters", s->a, BYTES));
    tr_witness_watch(s->device, &s->evidence);
    tr_status status = tr_device_to_device(s->device, s->b + 50, s->sent, 8);
    if (status == TR_OK) status = tr_device_fill(s->device, &fill);
    if (status == TR_OK) status = tr_device_to_host(s->device, back, s->b + 50, 8);
    if (status == TR_OK) status = tr_device_to_host(s->device, back, s->b, 4); /* which nothing wrote */
    if (status == TR_OK) status = tr_device_to_device(s->device, s->b, s->sent, 0);
    tr_witness_watch(s->device, NULL);
    if (status == TR_OK) status = tr_device_to_device(s->device, s->b, s->sent, 4); /* nobody looks */
    return status == TR_OK ? tr_evidence_close(&s->evidence) : status;
}

static void make(struct scene *s)
{
    begin(s);
    must(tr_evidence_open(tr_witness_inner(s->device), &s->evidence));
    must(tr_witness_keep(s->device, &s->evidence));
    must(work(s));
}

static void all_that_happens_is_an_entry(void **state)
{
    static const struct {
        enum tr_evidence_kind kind;
        const char *name;
        int64_t bytes;
    } expected[] = {{TR_EVIDENCE_INITIAL, "parameters", BYTES},
                    {TR_EVIDENCE_UPLOAD, "upload", 8},
                    {TR_EVIDENCE_OPERATION, "fill", 40},
                    {TR_EVIDENCE_DOWNLOAD, "download", 8}};
    (void)state;
    struct scene s;
    float found[10];
    make(&s);
    assert_int_equal(s.evidence.entries, 4);
    for (int i = 0; i < 4; i++) {
        const struct tr_evidence_entry *entry = &s.evidence.entry[i];
        assert_int_equal(entry->kind, expected[i].kind);
        assert_string_equal(entry->name, expected[i].name);
        assert_int_equal(entry->regions, 1);
        assert_int_equal(tr_evidence_bytes(&s.evidence.region[entry->first]), expected[i].bytes);
        assert_int_equal(s.evidence.region[entry->first].size, 4);
    }
    const struct tr_op_fill *arguments = s.evidence.entry[2].arguments;
    assert_int_equal(s.evidence.entry[2].operation, TR_OPERATION_fill);
    assert_int_equal(arguments->count, 10);
    must(tr_evidence_read(&s.evidence, s.evidence.region[2].at, 40, found));
    for (int i = 0; i < 10; i++) assert_true(found[i] == 7);
    must(tr_evidence_read(&s.evidence, s.evidence.region[0].at + 80, 40, found)); /* before the operation */
    for (int i = 0; i < 10; i++) assert_true(found[i] == (float)(20 + i));
    end(&s);
}

static void expect_writer(const struct scene *s, const void *address, int64_t before, int64_t region,
                          int64_t byte)
{
    int64_t at = -7;
    assert_int_equal(tr_evidence_writer(&s->evidence, address, before, &at), region);
    if (region < 0) return;
    assert_int_equal(at, byte);
    assert_ptr_equal(tr_evidence_address(&s->evidence.region[region], byte), address);
}

static void the_last_writer_of_a_number_is_found(void **state)
{
    (void)state;
    struct scene s;
    make(&s);
    expect_writer(&s, s.a + 19, 4, 0, 76);
    expect_writer(&s, s.a + 20, 4, 2, 0);
    expect_writer(&s, s.a + 29, 4, 2, 36);
    expect_writer(&s, s.a + 30, 4, 0, 120);
    expect_writer(&s, s.a + 20, 3, 2, 0);
    expect_writer(&s, s.a + 20, 2, 0, 80); /* before the operation */
    expect_writer(&s, s.a + 20, 0, -1, 0);
    expect_writer(&s, s.b + 50, 4, 1, 0);
    expect_writer(&s, (char *)(s.b + 51) + 3, 4, 1, 7);
    expect_writer(&s, s.b + 52, 4, -1, 0);
    expect_writer(&s, s.b + 49, 4, -1, 0);
    expect_writer(&s, s.b + 50, 1, -1, 0);
    end(&s);
}

static void what_was_there_before_is_kept(void **state)
{
    (void)state;
    struct scene s;
    float found[2];
    make(&s);
    must(tr_evidence_kept(&s.evidence, s.a + 20, 8, found));
    assert_true(found[0] == 20 && found[1] == 21);
    must(tr_evidence_kept(&s.evidence, s.b + 98, 8, found));
    assert_true(found[0] == 98 && found[1] == 99);
    must(tr_evidence_kept(&s.evidence, s.b, 8, found));
    assert_true(found[0] == 0 && found[1] == 1);
    assert_int_equal(tr_evidence_kept(&s.evidence, s.b + 99, 8, found), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(), "a number is read that nothing wrote");
    assert_int_equal(tr_evidence_kept(&s.evidence, found, 8, found), TR_ENOTFOUND);
    end(&s);
}

/* Digests from leaves to the entry, by other means. */
static void digests_are_as_they_are_written_down(void **state)
{
    (void)state;
    struct scene s;
    tr_sha256 *hash;
    struct tr_sha256_sum leaf[2], root, expected;
    const struct tr_sha256_sum *leaves;
    make(&s);
    const struct tr_evidence_region *region = &s.evidence.region[0];
    assert_int_equal(tr_evidence_leaves(region), 2);
    assert_int_equal(tr_evidence_leaf_bytes(region, 0), 256);
    assert_int_equal(tr_evidence_leaf_bytes(region, 1), BYTES - 256);
    must(tr_sha256_begin(&hash));
    for (int i = 0; i < 2; i++) {
        tr_sha256_add(hash, "", 1);
        tr_sha256_add(hash, (const char *)s.sent + 256 * i, i ? (size_t)BYTES - 256 : 256);
        must(tr_sha256_take(hash, &leaf[i]));
    }
    tr_sha256_add(hash, "\1", 1);
    tr_sha256_add(hash, leaf, sizeof leaf);
    must(tr_sha256_take(hash, &root));
    tr_sha256_add(hash, "\0parameters", 12); /* with the 0 behind it */
    tr_sha256_add(hash, &root, sizeof root);
    must(tr_sha256_take(hash, &expected));
    tr_sha256_destroy(&hash);
    for (int round = 0; round < 2; round++) { /* computed, and remembered */
        must(tr_evidence_leaf_sums(&s.evidence, 0, &leaves));
        assert_memory_equal(leaves, leaf, sizeof leaf);
    }
    must(tr_evidence_leaf_sums(&s.evidence, 2, &leaves));
    assert_memory_not_equal(leaves, leaf, sizeof *leaf);
    must(tr_evidence_leaf_sums(&s.evidence, 0, &leaves));
    assert_memory_equal(leaves, leaf, sizeof leaf);
    assert_memory_equal(&region->root, &root, sizeof root);
    assert_memory_equal(&s.evidence.leaf[0], &expected, sizeof expected);
    end(&s);
}

/* Numbers of bytes have no other size. */
static void bytes_that_are_no_numbers_stand_for_themselves(void **state)
{
    (void)state;
    struct scene s;
    int64_t at;
    char found[6];
    make(&s);
    must(tr_evidence_memory(&s.evidence, TR_EVIDENCE_UPLOAD, "upload", s.b, 7));
    assert_int_equal(s.evidence.region[s.evidence.regions - 1].size, 1);
    const int64_t before = s.evidence.end;
    must(tr_evidence_keep(&s.evidence, s.b, 0));
    assert_int_equal(s.evidence.end, before);
    must(tr_evidence_store(&s.evidence, "apart", 6, &at));
    assert_int_equal(at, before);
    assert_int_equal(s.evidence.end, before + 6);
    must(tr_evidence_read(&s.evidence, at, 6, found));
    assert_string_equal(found, "apart");
    /* More than there is, whatever became of an earlier call. */
    errno = EINTR;
    assert_int_equal(tr_evidence_read(&s.evidence, at, 7, (char[8]){0}), TR_EIO);
    assert_non_null(strstr(tr_error_message(), "reading the numbers of a step"));
    end(&s);
}

/* As much as the disk takes, and no more. */
static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct scene s;
    struct rlimit before, small;
    int64_t at;
    char found[8];
    make(&s);
    must(tr_evidence_store(&s.evidence, "x", 1, &at));
    must(tr_evidence_read(&s.evidence, at, 1, found));
    assert_int_equal(found[0], 'x');
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = (rlim_t)s.evidence.end + 4; /* where a write of eight is cut */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const tr_status status = tr_evidence_store(&s.evidence, "too much", 8, &at);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, TR_EIO);
    assert_non_null(strstr(tr_error_message(), "writing the numbers of a step: "));
    assert_non_null(strstr(tr_error_message(), "set TMPDIR to where there is room"));
    end(&s);
}

/* In a file that nobody sees, below TMPDIR where that is a place. */
static void numbers_lie_where_there_is_room(void **state)
{
    (void)state;
    const char *const places[] = {scratch_place, "/nowhere/at/all", "", NULL};
    const char *given = getenv("TMPDIR");
    char before[SCRATCH_PATH] = "";
    if (given) snprintf(before, sizeof before, "%s", given);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct scene s;
        char link[32], path[2 * SCRATCH_PATH] = "", begins[SCRATCH_PATH + 32];
        if (places[i])
            setenv("TMPDIR", places[i], 1);
        else
            unsetenv("TMPDIR");
        begin(&s);
        must(tr_evidence_open(tr_witness_inner(s.device), &s.evidence));
        snprintf(link, sizeof link, "/proc/self/fd/%d", s.evidence.file);
        assert_true(readlink(link, path, sizeof path - 1) > 0);
        snprintf(begins, sizeof begins, "%s/trireme-dispute-", i == 0 ? scratch_place : "/tmp");
        assert_int_equal(strncmp(path, begins, strlen(begins)), 0);
        assert_int_equal(access(path, F_OK), -1);
        *strchr(path, ' ') = '\0'; /* before "(deleted)" */
        assert_int_equal(access(path, F_OK), -1);
        end(&s);
    }
    if (given)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
}

/* What was given back is kept no longer, and all else is. */
static void memory_that_was_given_back_is_forgotten(void **state)
{
    (void)state;
    struct scene s;
    float *c, found;
    begin(&s);
    must(tr_device_alloc(s.device, (size_t)BYTES, (void **)&c));
    must(tr_device_to_device(s.device, c, s.sent, (size_t)BYTES));
    tr_device_free(s.device, s.a);
    must(tr_evidence_open(tr_witness_inner(s.device), &s.evidence));
    must(tr_witness_keep(s.device, &s.evidence));
    assert_int_equal(s.evidence.ranges, 2);
    must(tr_evidence_kept(&s.evidence, s.b + 5, 4, &found));
    assert_true(found == 5);
    must(tr_evidence_kept(&s.evidence, c + 6, 4, &found));
    assert_true(found == 6);
    s.a = c; /* which is given back at the end */
    end(&s);
}

static void a_witness_makes_another(void **state)
{
    (void)state;
    struct scene s;
    tr_device *other = NULL;
    begin(&s);
    must(tr_device_create_like(s.device, 2, &other));
    assert_ptr_not_equal(tr_witness_inner(other), tr_witness_inner(s.device));
    tr_device_destroy(&other);
    end(&s);
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct scene s;
        tr_device *other;
        void *memory = NULL;
        begin(&s);
        const int64_t live = tr_alloc_live();
        const int file = dup(0);
        close(file);
        refuse_begin(at);
        tr_status status = tr_evidence_open(tr_witness_inner(s.device), &s.evidence);
        if (status == TR_OK) status = tr_witness_keep(s.device, &s.evidence);
        if (status == TR_OK) status = work(&s);
        if (status == TR_OK) {
            const struct tr_sha256_sum *leaves;
            status = tr_evidence_leaf_sums(&s.evidence, 0, &leaves);
        }
        if (status == TR_OK) status = tr_device_alloc(s.device, 64, &memory);
        if (memory) tr_device_free(s.device, memory);
        if (status == TR_OK) {
            status = tr_device_create_like(s.device, 1, &other);
            if (status == TR_OK)
                tr_device_destroy(&other);
            else
                assert_null(other);
        }
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_evidence_release(&s.evidence);
        /* The list of blocks may have grown, which is the device's. */
        assert_in_range(tr_alloc_live() - live, 0, 1);
        const int after = dup(0);
        close(after);
        assert_int_equal(after, file);
        end(&s);
    }
}

/* Whatever of the copies and waits of a device fails. */
static void a_failing_device_is_told(void **state)
{
    int at = 0;
    (void)state;
    for (bool done = false; !done; at++) {
        struct scene s;
        begin(&s);
        must(tr_evidence_open(tr_witness_inner(s.device), &s.evidence));
        fails = at;
        tr_status status = tr_witness_keep(s.device, &s.evidence);
        if (status == TR_OK) status = work(&s);
        done = fails >= 0;
        fails = -1;
        assert_int_equal(status, done ? TR_OK : TR_EIO);
        end(&s);
    }
    assert_in_range(at, 16, 60);
}

/* A file that holds less than was written. */
static void numbers_that_are_lost_are_told(void **state)
{
    (void)state;
    struct scene s;
    const struct tr_sha256_sum *leaves;
    make(&s);
    assert_int_equal(ftruncate(s.evidence.file, 0), 0);
    errno = 0;
    assert_int_equal(tr_evidence_leaf_sums(&s.evidence, 0, &leaves), TR_EIO);
    assert_null(leaves);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_happens_is_an_entry),
        cmocka_unit_test(the_last_writer_of_a_number_is_found),
        cmocka_unit_test(what_was_there_before_is_kept),
        cmocka_unit_test(digests_are_as_they_are_written_down),
        cmocka_unit_test(bytes_that_are_no_numbers_stand_for_themselves),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test_setup_teardown(numbers_lie_where_there_is_room, scratch_place_make,
                                        scratch_place_remove),
        cmocka_unit_test(memory_that_was_given_back_is_forgotten),
        cmocka_unit_test(a_witness_makes_another),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(a_failing_device_is_told),
        cmocka_unit_test(numbers_that_are_lost_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
