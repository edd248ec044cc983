/* What is said when ranks died and the others go on: who died, how many are left, and who reports now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/ranks.h"

#include "train/parts/crew.h"

#include <stdio.h>
#include <string.h>

enum { SIZE = 5 };

static const int host[SIZE] = {0, 0, 1, 1, 2};

/* The ranks that `lives` names go on, of those that `before` names. */
static const char *name_lost(tr_comm *whole, const bool before[SIZE], const bool lives[SIZE],
                             const char *expected)
{
    const int rank = tr_comm_rank(whole);
    static _Thread_local char text[256];
    tr_comm *comm = NULL, *part = NULL;
    if (tr_comm_split(whole, before[rank] ? 0 : -1, rank, &comm) != TR_OK) return "no split";
    if (tr_comm_split(whole, before[rank] && lives[rank] ? 0 : -1, rank, &part) != TR_OK) return "no split";
    if (part) {
        const struct trainer_crew crew = {.whole = whole, .comm = comm};
        trainer_crew_name_lost(&crew, part, text, sizeof text);
    }
    bool wrong = part && strcmp(text, expected) != 0;
    tr_comm_destroy(&part);
    tr_comm_destroy(&comm);
    return wrong ? text : NULL;
}

static const char *lose(tr_comm *comm)
{
    static const struct {
        bool before[SIZE], lives[SIZE];
        const char *expected;
    } cases[] = {
        {{1, 1, 1, 1, 1}, {1, 1, 0, 1, 1}, "rank 2 on host thread-host-1 died; 4 of 5 ranks go on"},
        {{1, 1, 1, 1, 1},
         {1, 0, 1, 1, 0},
         "rank 1 on host thread-host-0, rank 4 on host thread-host-2 died; 3 of 5 ranks go on"},
        {{1, 1, 1, 1, 1},
         {0, 0, 1, 1, 1},
         "rank 0 on host thread-host-0, rank 1 on host thread-host-0 died; 3 of 5 ranks go on, and rank 2 "
         "reports "
         "and saves"},
        /* Once more: those that died before are not named again. */
        {{0, 1, 1, 0, 1}, {0, 1, 0, 0, 1}, "rank 2 on host thread-host-1 died; 2 of 5 ranks go on"},
        {{0, 1, 1, 0, 1},
         {0, 0, 1, 0, 1},
         "rank 1 on host thread-host-0 died; 2 of 5 ranks go on, and rank 2 reports and saves"},
    };
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *now = name_lost(comm, cases[i].before, cases[i].lives, cases[i].expected);
        if (!wrong) wrong = now;
    }
    return wrong;
}

static void the_lost_are_named(void **state)
{
    (void)state;
    ranks_run(SIZE, host, &(struct tr_comm_settings)TR_COMM_SETTINGS_INIT, lose);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lost_are_named),
    };
    return cmocka_run_group_tests_name("train.crew", tests, NULL, NULL);
}
