/* Targets that read what runs leave behind: tensors, checkpoints, journals, digests, traces. */
#include "fuzz/fuzz.h"

#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "checkpoint/manifest.h"
#include "device/device.h"
#include "dispute/step.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "receipt/receipt.h"
#include "report/sections/timeline.h"
#include "strategy/updates/file.h"
#include "strategy/updates/text.h"
#include "trireme/report.h"

#include "cli/sweep/sweep.h"

#include <string.h>

/* ---- tensors ---- */

void fuzz_npy(const uint8_t *data, size_t size)
{
    struct tr_npy array;
    if (tr_npy_parse("fuzz", data, size, &array) != TR_OK) return;
    FUZZ_DEMAND(array.rank >= 0 && array.rank <= TR_STORED_RANK);
    FUZZ_DEMAND(array.offset <= size && array.bytes == size - array.offset);
    size_t bytes = tr_dtype_size(array.dtype);
    for (int i = 0; i < array.rank; i++) bytes *= (size_t)array.shape[i];
    FUZZ_DEMAND(bytes == array.bytes);
}

static tr_status count_piece(void *user, const void *piece, size_t bytes)
{
    (void)piece;
    *(uint64_t *)user += bytes;
    return TR_OK;
}

/* Data tile the rest of the file, names are unique, and each tensor can be read. */
void fuzz_safetensors(const uint8_t *data, size_t size)
{
    tr_safetensors *file = NULL;
    int64_t live = tr_alloc_live();
    if (tr_safetensors_open(fuzz_file(0, data, size), &file) == TR_OK) {
        uint64_t end = 0, begin = UINT64_MAX;
        for (int64_t i = 0; i < tr_safetensors_count(file); i++) {
            const struct tr_safetensors_entry *entry = tr_safetensors_at(file, i);
            uint64_t bytes, streamed = 0;
            uint32_t crc;
            char text[TR_STORED_TEXT];
            FUZZ_DEMAND(tr_safetensors_find(file, entry->tensor.name) == entry);
            FUZZ_DEMAND(tr_stored_bytes(&entry->tensor, &bytes) == TR_OK && bytes == entry->bytes);
            FUZZ_DEMAND(i == 0 || entry->offset == end);
            if (begin > entry->offset) begin = entry->offset;
            end = entry->offset + entry->bytes;
            tr_stored_describe(&entry->tensor, text);
            FUZZ_DEMAND(tr_safetensors_read(file, entry, NULL, &crc) == TR_OK);
            FUZZ_DEMAND(tr_safetensors_stream(file, entry, count_piece, &streamed) == TR_OK);
            FUZZ_DEMAND(streamed == entry->bytes);
        }
        if (tr_safetensors_count(file) > 0) FUZZ_DEMAND(end == size && begin >= 8);
        tr_safetensors_metadata(file, "format");
    }
    tr_safetensors_close(&file);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- receipts ---- */

/* What is read ascends, keeps within its limits, and is written and read as the same. */
void fuzz_receipt(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct tr_receipt receipt;
    int64_t live = tr_alloc_live();
    char *text = fuzz_string(input), *written, *again;
    if (tr_receipt_read("fuzz", text, input.size, &receipt) == TR_OK) {
        FUZZ_DEMAND(receipt.count >= 1 && receipt.steps >= 1 && receipt.numerics >= 1);
        for (int64_t i = 0; i < receipt.count; i++) {
            FUZZ_DEMAND(receipt.boundary[i].step >= 0 && receipt.boundary[i].step <= receipt.steps);
            FUZZ_DEMAND(i == 0 || receipt.boundary[i].step > receipt.boundary[i - 1].step);
            FUZZ_DEMAND(tr_receipt_find(&receipt, receipt.boundary[i].step) == &receipt.boundary[i]);
        }
        FUZZ_DEMAND(tr_receipt_write(&receipt, &written) == TR_OK);
        tr_receipt_release(&receipt);
        FUZZ_DEMAND(tr_receipt_read("fuzz", written, strlen(written), &receipt) == TR_OK);
        FUZZ_DEMAND(tr_receipt_write(&receipt, &again) == TR_OK);
        FUZZ_DEMAND(strcmp(written, again) == 0);
        tr_free(again);
        tr_free(written);
    }
    tr_receipt_release(&receipt);
    free(text);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- checkpoints ---- */

/* Puts the checksum of a manifest right, which a fuzzer could not guess. */
static void mend_checksum(char *text, size_t size)
{
    static const char key[] = "\"manifest_crc32c\": \"";
    char digits[9];
    for (size_t at = size; at-- > 0;) {
        if (size - at < sizeof key - 1 + 8 || memcmp(text + at, key, sizeof key - 1) != 0) continue;
        snprintf(digits, sizeof digits, "%08x", (unsigned)tr_crc32c(0, text, at));
        memcpy(text + at + sizeof key - 1, digits, 8);
        return;
    }
}

void fuzz_manifest(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    bool mended = fuzz_choice(&input, 2);
    char *text = fuzz_string(input);
    struct tr_manifest manifest = {0};
    int64_t live = tr_alloc_live();
    if (mended) mend_checksum(text, input.size);
    if (tr_manifest_read("fuzz", text, input.size, &manifest) == TR_OK) {
        uint32_t crc;
        for (int64_t i = 0; i < manifest.file_count; i++)
            FUZZ_DEMAND(tr_manifest_may_name(manifest.files[i].name));
        for (int g = 0; g < TR_CHECKPOINT_GROUPS; g++)
            tr_manifest_tensor_crc(&manifest, "fuzz", (enum tr_checkpoint_group)g, "conv1.weight", &crc);
        FUZZ_DEMAND(manifest.facts.step >= 0);
    }
    tr_manifest_free(&manifest);
    free(text);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- what is reported ---- */

static const char small_journal[] =
    "{\"event\":\"start\",\"name\":\"n\",\"model\":\"m.yaml\",\"seed\":1,\"ranks\":1,\"steps\":2,\"step\":0,"
    "\"steps_per_epoch\":10,\"settings\":\"s\"}\n"
    "{\"event\":\"step\",\"step\":1,\"loss\":2.5,\"accuracy\":0.1,\"rate\":0.1,\"seconds\":0.5}\n"
    "{\"event\":\"end\",\"status\":\"ok\",\"hash\":\"h\",\"seconds\":2}\n";

/* What is not text of the page must not come into it. */
void fuzz_journal(const uint8_t *data, size_t size)
{
    const char *run = fuzz_path("run");
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    char *html = NULL;
    int64_t live = tr_alloc_live();
    settings.examples = false;
    fuzz_write("run/journal.jsonl", data, size);
    if (tr_report(&run, 1, &settings, &html) == TR_OK) FUZZ_DEMAND(strstr(html, "</html>"));
    tr_text_free(html);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* Two runs with the same journal: one part is the digests of the first, the rest those of the second. */
void fuzz_digests(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size}, first = fuzz_part(&input);
    bool equal;
    char *text = NULL;
    int64_t live = tr_alloc_live();
    fuzz_write("a/journal.jsonl", small_journal, sizeof small_journal - 1);
    fuzz_write("b/journal.jsonl", small_journal, sizeof small_journal - 1);
    fuzz_write("a/digests.jsonl", first.data, first.size);
    fuzz_write("b/digests.jsonl", input.data, input.size);
    if (tr_diff(fuzz_path("a"), fuzz_path("b"), &equal, &text) == TR_OK) FUZZ_DEMAND(text && text[0]);
    tr_text_free(text);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

void fuzz_trace(const uint8_t *data, size_t size)
{
    struct tr_text html = TR_TEXT_INIT;
    int64_t live = tr_alloc_live();
    if (tr_report_timeline(&html, fuzz_file(0, data, size)) == TR_OK) FUZZ_DEMAND(!html.failed);
    tr_text_release(&html);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- sweeps ---- */

/* What a sweep left, taken up by one of the same settings: every point has a directory of its own kind below
   the sweep's, since it is used in commands, and what is done says so. */
void fuzz_sweep(const uint8_t *data, size_t size)
{
    static char *settings[] = {"optimizer.rate=1e-3,1e-2", "train.batch=50"};
    const struct tr_string_list set = {2, settings};
    struct cli_sweep_orders orders = {
        .model = "a.yaml", .set = &set, .seeds = 2, .seed = 1, .out = fuzz_directory(), .digest = "d1"};
    struct cli_sweep_plan plan;
    int64_t live = tr_alloc_live();
    fuzz_write("sweep.json", data, size);
    if (cli_sweep_plan(&orders, &plan) == TR_OK) {
        FUZZ_DEMAND(plan.count == 4);
        if (cli_sweep_recall(&orders, &plan) == TR_OK) {
            FUZZ_DEMAND(plan.count >= 4);
            for (int i = 0; i < plan.count; i++) {
                const char *digits = plan.points[i].directory + 6;
                FUZZ_DEMAND(strncmp(plan.points[i].directory, "point-", 6) == 0);
                FUZZ_DEMAND(strlen(digits) >= 4 && strspn(digits, "0123456789") == strlen(digits));
                FUZZ_DEMAND(plan.points[i].wanted == (i < 4));
            }
            FUZZ_DEMAND(cli_sweep_write_record(&orders, &plan) == TR_OK);
        } else {
            FUZZ_DEMAND(tr_error_message()[0] != '\0');
        }
    }
    cli_sweep_plan_release(&plan);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- logs of updates ---- */

/* Puts the checksums of a log's blocks right, which a fuzzer could not guess. */
static void mend_blocks(uint8_t *bytes, size_t size)
{
    uint32_t crc = 0, length;
    for (size_t at = 0; size - at >= TR_UPDATE_HEAD_BYTES; at += TR_UPDATE_HEAD_BYTES + length) {
        memcpy(&length, bytes + at + 8, sizeof length);
        if (length > size - at - TR_UPDATE_HEAD_BYTES) return;
        crc = tr_crc32c(tr_crc32c(crc, bytes + at, 24), bytes + at + TR_UPDATE_HEAD_BYTES, length);
        memcpy(bytes + at + 24, &crc, sizeof crc);
    }
}

/* Whoever walks through a log indexes by its workers and versions. */
static void walk_updates(const struct tr_update_log *log)
{
    struct tr_update_walk walk = {.log = log};
    struct tr_update_entry entry;
    struct tr_update_figures figures;
    while (tr_update_walk_next(&walk, &entry)) {
        FUZZ_DEMAND(entry.record->kind < TR_UPDATE_KINDS && entry.record->worker < entry.session->workers);
        FUZZ_DEMAND(entry.count <= entry.session->steps);
        if (!tr_update_is_work(entry.record)) continue;
        FUZZ_DEMAND(entry.version >= entry.session->first && entry.version <= entry.count);
    }
    tr_update_log_count(log, &figures);
    FUZZ_DEMAND(figures.updates == walk.count && figures.applied + figures.dropped <= log->records);
}

/* The first byte: a file as it is, one whose checksums are right, or a text. What is read as one is written
   as text, and that is read as the same. */
void fuzz_updates(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned form = fuzz_choice(&input, 3);
    struct tr_update_log log = {0}, again = {0};
    struct tr_text text = TR_TEXT_INIT;
    int64_t live = tr_alloc_live(), torn;
    uint8_t *bytes = (uint8_t *)fuzz_string(input);
    char *written = NULL;
    if (form == 1) mend_blocks(bytes, input.size);
    tr_status status = form < 2 ? tr_update_bytes_read("fuzz", bytes, input.size, &log, &torn)
                                : tr_update_text_read("fuzz", (const char *)bytes, input.size, &log);
    if (status == TR_OK) {
        walk_updates(&log);
        tr_update_text_write(&log, &text);
        FUZZ_DEMAND(tr_text_finish(&text, &written) == TR_OK);
        FUZZ_DEMAND(tr_update_text_read("again", written, strlen(written), &again) == TR_OK);
        FUZZ_DEMAND(again.records == log.records && again.sessions == log.sessions);
        FUZZ_DEMAND(memcmp(again.record, log.record, (size_t)log.records * sizeof *log.record) == 0 ||
                    !log.records);
    }
    tr_free(written);
    tr_update_log_release(&log);
    tr_update_log_release(&again);
    free(bytes);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- disputes ---- */

struct small_step {
    struct dispute_step step;
    tr_device *device;
    float numbers[300];
    struct dispute_leaf leaf;
    struct tr_sha256_sum sum;
};

/* A step of two entries, as a party answers for. */
static void small_step_begin(struct small_step *small)
{
    struct dispute_step *step = &small->step;
    memset(small, 0, sizeof *small);
    dispute_step_begin(step);
    FUZZ_DEMAND(tr_device_create("ref", 1, NULL, &small->device) == TR_OK);
    FUZZ_DEMAND(tr_evidence_open(small->device, &step->evidence) == TR_OK);
    FUZZ_DEMAND(tr_evidence_memory(&step->evidence, TR_EVIDENCE_UPLOAD, "upload", small->numbers,
                                   sizeof small->numbers) == TR_OK);
    const struct tr_op_fill fill = {300, 1, small->numbers};
    FUZZ_DEMAND(tr_evidence_operation(&step->evidence, TR_OPERATION_fill, &fill, sizeof fill) == TR_OK);
    FUZZ_DEMAND(tr_evidence_close(&step->evidence) == TR_OK);
    FUZZ_DEMAND(tr_merkle_leaf(step->evidence.hash, small->numbers, 4, &small->sum) == TR_OK);
    small->leaf.size = 4;
    step->before.leaf = step->after.leaf = &small->leaf;
    step->before.sum = step->after.sum = &small->sum;
    step->before.count = step->after.count = 1;
    step->made = true;
}

static void small_step_end(struct small_step *small)
{
    tr_evidence_release(&small->step.evidence);
    tr_device_destroy(&small->device);
}

/* A question to a party, and an answer as a judge takes it apart. A way that is taken leads to the root. */
void fuzz_dispute(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const unsigned kind = fuzz_choice(&input, 4);
    char *line = fuzz_string(input);
    struct tr_wire wire = {.at = line};
    if (kind == 0) {
        struct tr_text text = TR_TEXT_INIT;
        struct small_step small;
        small_step_begin(&small);
        if (dispute_step_answer(&small.step, &wire, &text) == TR_OK) {
            FUZZ_DEMAND(text.length > 0 && text.length < TR_WIRE_MOST);
            FUZZ_DEMAND(!strchr(text.bytes, '\n'));
        }
        tr_text_release(&text);
        small_step_end(&small);
    } else if (kind == 1) { /* step */
        struct tr_sha256_sum sum;
        tr_wire_digest(&wire, &sum);
        const int64_t steps = tr_wire_number(&wire, 1000);
        tr_wire_bits(&wire);
        tr_wire_seed(&wire);
        FUZZ_DEMAND(steps >= 0 && steps <= 1000);
        tr_wire_ends(&wire);
    } else if (kind == 2) { /* leaf */
        unsigned char bytes[TR_EVIDENCE_LEAF];
        struct tr_sha256_sum sum = {{0}};
        struct tr_merkle_proof proof;
        FUZZ_DEMAND(tr_wire_bytes(&wire, bytes, sizeof bytes) <= sizeof bytes);
        tr_wire_way(&wire, 5, 11, &sum, &proof);
        FUZZ_DEMAND(wire.bad || proof.length == 4);
        tr_wire_ends(&wire);
    } else { /* entry */
        char name[64];
        tr_wire_word(&wire, name, sizeof name);
        FUZZ_DEMAND(strlen(name) < sizeof name && !strchr(name, ' '));
        tr_wire_number(&wire, TR_UNIT_REGIONS);
        tr_wire_ends(&wire);
    }
    free(line);
}
