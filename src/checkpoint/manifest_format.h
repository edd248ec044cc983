/* Shared by writing and reading a manifest, beyond checkpoint/manifest.h. */
#ifndef TR_CHECKPOINT_MANIFEST_FORMAT_H
#define TR_CHECKPOINT_MANIFEST_FORMAT_H

#include <inttypes.h>

#define FORMAT_NAME "trireme checkpoint"

/* A CRC-32C as text. */
#define CRC_DIGITS 8
#define CRC_TEXT   (CRC_DIGITS + 1)

/* The end of every manifest; the checksum in it covers everything before. */
#define TAIL_FORMAT "\"manifest_crc32c\": \"%08" PRIx32 "\"\n}\n"
#define TAIL_SIZE   (sizeof "\"manifest_crc32c\": \"00000000\"\n}\n" - 1)

#endif
