/* How structures begin that a function of the library fills: all zero, but for their size.
 *
 * C names the member. C++ has that since C++20 only, so that a function makes the value there; both stay
 * right when a structure grows.
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
