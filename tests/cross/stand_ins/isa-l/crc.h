/* Stands in for ISA-L's CRC-32C. */
#ifndef STAND_IN_ISAL_CRC_H
#define STAND_IN_ISAL_CRC_H

/* The CRC register after `length` bytes, without the inversions at beginning and end. */
unsigned int crc32_iscsi(unsigned char *bytes, int length, unsigned int crc);

#endif
