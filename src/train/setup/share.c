#include "train/setup/share.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Message of the first rank of a host to the others: files of its process, by their numbers there. */
struct notice {
    int64_t process;
    int32_t descriptor[TR_STORE_SLOTS]; /* -1: none */
    uint64_t device[TR_STORE_SLOTS], inode[TR_STORE_SLOTS];
};

static void make_slots(struct notice *notice, int slot[TR_STORE_SLOTS])
{
    struct stat facts;
    notice->process = getpid();
    for (int i = 0; i < TR_STORE_SLOTS; i++) {
        notice->descriptor[i] = slot[i] = memfd_create("trireme-data", MFD_CLOEXEC);
        if (slot[i] < 0 || fstat(slot[i], &facts) != 0) continue;
        notice->device[i] = (uint64_t)facts.st_dev;
        notice->inode[i] = (uint64_t)facts.st_ino;
    }
}

/* Opens a file of another process; -1 unless it is the announced one: process ids may differ here, where
   each process has its own container. */
static int open_slot(const struct notice *notice, int i)
{
    char path[64];
    struct stat facts;
    if (notice->descriptor[i] < 0) return -1;
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)notice->process, notice->descriptor[i]);
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return -1;
    if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) &&
        (uint64_t)facts.st_dev == notice->device[i] && (uint64_t)facts.st_ino == notice->inode[i])
        return descriptor;
    close(descriptor);
    return -1;
}

tr_status tr_train_share_store(tr_comm *comm, double patience, tr_store *store)
{
    if (!comm || tr_comm_size(comm) == 1) return TR_OK;
    int rank = tr_comm_rank(comm), first = tr_comm_local(comm, 0), slot[TR_STORE_SLOTS];
    for (int i = 0; i < TR_STORE_SLOTS; i++) slot[i] = -1;
    bool alone = tr_comm_local_size(comm) == 1;
    struct notice *notices = tr_alloc_zero((size_t)tr_comm_size(comm), sizeof *notices);
    if (!notices) return TR_ENOMEM;
    if (!alone && rank == first) make_slots(&notices[rank], slot);
    tr_status status = tr_comm_exchange(comm, notices, sizeof *notices, "slots for data");
    for (int i = 0; status == TR_OK && !alone && rank != first && i < TR_STORE_SLOTS; i++)
        slot[i] = open_slot(&notices[first], i);
    tr_free(notices);
    /* The store closes them. */
    tr_store_share(store, slot, patience, rank == first);
    return status;
}
