/* The cases of every operation in TR_DEVICE_OPS: odd shapes, options, cuts. An operation without cases fails
 * the tests, which say what to write.
 *
 * To add an operation: write case_<operation>() in the file of its family.
 */
#ifndef TESTS_DEVICE_CASES_H
#define TESTS_DEVICE_CASES_H

#include "device/scene.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Sets the scene of case `index`, counted from 0, runs the operation and ends the scene. Returns false, and
   does nothing, when there is no such case. */
typedef bool (*case_function)(struct scene *scene, int index);

#define CASE_FUNCTION(op) __attribute__((weak)) bool case_##op(struct scene *scene, int index);
TR_DEVICE_OPS(CASE_FUNCTION)
#undef CASE_FUNCTION

struct case_list {
    const char *operation;
    case_function run; /* NULL: not written yet, see case_must_exist() */
};

/* Fails the test with what is missing unless the operation has cases. */
void case_must_exist(const struct case_list *list);

/* Fails the test if the device lacks the operation, with what to do; skips it if it is one that devices
   may lack. */
void case_needs_operation(const struct case_list *list, const tr_device *device);

#define CASE_ONE(op) +1
enum { CASE_LISTS = 0 TR_DEVICE_OPS(CASE_ONE) };
#undef CASE_ONE

/* In the order of TR_DEVICE_OPS. */
extern const struct case_list case_lists[CASE_LISTS];

/* Updates with options, whose bits choose among them: 0 to 31, and CASE_HELD. What they read and write but
   for the gradient becomes part of the scene. */
enum { CASE_RULES = TR_RULE_STATISTIC + 1, CASE_HELD = 32 };
struct tr_op_update case_update_options(enum tr_rule rule, int options, int64_t count);
void case_update_name(struct scene *s, const struct tr_op_update *a, int options, const char *before);
void case_update_state(struct scene *s, int options, struct tr_op_update *a);

/* Windows for convolutions and pools, with names. A pool needs a tap inside the image in every window; the
   convolutions need not. */
struct named_window {
    const char *name;
    struct tr_sliding_window window;
};
extern const struct named_window case_windows[];
extern const int case_window_count;
/* The first of them that suit pools. */
extern const int case_pool_window_count;
/* Those of convolutions by Winograd's algorithm. */
extern const struct named_window case_winograd_windows[];
extern const int case_winograd_window_count;

#endif
