/* Functions that are compiled for several instruction sets of one processor family; each call takes the best
 * one that the machine has.
 *
 * Only for functions whose bits are the same in all of them: integers, divisions, fma(), and products and
 * sums, which no compiler flag of this build lets contract. Make them static, since GCC makes a function of
 * several versions visible to other programs whatever its visibility.
 *
 * Not under ThreadSanitizer: GCC instruments the function that chooses, which runs before the sanitizer is
 * initialized.
 */
#ifndef TR_BASE_VERSIONS_H
#define TR_BASE_VERSIONS_H

#include <stdint.h> /* which says __GLIBC__ */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                 \
    !defined(__SANITIZE_THREAD__)
#define TR_HAVE_VERSIONS 1
#define TR_VERSIONS(set) __attribute__((target_clones(set, "default")))
#else
#define TR_HAVE_VERSIONS 0
#define TR_VERSIONS(set)
#endif

#endif
