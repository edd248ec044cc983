#include "export/hub/gguf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const char *take(struct gguf_file *file, size_t size)
{
    const char *bytes = file->content.data + file->at;
    assert_true(size <= file->content.size && file->at <= file->content.size - size);
    file->at += size;
    return bytes;
}

uint64_t gguf_take_number(struct gguf_file *file, size_t size)
{
    uint64_t value = 0;
    const unsigned char *bytes = (const unsigned char *)take(file, size);
    for (size_t i = 0; i < size; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void gguf_take_text(struct gguf_file *file, char out[96])
{
    const uint64_t length = gguf_take_number(file, 8);
    assert_true(length < 96);
    memcpy(out, take(file, (size_t)length), (size_t)length);
    out[length] = '\0';
}

static float take_float(struct gguf_file *file)
{
    const uint32_t bits = (uint32_t)gguf_take_number(file, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void read_array(struct gguf_file *file, const char *key)
{
    char text[96];
    const uint64_t type = gguf_take_number(file, 4), count = gguf_take_number(file, 8);
    const size_t first = file->at;
    assert_true(type == 8 || type == 5);
    for (uint64_t i = 0; i < count; i++) {
        if (type == 8)
            gguf_take_text(file, text);
        else
            take(file, 4);
    }
    tr_text_addf(&file->told, "%s %d %s\n", key, (int)count, type == 8 ? "texts" : "numbers");
    if (strcmp(key, "tokenizer.ggml.tokens") == 0) file->tokens = first, file->token_count = count;
    if (strcmp(key, "tokenizer.ggml.token_type") == 0) file->types = first, file->type_count = count;
    if (strcmp(key, "tokenizer.ggml.merges") == 0) file->merges = first, file->merge_count = count;
}

static void read_entry(struct gguf_file *file)
{
    char key[96], text[96];
    gguf_take_text(file, key);
    switch (gguf_take_number(file, 4)) {
    case 4:
        tr_text_addf(&file->told, "%s %d\n", key, (int)gguf_take_number(file, 4));
        break;
    case 6:
        tr_text_addf(&file->told, "%s %gf\n", key, (double)take_float(file));
        break;
    case 7:
        tr_text_addf(&file->told, "%s %s\n", key, gguf_take_number(file, 1) ? "true" : "false");
        break;
    case 8:
        gguf_take_text(file, text);
        tr_text_addf(&file->told, "%s \"%s\"\n", key, text);
        break;
    case 9:
        read_array(file, key);
        break;
    default:
        fail_msg("%s has an unknown type", key);
    }
}

void gguf_read(const char *path, struct gguf_file *out)
{
    *out = (struct gguf_file){0};
    assert_int_equal(tr_file_read(path, 1 << 24, &out->content), TR_OK);
    assert_memory_equal(take(out, 4), "GGUF", 4);
    assert_int_equal(gguf_take_number(out, 4), 3);
    out->tensors = gguf_take_number(out, 8);
    assert_true(out->tensors <= 64);
    uint64_t end = 0;
    for (uint64_t i = 0, entries = gguf_take_number(out, 8); i < entries; i++) read_entry(out);
    for (uint64_t i = 0; i < out->tensors; i++) {
        uint64_t size[2] = {1, 1};
        gguf_take_text(out, out->name[i]);
        const uint64_t axes = gguf_take_number(out, 4);
        assert_in_range(axes, 1, 2);
        for (uint64_t a = 0; a < axes; a++) size[a] = gguf_take_number(out, 8);
        const uint64_t type = gguf_take_number(out, 4);
        assert_in_range(type, 0, 1);
        out->offset[i] = gguf_take_number(out, 8);
        /* One behind the other, each on a multiple of the alignment. */
        assert_int_equal(out->offset[i], (end + 31) / 32 * 32);
        end = out->offset[i] + size[0] * size[1] * (type ? 2 : 4);
        tr_text_addf(&out->told, "%s [%d", out->name[i], (int)size[0]);
        if (axes == 2) tr_text_addf(&out->told, ",%d", (int)size[1]);
        tr_text_addf(&out->told, "] %s\n", type ? "f16" : "f32");
    }
    out->data = (out->at + 31) / 32 * 32;
    while (out->at < out->data) assert_int_equal(gguf_take_number(out, 1), 0);
    assert_int_equal(out->content.size, out->data + (end + 31) / 32 * 32);
    for (size_t i = out->data + end; i < out->content.size; i++) assert_int_equal(out->content.data[i], 0);
}

void gguf_release(struct gguf_file *file)
{
    tr_text_release(&file->told);
    tr_file_content_free(&file->content);
}
