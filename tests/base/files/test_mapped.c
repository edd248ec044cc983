/* Mapped files are found by address, as long as they are mapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/mapped.h"
#include "refuse.h"
#include "scratch.h"

static void must_map(const char *name, const char *text, char path[SCRATCH_PATH], struct tr_file_map *map)
{
    scratch_join(path, scratch_place, name);
    assert_int_equal(tr_file_write_atomic(NULL, path, text, strlen(text)), TR_OK);
    assert_int_equal(tr_file_map(path, map), TR_OK);
}

static void finds_the_file_of_an_address(void **state)
{
    (void)state;
    char one[SCRATCH_PATH], two[SCRATCH_PATH];
    struct tr_file_map first, second;
    int64_t live = tr_alloc_live();
    must_map("one", "first", one, &first);
    must_map("two", "second file", two, &second);
    const uint8_t *data = first.data, *other = second.data;
    assert_string_equal(tr_mapped_at(data), one);
    assert_string_equal(tr_mapped_at(data + first.size - 1), one);
    assert_string_equal(tr_mapped_at(other), two);
    assert_string_equal(tr_mapped_at(other + second.size - 1), two);
    assert_null(tr_mapped_at(other + second.size));
    assert_null(tr_mapped_at(&live));
    tr_file_unmap(&first);
    assert_null(tr_mapped_at(data));
    assert_string_equal(tr_mapped_at(other), two);
    must_map("one", "again", one, &first); /* takes the place that is free */
    assert_string_equal(tr_mapped_at(first.data), one);
    tr_file_unmap(&first);
    tr_file_unmap(&second);
    assert_null(tr_mapped_at(other));
    assert_int_equal(tr_alloc_live(), live);
}

/* Many files of records are open at once; closing some in between must lose none of the others. */
static void finds_each_of_many(void **state)
{
    (void)state;
    enum { MANY = 600 };
    static uint8_t place[MANY][4];
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file %d", i);
        assert_int_equal(tr_mapped_add(place[i], sizeof place[i], name), TR_OK);
    }
    for (int i = 0; i < MANY; i += 3) tr_mapped_remove(place[i]);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file %d", i);
        if (i % 3 == 0)
            assert_null(tr_mapped_at(place[i] + 3));
        else
            assert_string_equal(tr_mapped_at(place[i] + 3), name);
    }
    for (int i = 0; i < MANY; i++) tr_mapped_remove(place[i]);
    for (int i = 0; i < MANY; i++) assert_null(tr_mapped_at(place[i]));
}

/* What finds no room is not found, and does no harm; room that is given back is used again. */
static void more_than_there_is_room_for(void **state)
{
    (void)state;
    enum { ROOM = 16384, MANY = ROOM + 5 };
    static uint8_t place[MANY];
    const int64_t live = tr_alloc_live();
    for (int i = 0; i < MANY; i++) assert_int_equal(tr_mapped_add(&place[i], 1, "one"), TR_OK);
    assert_int_equal(tr_alloc_live(), live + ROOM);
    assert_string_equal(tr_mapped_at(&place[ROOM - 1]), "one");
    for (int i = ROOM; i < MANY; i++) {
        assert_null(tr_mapped_at(&place[i]));
        tr_mapped_remove(&place[i]);
    }
    tr_mapped_remove(&place[ROOM / 2]);
    assert_int_equal(tr_mapped_add(&place[ROOM], 1, "another"), TR_OK);
    assert_string_equal(tr_mapped_at(&place[ROOM]), "another");
    assert_null(tr_mapped_at(&place[ROOM / 2]));
    for (int i = ROOM; i >= 0; i--) tr_mapped_remove(&place[i]);
    assert_int_equal(tr_alloc_live(), live);
}

/* Without memory for its name nothing is mapped. */
static void memory_may_fail(void **state)
{
    (void)state;
    struct tr_file_map map;
    scratch_write_text("small", "text");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_file_map(scratch_in("small"), &map);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_null(map.data);
        tr_file_unmap(&map);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_file_of_an_address),
        cmocka_unit_test(finds_each_of_many),
        cmocka_unit_test(more_than_there_is_room_for),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
