/* What this machine can compute with. */
#include "trireme/inspect.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/table.h"
#include "device/device.h"

#include <stdio.h>
#include <string.h>

/* Best first: the first that a machine has is its default. */
static const struct {
    const char *name, *meaning;
} isas[] = {
    {"avx512", "16 floats at a time"},
    {"avx2", "8 floats at a time"},
    {"neon", "4 floats at a time"},
    {"plain", "C without vectors"},
};
#define ISAS (sizeof isas / sizeof isas[0])

#define PROCESSOR_SIZE 128

struct machine {
    char processor[PROCESSOR_SIZE]; /* "" if unknown */
    int threads;                    /* that the cpu device takes by itself */
    bool has[ISAS];
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

static const char *const cpu_meaning = "vector kernels on all cores";
static const char *const ref_meaning = "plain loops on one core: the definition of every bit";

tr_status tr_devices(char **out)
{
    struct machine machine;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_table table;
    TR_TRY(look(&machine));
    if (machine.processor[0]) tr_text_addf(&text, "%s\n\n", machine.processor);
    tr_table_begin(&table, "lll");
    tr_table_cell(&table, "cpu");
    tr_table_cell(&table, "%d thread%s", machine.threads, machine.threads == 1 ? "" : "s");
    tr_table_cell(&table, "%s", cpu_meaning);
    bool first = true;
    for (size_t i = 0; i < ISAS; i++) {
        if (!machine.has[i]) continue;
        tr_table_cell(&table, "  --isa");
        tr_table_cell(&table, "%s", isas[i].name);
        tr_table_cell(&table, "%s%s", isas[i].meaning, first ? " (default)" : "");
        first = false;
    }
    tr_table_cell(&table, "ref");
    tr_table_cell(&table, "1 thread");
    tr_table_cell(&table, "%s", ref_meaning);
    tr_table_finish(&table, &text);
    return tr_text_finish(&text, out);
}

static void write_device(struct tr_json_writer *json, const char *name, bool is_default, int threads)
{
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", name);
    tr_json_bool(json, "default", is_default);
    tr_json_integer(json, "threads", threads);
}

tr_status tr_devices_json(char **out)
{
    struct machine machine;
    struct tr_json_writer json;
    TR_TRY(look(&machine));
    tr_json_begin(&json, true);
    tr_json_text(&json, "processor", machine.processor);
    tr_json_open_array(&json, "devices");
    write_device(&json, "cpu", true, machine.threads);
    tr_json_open_array(&json, "isa");
    for (size_t i = 0; i < ISAS; i++)
        if (machine.has[i]) tr_json_text(&json, NULL, isas[i].name);
    tr_json_close_array(&json);
    tr_json_close_object(&json);
    write_device(&json, "ref", false, 1);
    tr_json_close_object(&json);
    tr_json_close_array(&json);
    return tr_json_finish(&json, out);
}
