/* The command line of this process, for those who want to repeat what it did. */
#ifndef CLI_COMMAND_LINE_H
#define CLI_COMMAND_LINE_H

/* As one would type it ("trireme train models/a.yaml"), with that of the launcher in front where there are
   several processes; "" where it is not known. Returned, free with tr_free(); NULL without memory. */
char *cli_command_line(int processes);

#endif
