/* Function multiversioning: TR_MULTIVERSION("avx2") before a function compiles it for these instruction sets
 * as well; each call takes the best version that the processor can run.
 *
 * Every version has the same bits: the build forbids contraction, and other IEEE operations do not depend on
 * the instruction set. Make such functions static: GCC makes them visible to other programs whatever their
 * visibility.
 *
 * Not under ThreadSanitizer: GCC instruments the function that chooses, which runs before the sanitizer is
 * initialized.
 */
#ifndef TR_BASE_MULTIVERSION_H
#define TR_BASE_MULTIVERSION_H

#include <stdint.h> /* which says __GLIBC__ */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                 \
    !defined(__SANITIZE_THREAD__)
#define TR_HAVE_MULTIVERSION 1
#define TR_MULTIVERSION(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define TR_HAVE_MULTIVERSION 0
#define TR_MULTIVERSION(...)
#endif

#endif
