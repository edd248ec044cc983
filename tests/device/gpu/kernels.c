#include "device/gpu/kernels.h"

#include "base/alloc.h"
#include "device/gpu/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* `void name(` behind each D_KERNEL. */
void every_kernel_must(bool (*ran)(const char *kernel))
{
    char *sources;
    int kernels = 0, missing = 0;
    assert_int_equal(gpu_sources_unpack(&sources), TR_OK);
    for (int i = 0; gpu_source_names[i]; i++) {
        const char *text = gpu_source(sources, gpu_source_names[i]);
        assert_non_null(text);
        while ((text = strstr(text, "\nD_KERNEL"))) {
            char name[64];
            text = strstr(text, "\nvoid ") + strlen("\nvoid ");
            snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "("), text);
            kernels++;
            if (ran(name)) continue;
            print_error("%s did not run\n", name);
            missing++;
        }
    }
    tr_free(sources);
    assert_true(kernels > 40);
    assert_int_equal(missing, 0);
}
