/* Stands in for ISA-L's CRC-32C and CRC-32. */
#ifndef STAND_IN_ISAL_CRC_H
#define STAND_IN_ISAL_CRC_H

/* The CRC register after `length` bytes, without the inversions at beginning and end. */
unsigned int crc32_iscsi(unsigned char *bytes, int length, unsigned int crc);
/* The CRC-32 of bytes that follow others whose CRC-32 is `crc`. */
unsigned int crc32_gzip_refl(unsigned int crc, const unsigned char *bytes, unsigned long length);

#endif
