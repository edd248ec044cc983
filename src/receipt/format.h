/* The common part of writing and reading a receipt, beyond receipt/receipt.h. */
#ifndef TR_RECEIPT_FORMAT_H
#define TR_RECEIPT_FORMAT_H

#define FORMAT_NAME    "trireme receipt"
#define FORMAT_VERSION 1

#endif
