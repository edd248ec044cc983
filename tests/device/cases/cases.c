#include "device/cases/cases.h"
#include "device/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

const struct case_list case_lists[CASE_LISTS] = {
#define CASE_LIST(op) {#op, case_##op},
    TR_DEVICE_OPS(CASE_LIST)
#undef CASE_LIST
};

void case_must_exist(const struct case_list *list)
{
    if (!list->run)
        fail_msg("operation \"%s\" has no cases; write case_%s() in the file of its family, "
                 "tests/device/cases",
                 list->operation, list->operation);
}

void case_needs_operation(const struct case_list *list, const tr_device *device)
{
    bool there = false;
#define ASK(op) there = there || (strcmp(list->operation, #op) == 0 && device->class->op);
    TR_DEVICE_OPS(ASK)
#undef ASK
    if (there) return;
    if (tr_operation_of((enum tr_operation_number)(list - case_lists))->class != TR_CORE_OPERATION) skip();
    fail_msg("%s lacks %s: docs/explanation/gpu.md says how to add a kernel", device->name, list->operation);
}
