/* The journal of a run: the lines of `--log json`, kept in the run's directory whatever is printed, so that
 * `trireme report` and `trireme diff` can tell of it later.
 *
 * A line is written at once and whole. A journal that cannot be written is given up with a warning, and the
 * run goes on.
 */
#ifndef CLI_JOURNAL_H
#define CLI_JOURNAL_H

#include <stdbool.h>
#include <stdio.h>

struct cli_journal {
    FILE *file; /* NULL: none is written */
};

/* Opens the journal in `directory`: anew, or to go on behind what is there. Warns where that cannot be. */
void cli_journal_open(struct cli_journal *journal, const char *directory, bool goes_on);
void cli_journal_line(struct cli_journal *journal, const char *line);
void cli_journal_close(struct cli_journal *journal);

/* The command line of this process as one would type it ("trireme train models/a.yaml"), with that of the
   launcher in front where there are several processes; "" where it is not known. Returned, free with
   tr_free(); NULL without memory. */
char *cli_journal_command(int processes);

#endif
