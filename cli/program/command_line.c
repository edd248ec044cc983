#include "cli/program/command_line.h"

#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

char *cli_command_line(int processes)
{
    char words[8192], *command = NULL;
    struct tr_text text = TR_TEXT_INIT;
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t length = file ? fread(words, 1, sizeof words - 1, file) : 0;
    if (file) fclose(file);
    words[length] = 0;
    tr_text_add(&text, length ? "trireme" : "");
    if (processes > 1 && length) tr_text_addf(&text, " launch -n %d", processes);
    for (size_t at = strlen(words) + 1; at < length; at += strlen(words + at) + 1) {
        tr_text_add(&text, " ");
        tr_text_add_word(&text, words + at);
    }
    if (tr_text_finish(&text, &command) != TR_OK) command = NULL;
    tr_text_release(&text);
    return command;
}
