/* Loads the module of the tests and says how that went: 0 and where its code lies, or 1 and the message. As a
 * program, which the tests copy to places, and as a library, which lies elsewhere than the programs that load
 * it. */
#include "base/fail.h"
#include "base/files/module.h"

#include <stdio.h>

__attribute__((visibility("default"))) int module_use(void);

int module_use(void)
{
    static const struct tr_module module = {.file = "trireme-sample.so",
                                            .symbol = "tr_sample_module",
                                            .version = 7,
                                            .purpose = "the test needs",
                                            .advice = "build it"};
    const void *loaded;
    tr_status status = tr_module_load(&module, &loaded);
    puts(status == TR_OK ? "loaded" : tr_error_message());
    return status == TR_OK ? 0 : 1;
}

#ifndef TEST_MODULE_IN_LIBRARY
int main(void)
{
    return module_use();
}
#endif
