/* Whether the tests are built with a sanitizer, which makes the program several times slower: what a test
 * repeats for the sake of variety alone, it may then do less often.
 */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
