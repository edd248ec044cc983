/* The proof that a device gives the bytes of ref: every case of an operation, every kind of numbers.
 */
#ifndef TESTS_DEVICE_EQUAL_H
#define TESTS_DEVICE_EQUAL_H

#include "device/cases/cases.h"

/* Runs all cases of an operation on `reference` and on `count` others; fails the running cmocka test, with
   every difference printed, unless all agree in what they write and leave alone. */
void equal_to_reference(const struct case_list *list, tr_device *reference, tr_device *const *devices,
                        int count);

#endif
