/* The devices of this machine. */
#include "trireme/inspect.h"

#include "base/alloc.h"
#include "base/caches.h"
#include "base/fail.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "device/device.h"
#include "device/isas.h"

#include <stdio.h>
#include <string.h>

/* The first one of a machine is its default. */
static const struct {
    const char *name, *meaning;
} isas[] = {
#define ISA(name, help) {#name, help},
    TR_ISAS(ISA)
#undef ISA
};
#define ISAS (sizeof isas / sizeof isas[0])

#define PROCESSOR_SIZE 128

#define STATE_SIZE 512

/* What can be said of devices that need a driver. */
struct look {
    bool test;         /* opens them, which tests their arithmetic */
    const char *cache; /* for programs, or NULL */
};

/* One of them. */
struct other {
    bool usable;
    char facts[256], state[STATE_SIZE]; /* "NVIDIA ..., 80 GiB (CUDA)"; "exact", "exact, slow", or why it
                                           cannot be used */
};

/* TR_ENOTFOUND, with the reason, where there is no device of this number. */
static tr_status look_at(const struct tr_device_kind *kind, int number, const struct look *how,
                         struct other *out)
{
    *out = (struct other){0};
    tr_status status = kind->describe(number, out->facts, sizeof out->facts);
    bool slow = false;
    if (status == TR_ENOTFOUND || status == TR_ENOMEM) return status;
    if (status == TR_OK && how->test) {
        char name[64];
        tr_device *device;
        struct tr_device_choice choice = {.name = name, .cache = how->cache};
        snprintf(name, sizeof name, "%s:%d", kind->name, number);
        status = tr_device_open(&choice, &device);
        if (status == TR_ENOMEM) return status;
        if (status == TR_OK) {
            slow = device->slow;
            tr_device_destroy(&device);
        }
    }
    out->usable = status == TR_OK;
    if (status != TR_OK)
        snprintf(out->state, sizeof out->state, "refused: %s", tr_error_message());
    else
        snprintf(out->state, sizeof out->state, "%s",
                 !how->test ? "tested when it is opened"
                 : slow     ? "exact, slow"
                            : "exact");
    return TR_OK;
}

struct machine {
    char processor[PROCESSOR_SIZE]; /* "" if unknown */
    int threads;                    /* that the cpu device uses by default */
    bool has[ISAS];
    struct tr_caches caches;
};

/* The line "model name : ..." of Linux; other systems and processors have none. */
static void find_processor(char name[PROCESSOR_SIZE])
{
    char line[256];
    name[0] = '\0';
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    while (!name[0] && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        const char *begin = colon + 1 + strspn(colon + 1, " \t");
        snprintf(name, PROCESSOR_SIZE, "%.*s", (int)strcspn(begin, "\n"), begin);
    }
    fclose(file);
}

static tr_status look(struct machine *machine)
{
    *machine = (struct machine){0};
    find_processor(machine->processor);
    tr_caches_find(&machine->caches);
    tr_device *device;
    TR_TRY(tr_device_create("cpu", 0, NULL, &device));
    machine->threads = device->threads;
    tr_device_destroy(&device);
    for (size_t i = 0; i < ISAS; i++) {
        tr_status status = tr_device_create("cpu", 1, isas[i].name, &device);
        if (status == TR_EUNSUPPORTED) continue;
        if (status != TR_OK) return status;
        machine->has[i] = true;
        tr_device_destroy(&device);
    }
    return TR_OK;
}

static tr_status device_threads(const struct tr_entry *entry, int *threads)
{
    tr_device *device;
    TR_TRY(tr_device_create(entry->name, 0, NULL, &device));
    *threads = device->threads;
    tr_device_destroy(&device);
    return TR_OK;
}

