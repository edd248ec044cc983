/* The command line of this process, for repeating it. */
#ifndef CLI_COMMAND_LINE_H
#define CLI_COMMAND_LINE_H

/* As typed ("trireme train models/a.yaml"), with that of the launcher before it if there are several
   processes; "" if it is not known. Returned, free with tr_free(); NULL without memory. */
char *cli_command_line(int processes);

#endif
