"""Plants faults in a copy of the tree, each behind a number in the environment, so that one build serves them all:
TR_FAULT=N switches on fault N, and TR_FAULT_LOG=FILE has a byte for each fault that a program came by."""

import os

HEADER = """#ifndef TR_FAULT_H
#define TR_FAULT_H
extern int tr_fault_active;
extern unsigned char *tr_fault_met;
#define TR_FAULT(n) (tr_fault_met[n] = 1, __builtin_expect(tr_fault_active == (n), 0))
#endif
"""

# Weak, since programs without the library get it, too, by an archive.
SWITCH = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char tr_fault_nowhere[SIZE];
__attribute__((weak)) int tr_fault_active;
__attribute__((weak)) unsigned char *tr_fault_met = tr_fault_nowhere;
__attribute__((constructor(101))) static void tr_fault_begin(void)
{
    const char *number = getenv("TR_FAULT"), *log = getenv("TR_FAULT_LOG");
    if (number) tr_fault_active = atoi(number);
    int file = log ? open(log, O_RDWR | O_CREAT, 0666) : -1;
    if (file < 0) return;
    void *map = ftruncate(file, SIZE) == 0 ? mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (map != MAP_FAILED) tr_fault_met = map;
    close(file);
}
"""


def write(path, text):
    """Only where it changes something, so that nothing else is built again."""
    if not os.path.exists(path) or open(path, "rb").read() != text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(text)


def planted(fault):
    if fault.text:
        return f"(TR_FAULT({fault.number}) ? ({fault.text}) : ({fault.old}))"
    # The loop takes the semicolon, and an else that follows stays with its if.
    return f"do {{ if (!TR_FAULT({fault.number})) {fault.old}; }} while (0)"


def plant(source, tree, files, faults, support):
    """Writes `files` of `source` with their faults into `tree`; `support` gets the header and the archive's source."""
    size = max((fault.number for fault in faults), default=0) + 1
    write(f"{support}/fault.h", HEADER.encode())
    write(f"{support}/switch.c", SWITCH.replace("SIZE", str(size)).encode())
    for file in files:
        text = open(f"{source}/{file}", "rb").read()
        for fault in sorted((f for f in faults if f.file == file), key=lambda f: -f.begin):
            text = text[: fault.begin] + planted(fault).encode() + text[fault.end :]
        write(f"{tree}/{file}", text)
