/* The program `trireme`. The environment enters here and nowhere else. */
#include "cli/program/dispatch.h"
#include "cli/launch/lost_file.h"
#include "cli/terminal/output.h"

#include <locale.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    cli_output_begin();
    cli_lost_file_catch();
    setlocale(LC_CTYPE, ""); /* how wide a terminal can draw; numbers stay as they are in C */
    return cli_output_leave(cli_dispatch(argc, (const char *const *)argv, (const char *const *)environ));
}
