/* Loads the module of the tests and says how that went: 0 and where its code lies, or 1 and the message. The
 * tests copy this program to places. */
#include "base/fail.h"
#include "base/files/module.h"

#include <stdio.h>

int main(void)
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