/* "32 KiB, 1 MiB, 32 MiB for 2": a cache, and how many processors share it. */
static tr_status add_caches(const struct tr_caches *caches, struct tr_table *table)
{
    struct tr_text text = TR_TEXT_INIT;
    char size[TR_TEXT_NUMBER_SIZE];
    char *sizes;
    for (int i = 0; i < TR_CACHE_LEVELS; i++) {
        const struct tr_cache_level *cache = &caches->level[i];
        if (cache->bytes == 0) continue;
        tr_text_addf(&text, "%s%s", text.length > 0 ? ", " : "", tr_text_from_bytes(cache->bytes, size));
        if (cache->processors > 1) tr_text_addf(&text, " for %d", cache->processors);
    }
    if (text.length == 0) tr_text_add(&text, "not known");
    tr_status status = tr_text_finish(&text, &sizes);
    if (status == TR_OK) {
        tr_table_cell(table, "  caches");
        tr_table_cell(table, "%s", sizes);
        tr_table_cell(table, "blocks of matrices follow from them");
        tr_free(sizes);
    }
    tr_text_release(&text);
    return status;
}

/* Instruction sets and caches are the cpu device's. */
static bool has_isas(const struct tr_entry *entry)
{
    return strcmp(entry->name, "cpu") == 0;
}

/* A line for each device of a kind, or one that says that there is none. */
static tr_status add_others(const struct tr_device_kind *kind, const struct look *how, struct tr_table *table)
{
    struct other other;
    for (int number = 0;; number++) {
        tr_status status = look_at(kind, number, how, &other);
        if (status == TR_ENOTFOUND && number == 0) {
            tr_table_cell(table, "%s", kind->name);
            tr_table_cell(table, "none");
            tr_table_cell(table, "%s", tr_error_message());
        }
        if (status == TR_ENOTFOUND) return TR_OK;
        TR_TRY(status);
        tr_table_cell(table, "%s:%d", kind->name, number);
        tr_table_cell(table, "%s", other.facts);
        tr_table_cell(table, "%s", other.state);
    }
}

/* What a name for devices of other kinds stands for, if there are any. */
static void add_names(const struct tr_device_kind *kind, struct tr_table *table)
{
    const struct tr_device_kind *found;
    for (int number = 0, there = 0; kind->resolve(&there, &found) == TR_OK; there = ++number) {
        tr_table_cell(table, "%s:%d", kind->name, number);
        tr_table_cell(table, "%s:%d", found->name, there);
        tr_table_cell(table, "%s", kind->help);
    }
}

static tr_status add_rows(const struct machine *machine, const struct look *how, struct tr_table *table)
{
    for (const struct tr_entry *const *entry = tr_device_kinds.entries; *entry; entry++) {
        const struct tr_device_kind *kind = (const struct tr_device_kind *)*entry;
        int threads;
        if (kind->resolve) {
            add_names(kind, table);
            continue;
        }
        if (kind->describe) {
            TR_TRY(add_others(kind, how, table));
            continue;
        }
        TR_TRY(device_threads(*entry, &threads));
        tr_table_cell(table, "%s", (*entry)->name);
        tr_table_cell(table, "%d thread%s", threads, threads == 1 ? "" : "s");
        tr_table_cell(table, "%s", (*entry)->help);
        bool first = true;
        for (size_t i = 0; i < ISAS && has_isas(*entry); i++) {
            if (!machine->has[i]) continue;
            tr_table_cell(table, "  isa");
            tr_table_cell(table, "%s", isas[i].name);
            tr_table_cell(table, "%s%s", isas[i].meaning, first ? " (default)" : "");
            first = false;
        }
        if (has_isas(*entry)) TR_TRY(add_caches(&machine->caches, table));
    }
    return TR_OK;
}

static tr_status list_as_text(const struct look *how, char **out)
{
    struct machine machine;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_table table;
    TR_TRY(look(&machine));
    if (machine.processor[0]) tr_text_addf(&text, "%s\n\n", machine.processor);
    tr_table_begin(&table, "lll");
    tr_status status = add_rows(&machine, how, &table);
    tr_table_finish(&table, &text);
    if (status == TR_OK) status = tr_text_finish(&text, out);
    tr_text_release(&text);
    return status;
}

