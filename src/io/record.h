/* The frame around a record, in TFRecord files and in TensorBoard's event files:
 *
 *     u64 length | u32 masked CRC-32C of these 8 bytes | data | u32 masked CRC-32C of the data
 *
 * little-endian. Files are records one after another.
 */
#ifndef TR_IO_RECORD_H
#define TR_IO_RECORD_H

#include <stddef.h>
#include <stdint.h>

#define TR_RECORD_HEAD     12 /* bytes before the data */
#define TR_RECORD_TAIL     4  /* bytes after them */
#define TR_RECORD_OVERHEAD (TR_RECORD_HEAD + TR_RECORD_TAIL)

/* The checksum of `size` bytes in the form stored in a record. Any thread. */
uint32_t tr_record_checksum(const void *data, size_t size);
/* Writes the parts before and after `size` bytes of data, which are borrowed for the call. Any thread. */
void tr_record_frame(const void *data, size_t size, uint8_t head[TR_RECORD_HEAD],
                     uint8_t tail[TR_RECORD_TAIL]);

#endif
