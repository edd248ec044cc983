/* The program `trireme`. Only here is the environment read. */
#include "cli/program/dispatch.h"
#include "cli/launch/lost_file.h"
#include "cli/terminal/output.h"

#include <locale.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    cli_output_begin();
    cli_lost_file_catch();
    setlocale(LC_CTYPE, ""); /* width of characters for the terminal; numbers stay as in C */
    return cli_output_leave(cli_dispatch(argc, (const char *const *)argv, (const char *const *)environ));
}
