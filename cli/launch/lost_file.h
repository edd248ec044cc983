/* A mapped file that was cut short, or whose disk failed: ends the program with a message.
 */
#ifndef CLI_LOST_FILE_H
#define CLI_LOST_FILE_H

/* From now on such an access prints "trireme NAME: \"FILE\": ..." on stderr and ends the process with exit
   code 1 instead of SIGBUS, which stays for what is no file of the library's. Called once, by the main
   thread. */
void cli_lost_file_catch(void);

#endif
