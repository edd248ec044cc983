/* The vendor, family and model of the processor.
 *
 * They select sizes of blocks that were measured on one family and not on another. No result of a run may
 * depend on them.
 */
#ifndef TR_BASE_PROCESSOR_H
#define TR_BASE_PROCESSOR_H

/* For data. */
struct tr_processor {
    char vendor[13]; /* "AuthenticAMD", "GenuineIntel"; "" where it is not known */
    int family;      /* with the extended family added; 0 where it is not known */
    int model;       /* with the extended model before it */
};

/* The processor that the calling thread runs on. */
void tr_processor_find(struct tr_processor *out);
/* Takes the registers of CPUID: ebx, edx, ecx of leaf 0 as `vendor`, eax of leaf 1 as `signature` (AMD64
   Architecture Programmer's Manual, volume 3, appendix E). */
void tr_processor_read(const unsigned vendor[3], unsigned signature, struct tr_processor *out);

#endif
