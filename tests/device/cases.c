#include "device/cases.h"

const struct case_list case_lists[CASE_LISTS] = {
#define CASE_LIST(op) {#op, case_##op},
    TR_DEVICE_OPS(CASE_LIST)
#undef CASE_LIST
};
