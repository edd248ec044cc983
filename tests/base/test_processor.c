/* What CPUID says of a processor, read from registers as they were published. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/processor.h"

static const unsigned amd[3] = {0x68747541, 0x69746e65, 0x444d4163},
                      intel[3] = {0x756e6547, 0x49656e69, 0x6c65746e};

static void signatures_are_read(void **state)
{
    (void)state;
    static const struct {
        const unsigned *vendor;
        unsigned signature;
        const char *name;
        int family, model;
    } known[] = {
        {amd, 0x00a10f11, "AuthenticAMD", 25, 17},   /* Zen 4 server */
        {amd, 0x00a00f11, "AuthenticAMD", 25, 1},    /* Zen 3 server */
        {amd, 0x00830f10, "AuthenticAMD", 23, 49},   /* Zen 2 server */
        {intel, 0x000906ea, "GenuineIntel", 6, 158}, /* Coffee Lake */
        {intel, 0x000806f8, "GenuineIntel", 6, 143}, /* Sapphire Rapids */
        {intel, 0x00000543, "GenuineIntel", 5, 4},   /* Pentium MMX: extended fields do not count */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct tr_processor processor;
        memset(&processor, 0xff, sizeof processor);
        tr_processor_read(known[i].vendor, known[i].signature, &processor);
        assert_string_equal(processor.vendor, known[i].name);
        assert_int_equal(processor.family, known[i].family);
        assert_int_equal(processor.model, known[i].model);
    }
}

/* The system's own words, where it has them. */
static void this_processor_is_known(void **state)
{
    (void)state;
    struct tr_processor processor;
    tr_processor_find(&processor);
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[8192], vendor[64] = "";
    int family = -1, model = -1;
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "vendor_id : %63s", vendor);
        sscanf(line, "cpu family : %d", &family);
        if (sscanf(line, "model : %d", &model) == 1) break;
    }
    if (file) fclose(file);
    if (!*vendor) {
        printf("[  NOTE    ] skipped: the system names no vendor\n");
        return;
    }
    assert_string_equal(processor.vendor, vendor);
    assert_int_equal(processor.family, family);
    assert_int_equal(processor.model, model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_read),
        cmocka_unit_test(this_processor_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
