/* The list of devices: what it says of this machine is what the system says, as text and as JSON. */
#include "support/training.h"

#include "base/caches.h"
#include "base/text/text.h"
#include "device/device.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The first processor's name, as Linux tells it; "" where it tells none. */
static void processor_name(char name[256])
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    name[0] = '\0';
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %255[^\n]", name) == 1) break;
    if (file) fclose(file);
}

static int threads_of(const char *name)
{
    tr_device *device;
    must_train(tr_device_create(name, 0, NULL, &device));
    int threads = device->threads;
    tr_device_destroy(&device);
    return threads;
}

static bool has_line(const char *text, const char *first, const char *second)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, first, strlen(first)) != 0) continue;
        const char *rest = line + strlen(first), *at = rest + strspn(rest, " ");
        if (at > rest && strncmp(at, second, strlen(second)) == 0) return true;
    }
    return false;
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
}

static void text_is_of_this_machine(void **state)
{
    (void)state;
    char name[256], row[64], caches[256] = "", *text;
    struct tr_caches found;
    const int before = open("/proc/self", O_RDONLY | O_CLOEXEC);
    close(before);
    must_train(tr_devices(&text));
    const int after = open("/proc/self", O_RDONLY | O_CLOEXEC);
    close(after);
    assert_int_equal(after, before); /* no file is left open */
    processor_name(name);
    if (name[0]) {
        assert_int_equal(strncmp(text, name, strlen(name) < 127 ? strlen(name) : 127), 0);
        assert_non_null(strstr(text, "\n\ncpu "));
    } else {
        assert_int_equal(strncmp(text, "cpu ", 4), 0);
    }
    const char *const devices[] = {"cpu", "ref"};
    for (int i = 0; i < 2; i++) {
        const int threads = threads_of(devices[i]);
        snprintf(row, sizeof row, "%d thread%s ", threads, threads == 1 ? "" : "s");
        if (!has_line(text, devices[i], row)) fail_msg("%s: no line %s with %s", text, devices[i], row);
    }
    assert_int_equal(occurrences(text, " (default)"), 1);
    assert_true(has_line(text, "  isa", "plain"));
    tr_caches_find(&found);
    for (int i = 0; i < TR_CACHE_LEVELS; i++) {
        char size[TR_TEXT_NUMBER_SIZE];
        const struct tr_cache_level *level = &found.level[i];
        if (level->bytes == 0) continue;
        size_t length = strlen(caches);
        snprintf(caches + length, sizeof caches - length, "%s%s", length ? ", " : "",
                 tr_text_from_bytes(level->bytes, size));
        length = strlen(caches);
        if (level->processors > 1)
            snprintf(caches + length, sizeof caches - length, " for %d", level->processors);
    }
    if (!caches[0]) strcpy(caches, "not known");
    strcat(caches, " ");
    if (!has_line(text, "  caches", caches)) fail_msg("%s: no line of caches with %s", text, caches);
    assert_int_equal(occurrences(text, "\n  caches "), 1);
    assert_int_equal(occurrences(text, "blocks of matrices follow from them\n"), 1);
    /* Devices that need a driver have a line each, or one that says why there is none. */
    const char *const others[] = {"cuda", "opencl"};
    for (int i = 0; i < 2; i++) {
        char first[16];
        snprintf(first, sizeof first, "%s:0", others[i]);
        bool there = strstr(text, first) != NULL;
        assert_int_equal(has_line(text, others[i], "none"), !there);
    }
    tr_text_free(text);
}

static void objects_are_of_this_machine(void **state)
{
    (void)state;
    char name[256], *text, *json;
    struct tr_caches found;
    must_train(tr_devices(&text));
    must_train(tr_devices_json(&json));
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    processor_name(name);
    name[127] = '\0';
    assert_string_equal(json_string_value(json_object_get(root, "processor")), name);
    const json_t *devices = json_object_get(root, "devices"), *cpu = json_array_get(devices, 0);
    int named = 0, kinds = 0;
    for (const struct tr_entry *const *entry = tr_device_kinds.entries; *entry; entry++, kinds++) {
        const json_t *device = json_array_get(devices, (size_t)kinds);
        assert_string_equal(json_string_value(json_object_get(device, "name")), (*entry)->name);
        assert_int_equal(json_is_true(json_object_get(device, "default")), kinds == 0);
        const json_t *threads = json_object_get(device, "threads");
        if (threads) assert_int_equal(json_integer_value(threads), threads_of((*entry)->name));
        assert_true(threads || json_is_array(json_object_get(device, "devices")));
        assert_int_equal(json_object_get(device, "isa") != NULL, strcmp((*entry)->name, "cpu") == 0);
        named += threads != NULL;
    }
    assert_int_equal(json_array_size(devices), kinds);
    assert_true(named >= 2);
    assert_string_equal(json_string_value(json_object_get(cpu, "name")), "cpu");
    /* The instruction sets are those of the text. */
    const json_t *isa = json_object_get(cpu, "isa");
    assert_int_equal(json_array_size(isa), occurrences(text, "\n  isa "));
    for (size_t i = 0; i < json_array_size(isa); i++)
        assert_true(has_line(text, "  isa", json_string_value(json_array_get(isa, i))));
    tr_caches_find(&found);
    const json_t *caches = json_object_get(cpu, "caches");
    size_t told = 0;
    for (int i = 0; i < TR_CACHE_LEVELS; i++) {
        const struct tr_cache_level *level = &found.level[i];
        if (level->bytes == 0) continue;
        const json_t *cache = json_array_get(caches, told++);
        assert_int_equal(json_integer_value(json_object_get(cache, "level")), i + 1);
        assert_int_equal(json_integer_value(json_object_get(cache, "bytes")), level->bytes);
        assert_int_equal(json_integer_value(json_object_get(cache, "processors")), level->processors);
    }
    assert_int_equal(json_array_size(caches), told);
    json_decref(root);
    tr_text_free(json);
    tr_text_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_of_this_machine),
        cmocka_unit_test(objects_are_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
