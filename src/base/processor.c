#include "base/processor.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

void tr_processor_read(const unsigned vendor[3], unsigned signature, struct tr_processor *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->vendor, vendor, 12);
    const int base = (int)(signature >> 8 & 15), extended = (int)(signature >> 20 & 255);
    out->family = base == 15 ? base + extended : base;
    out->model = (int)(signature >> 4 & 15);
    if (base == 6 || base == 15) out->model += (int)(signature >> 16 & 15) << 4;
}

void tr_processor_find(struct tr_processor *out)
{
    memset(out, 0, sizeof *out);
#if defined(__x86_64__) || defined(__i386__)
    unsigned most, vendor[3], signature, other[3];
    if (!__get_cpuid(0, &most, &vendor[0], &vendor[2], &vendor[1])) return;
    if (!__get_cpuid(1, &signature, &other[0], &other[1], &other[2])) return;
    tr_processor_read(vendor, signature, out);
#endif
}
