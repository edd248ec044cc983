/* Counts with a noun, for messages. */
#ifndef TR_BASE_COUNTED_H
#define TR_BASE_COUNTED_H

#include <stdint.h>

#define TR_COUNTED_SIZE 80 /* nouns have up to 50 bytes; longer ones are cut */

/* "1 microbatch", "2 microbatches", "0 entries": the noun is given in the singular and gets its regular
   plural; digits have no commas. Writes at most TR_COUNTED_SIZE bytes and returns `buffer`. Any thread. */
const char *tr_counted(int64_t count, const char *noun, char buffer[TR_COUNTED_SIZE]);
/* The same with commas between thousands: "10,000 examples". For what people read of their runs. */
const char *tr_counted_long(int64_t count, const char *noun, char buffer[TR_COUNTED_SIZE]);

#endif
