/* The initial value of structures that a function of the library fills: all zero, except for their size. C
 * sets the member by name. C++ can do that only since C++20, so there a function makes the value. Both
 * stay right when a structure grows.
 */
#ifndef TRIREME_SIZED_H
#define TRIREME_SIZED_H

#include <stddef.h>

#ifdef __cplusplus
template <typename structure> inline structure tr_sized()
{
    structure value = structure();
    value.size = sizeof value;
    return value;
}
#define TR_SIZED_INIT(structure) tr_sized<structure>()
#else
#define TR_SIZED_INIT(structure)                                                                             \
    {                                                                                                        \
        .size = sizeof(structure)                                                                            \
    }
#endif

#endif
