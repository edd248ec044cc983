/* The targets under libFuzzer:
 *
 *     fuzz TARGET [directory with inputs, options of libFuzzer ...]
 *
 * libFuzzer keeps what it finds to be new in the first directory.
 */
#include "fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *chosen;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    chosen = *argc > 1 ? fuzz_target_called((*argv)[1]) : NULL;
    if (!chosen) {
        fprintf(stderr, "the first argument is one of these targets:");
        for (const struct fuzz_target *target = fuzz_targets; target->name; target++)
            fprintf(stderr, " %s", target->name);
        fprintf(stderr, "\n");
        exit(2);
    }
    for (int i = 1; i < *argc; i++) (*argv)[i] = (*argv)[i + 1];
    (*argc)--;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chosen->run(data, size);
    return 0;
}
