#include "cli/dispute/speaker.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/program/signals.h"
#include "cli/terminal/output.h"
#include "dispute/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a command ---- */

static void become(const char *command, const int question[2], const int answer[2])
{
    signal(SIGPIPE, SIG_DFL);
    if (dup2(question[0], STDIN_FILENO) >= 0 && dup2(answer[1], STDOUT_FILENO) >= 0) {
        const int all[] = {question[0], question[1], answer[0], answer[1]};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (all[i] > STDERR_FILENO) close(all[i]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    }
    _exit(127);
}

tr_status cli_speaker_start(struct cli_speaker *speaker, const char *command)
{
    int question[2], answer[2];
    *speaker = (struct cli_speaker){.command = command, .to = -1, .from = -1};
    if (pipe2(question, O_CLOEXEC) != 0)
        return tr_fail(TR_EIO, "no pipe to \"%.80s\": %s", command, strerror(errno));
    if (pipe2(answer, O_CLOEXEC) != 0) {
        close(question[0]);
        close(question[1]);
        return tr_fail(TR_EIO, "no pipe to \"%.80s\": %s", command, strerror(errno));
    }
    speaker->process = fork();
    if (speaker->process == 0) become(command, question, answer);
    close(question[0]);
    close(answer[1]);
    speaker->to = question[1];
    speaker->from = answer[0];
    if (speaker->process > 0) return TR_OK;
    speaker->process = 0;
    close(speaker->to);
    close(speaker->from);
    return tr_fail(TR_EIO, "\"%.80s\" cannot be started: %s", command, strerror(errno));
}

void cli_speaker_end(struct cli_speaker *speaker)
{
    if (speaker->process == 0) return;
    close(speaker->to);
    close(speaker->from);
    while (waitpid(speaker->process, NULL, 0) < 0 && errno == EINTR) {
    }
    tr_text_release(&speaker->line);
    speaker->process = 0;
}

static tr_status interrupted(void)
{
    return tr_fail(TR_EINTERRUPTED, "the dispute was stopped");
}

static tr_status say(const struct cli_speaker *speaker, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(speaker->to, text, size);
        if (written < 0 && errno == EINTR && !cli_signals_received()) continue;
        if (cli_signals_received()) return interrupted();
        if (written <= 0)
            return tr_fail(TR_EIO, "\"%.80s\" ended before the dispute did; see what it wrote",
                           speaker->command);
        text += written;
        size -= (size_t)written;
    }
    return TR_OK;
}

/* Reads more of the answer. */
static tr_status listen(struct cli_speaker *speaker)
{
    char block[65536];
    struct pollfd ready = {.fd = speaker->from, .events = POLLIN};
    while (poll(&ready, 1, 200) <= 0)
        if (cli_signals_received()) return interrupted();
    const ssize_t got = read(speaker->from, block, sizeof block);
    if (got < 0 && errno == EINTR) return TR_OK;
    if (got <= 0)
        return tr_fail(TR_EIO, "\"%.80s\" ended before the dispute did; see what it wrote", speaker->command);
    if (memchr(block, 0, (size_t)got) || speaker->line.length + (size_t)got > TR_WIRE_MOST + sizeof block)
        return tr_fail(TR_EIO, "\"%.80s\" does not answer in lines of text", speaker->command);
    tr_text_add_bytes(&speaker->line, block, (size_t)got);
    return speaker->line.failed ? TR_ENOMEM : TR_OK;
}

tr_status cli_speaker_ask(void *user, const char *question, char **answer)
{
    struct cli_speaker *speaker = user;
    TR_TRY(say(speaker, question, strlen(question)));
    TR_TRY(say(speaker, "\n", 1));
    const char *end = NULL;
    while (!end) {
        if (speaker->line.length > 0) end = strchr(speaker->line.bytes, '\n');
        if (!end) TR_TRY(listen(speaker));
    }
    struct tr_text rest = TR_TEXT_INIT;
    const size_t length = (size_t)(end - speaker->line.bytes);
    *answer = tr_format("%.*s", (int)length, speaker->line.bytes);
    tr_text_add_bytes(&rest, end + 1, speaker->line.length - length - 1);
    tr_text_release(&speaker->line);
    speaker->line = rest;
    return *answer && !rest.failed ? TR_OK : TR_ENOMEM;
}

/* ---- a party ---- */

tr_status cli_speaker_answer(tr_party *party)
{
    char question[512];
    while (fgets(question, sizeof question, stdin)) {
        char *answer;
        const size_t length = strcspn(question, "\n");
        if (question[length] != '\n')
            return tr_fail(TR_EINVAL, "a question is a line of at most %zu bytes", sizeof question - 2);
        question[length] = '\0';
        TR_TRY(tr_party_answer(party, question, &answer));
        cli_output_raw(answer, strlen(answer));
        cli_output_raw("\n", 1);
        tr_free(answer);
        if (!cli_output_flush()) return tr_fail(TR_EIO, "the answer cannot be written");
        if (cli_signals_received()) return interrupted();
    }
    return TR_OK;
}
