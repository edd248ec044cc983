/* Access to a mapped file that was truncated, or whose disk failed: ends the program with a message. */
#ifndef CLI_LOST_FILE_H
#define CLI_LOST_FILE_H

/* Installs a handler. Such an access then prints "trireme NAME: \"FILE\": ..." on stderr and ends the
   process with exit code 1. SIGBUS remains for memory that is not a file of the library. Called once, by
   the main thread. */
void cli_lost_file_catch(void);

#endif
