#include "journal.h"

#include "output.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "report/run.h"

#include <errno.h>
#include <string.h>

static void give_up(struct cli_journal *journal, const char *why)
{
    char *text = tr_format("the journal of the run is not written: %s", why);
    if (text) cli_warnings(text);
    tr_free(text);
    if (journal->file) fclose(journal->file);
    journal->file = NULL;
}

void cli_journal_open(struct cli_journal *journal, const char *directory, bool goes_on)
{
    char *path = tr_path_join(directory, TR_JOURNAL_FILE);
    journal->file = path ? fopen(path, goes_on ? "ae" : "we") : NULL;
    if (!journal->file) give_up(journal, path ? strerror(errno) : "out of memory");
    tr_free(path);
}

void cli_journal_line(struct cli_journal *journal, const char *line)
{
    if (!journal->file) return;
    if (fprintf(journal->file, "%s\n", line) < 0 || fflush(journal->file) != 0)
        give_up(journal, strerror(errno));
}

void cli_journal_close(struct cli_journal *journal)
{
    if (journal->file && fclose(journal->file) != 0) {
        journal->file = NULL;
        give_up(journal, strerror(errno));
    }
    journal->file = NULL;
}

/* ---- the command line ---- */

/* Appends a word as a shell takes it: quoted where it has anything but plain characters. */
static void add_word(struct tr_text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == 0) {
        tr_text_add(text, word);
        return;
    }
    tr_text_add(text, "'");
    for (; *word; word++) {
        if (*word == '\'')
            tr_text_add(text, "'\\''");
        else
            tr_text_add_bytes(text, word, 1);
    }
    tr_text_add(text, "'");
}

char *cli_journal_command(int processes)
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
        add_word(&text, words + at);
    }
    if (tr_text_finish(&text, &command) != TR_OK) command = NULL;
    tr_text_release(&text);
    return command;
}
