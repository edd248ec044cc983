#include "strategy/parameter_server/mail.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

#include <string.h>

/* Between two checks of the ranks. */
#define LOOK_SECONDS 0.02
/* A lost rank may have sent something just before. */
#define GRACE_SECONDS 0.2
#define NAP_MOST      2e-3

double ps_nap(double quiet)
{
    return quiet < NAP_MOST ? quiet : NAP_MOST;
}

struct ps_letter {
    struct ps_letter *next;
    tr_ticket *ticket; /* NULL: it was sent, and the letter can be reused */
    int to;
    size_t capacity;
    char data[];
};

/* A sent letter that is large enough; NULL if there is none. */
static struct ps_letter *find_letter(struct ps_outbox *outbox, size_t bytes)
{
    struct ps_letter *found = NULL;
    for (struct ps_letter *letter = outbox->letters; letter; letter = letter->next)
        if (tr_comm_is_done(outbox->comm, &letter->ticket) && letter->capacity >= bytes && !found)
            found = letter;
    return found;
}

tr_status ps_outbox_send(struct ps_outbox *outbox, int to, int tag, const void *data, size_t bytes,
                         const char *name)
{
    struct ps_letter *letter = find_letter(outbox, bytes);
    if (!letter) {
        letter = tr_alloc(1, sizeof *letter + bytes);
        if (!letter) return TR_ENOMEM;
        *letter = (struct ps_letter){.next = outbox->letters, .capacity = bytes};
        outbox->letters = letter;
    }
    memcpy(letter->data, data, bytes);
    letter->to = to;
    return tr_comm_send(outbox->comm, to, tag, letter->data, bytes, name, &letter->ticket);
}

tr_status ps_outbox_flush(struct ps_outbox *outbox)
{
    double began = tr_clock_seconds();
    for (bool all = false; !all;) {
        all = true;
        TR_TRY(tr_comm_progress(outbox->comm));
        for (struct ps_letter *letter = outbox->letters; letter; letter = letter->next)
            all = all && (tr_comm_is_done(outbox->comm, &letter->ticket) ||
                          tr_comm_life(outbox->comm, letter->to, NULL, 0) != TR_COMM_ALIVE);
        if (!all) tr_comm_idle(outbox->comm, ps_nap(tr_clock_seconds() - began));
    }
    return TR_OK;
}

void ps_outbox_release(struct ps_outbox *outbox)
{
    while (outbox->letters) {
        struct ps_letter *letter = outbox->letters;
        outbox->letters = letter->next;
        /* A letter under way is not touched. */
        if (tr_comm_cancel(outbox->comm, &letter->ticket)) tr_free(letter);
    }
}

tr_status ps_watch_probe(struct ps_watch *watch)
{
    double now = tr_clock_seconds();
    if (now < watch->next) return TR_OK;
    watch->next = now + LOOK_SECONDS;
    tr_status status = tr_comm_require(watch->comm, watch->ranks, watch->count);
    if (status == TR_OK) {
        watch->troubled = 0;
    } else if (watch->troubled == 0) {
        watch->troubled = now;
        return TR_OK;
    }
    return now - watch->troubled > GRACE_SECONDS ? status : TR_OK;
}

tr_status ps_watch_wait(struct ps_watch *watch, tr_ticket **ticket)
{
    double began = tr_clock_seconds(), now = began;
    for (;;) {
        bool done;
        TR_TRY(tr_comm_test(watch->comm, ticket, &done));
        if (done) break;
        TR_TRY(ps_watch_probe(watch));
        tr_comm_idle(watch->comm, ps_nap(now - began));
        now = tr_clock_seconds();
    }
    watch->waited += now - began;
    return TR_OK;
}