static tr_status write_others(struct tr_json_writer *json, const struct tr_device_kind *kind,
                              const struct look *how)
{
    struct other other;
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", kind->name);
    tr_json_bool(json, "default", false);
    tr_json_open_array(json, "devices");
    tr_status status;
    int number = 0;
    for (; (status = look_at(kind, number, how, &other)) == TR_OK; number++) {
        tr_json_open_object(json, NULL);
        tr_json_integer(json, "number", number);
        tr_json_text(json, "facts", other.facts);
        tr_json_bool(json, "usable", other.usable);
        tr_json_text(json, "state", other.state);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
    if (number == 0 && status == TR_ENOTFOUND) tr_json_text(json, "reason", tr_error_message());
    tr_json_close_object(json);
    return status == TR_ENOTFOUND ? TR_OK : status;
}

static void write_names(struct tr_json_writer *json, const struct tr_device_kind *kind)
{
    const struct tr_device_kind *found;
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", kind->name);
    tr_json_bool(json, "default", false);
    tr_json_open_array(json, "devices");
    for (int number = 0, there = 0; kind->resolve(&there, &found) == TR_OK; there = ++number) {
        char name[TR_DEVICE_NAME];
        snprintf(name, sizeof name, "%s:%d", found->name, there);
        tr_json_open_object(json, NULL);
        tr_json_integer(json, "number", number);
        tr_json_text(json, "is", name);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
    tr_json_close_object(json);
}

static void write_caches(struct tr_json_writer *json, const struct tr_caches *caches)
{
    tr_json_open_array(json, "caches");
    for (int i = 0; i < TR_CACHE_LEVELS; i++) {
        const struct tr_cache_level *cache = &caches->level[i];
        if (cache->bytes == 0) continue;
        tr_json_open_object(json, NULL);
        tr_json_integer(json, "level", i + 1);
        tr_json_integer(json, "bytes", cache->bytes);
        tr_json_integer(json, "processors", cache->processors);
        tr_json_close_object(json);
    }
    tr_json_close_array(json);
}

static tr_status write_device(struct tr_json_writer *json, const struct machine *machine,
                              const struct tr_entry *entry)
{
    int threads;
    TR_TRY(device_threads(entry, &threads));
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", entry->name);
    tr_json_bool(json, "default", entry == tr_device_kinds.entries[0]);
    tr_json_integer(json, "threads", threads);
    if (has_isas(entry)) {
        tr_json_open_array(json, "isa");
        for (size_t i = 0; i < ISAS; i++)
            if (machine->has[i]) tr_json_text(json, NULL, isas[i].name);
        tr_json_close_array(json);
        write_caches(json, &machine->caches);
    }
    tr_json_close_object(json);
    return TR_OK;
}

static tr_status list_as_json(const struct look *how, char **out)
{
    struct machine machine;
    struct tr_json_writer json;
    TR_TRY(look(&machine));
    tr_json_begin(&json, true);
    tr_json_text(&json, "processor", machine.processor);
    tr_json_open_array(&json, "devices");
    tr_status status = TR_OK;
    for (const struct tr_entry *const *entry = tr_device_kinds.entries; *entry && status == TR_OK; entry++) {
        const struct tr_device_kind *kind = (const struct tr_device_kind *)*entry;
        if (kind->resolve)
            write_names(&json, kind);
        else
            status = kind->describe ? write_others(&json, kind, how) : write_device(&json, &machine, *entry);
    }
    tr_json_close_array(&json);
    if (status == TR_OK) return tr_json_finish(&json, out);
    tr_json_release(&json);
    return status;
}

tr_status tr_devices(char **out)
{
    const struct look how = {.test = false};
    return list_as_text(&how, out);
}

tr_status tr_devices_json(char **out)
{
    const struct look how = {.test = false};
    return list_as_json(&how, out);
}

tr_status tr_devices_tested(const char *program_cache, int json, char **out)
{
    const struct look how = {.test = true, .cache = program_cache};
    return json ? list_as_json(&how, out) : list_as_text(&how, out);
}
