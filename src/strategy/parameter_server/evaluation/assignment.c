#include "strategy/parameter_server/evaluation/assignment.h"

#include "base/alloc.h"

#include <assert.h>

struct finding {
    int64_t piece;
    int worker;
};

struct ps_assignment {
    int workers;
    int64_t count, next; /* total; the lowest never handed out */
    int64_t *held;       /* [workers] the piece that each has, -1: none */
    int64_t *back;       /* [workers] pieces given back */
    int backs;
    struct finding *finding; /* [pieces] in the order of arrival */
    int64_t found, told;     /* by other workers than the root */
    int64_t settled;         /* on the root */
};

tr_status ps_assignment_create(int workers, int64_t count, ps_assignment **out)
{
    ps_assignment *assignment = *out = tr_alloc_zero(1, sizeof *assignment);
    if (!assignment) return TR_ENOMEM;
    *assignment = (ps_assignment){.workers = workers, .count = count};
    assignment->held = tr_alloc((size_t)workers, sizeof *assignment->held);
    assignment->back = tr_alloc((size_t)workers, sizeof *assignment->back);
    assignment->finding = tr_alloc((size_t)count, sizeof *assignment->finding);
    if (assignment->held && assignment->back && assignment->finding) {
        for (int w = 0; w < workers; w++) assignment->held[w] = -1;
        return TR_OK;
    }
    ps_assignment_destroy(out);
    return TR_ENOMEM;
}

void ps_assignment_destroy(ps_assignment **handle)
{
    ps_assignment *assignment = *handle;
    if (!assignment) return;
    tr_free(assignment->held);
    tr_free(assignment->back);
    tr_free(assignment->finding);
    tr_free(assignment);
    *handle = NULL;
}

bool ps_assignment_is_open(const ps_assignment *assignment)
{
    return assignment && (assignment->backs > 0 || assignment->next < assignment->count);
}

int64_t ps_assignment_draw(ps_assignment *assignment, int worker)
{
    int lowest = 0;
    assert(ps_assignment_is_open(assignment) && assignment->held[worker] < 0);
    for (int i = 1; i < assignment->backs; i++)
        if (assignment->back[i] < assignment->back[lowest]) lowest = i;
    int64_t piece = assignment->backs > 0 ? assignment->back[lowest] : assignment->next++;
    if (assignment->backs > 0) assignment->back[lowest] = assignment->back[--assignment->backs];
    return assignment->held[worker] = piece;
}

bool ps_assignment_found(ps_assignment *assignment, int worker)
{
    int64_t piece = assignment->held[worker];
    if (piece < 0) return false;
    assignment->held[worker] = -1;
    if (worker > 0)
        assignment->finding[assignment->found++] = (struct finding){piece, worker};
    else
        assignment->settled++;
    return true;
}

bool ps_assignment_tell(ps_assignment *assignment, int *worker, int64_t *piece)
{
    if (assignment->told == assignment->found) return false;
    const struct finding *finding = &assignment->finding[assignment->told++];
    *worker = finding->worker;
    *piece = finding->piece;
    assignment->settled++;
    return true;
}

void ps_assignment_lose(ps_assignment *assignment, int worker)
{
    if (!assignment || assignment->held[worker] < 0) return;
    assert(assignment->backs < assignment->workers);
    assignment->back[assignment->backs++] = assignment->held[worker];
    assignment->held[worker] = -1;
}

bool ps_assignment_is_over(const ps_assignment *assignment)
{
    return assignment->settled == assignment->count;
}
