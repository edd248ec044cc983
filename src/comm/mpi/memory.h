/* Memory that processes of one machine share: files without a name, which vanish with their last user in
 * any case.
 */
#ifndef TR_COMM_MPI_MEMORY_H
#define TR_COMM_MPI_MEMORY_H

#include "comm/class.h"

/* The slots `share_memory`, `map`, `mapped`, `unmap`. */
tr_status tr_memory_share(tr_comm *comm, size_t bytes, size_t begin, size_t end, void **memory,
                          char key[TR_SHARE_KEY]);
tr_status tr_memory_map(tr_comm *comm, size_t bytes, const char key[TR_SHARE_KEY], void **memory);
void tr_memory_mapped(tr_comm *comm, char key[TR_SHARE_KEY]);
void tr_memory_unmap(tr_comm *comm, size_t bytes, void *memory);

#endif
