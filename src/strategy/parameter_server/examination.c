#include "strategy/parameter_server/examination.h"

#include "base/alloc.h"

#include <assert.h>

struct finding {
    int64_t piece;
    int worker;
};

struct ps_examination {
    int workers;
    int64_t pieces, next; /* in all; the lowest never handed out */
    int64_t *held;        /* [workers] the piece that each has, -1: none */
    int64_t *back;        /* [workers] pieces given back */
    int backs;
    struct finding *finding; /* [pieces] in the order of coming */
    int64_t found, told;     /* by others than the root */
    int64_t settled;         /* with the root */
};

tr_status ps_examination_create(int workers, int64_t pieces, ps_examination **out)
{
    ps_examination *examination = *out = tr_alloc_zero(1, sizeof *examination);
    if (!examination) return TR_ENOMEM;
    *examination = (ps_examination){.workers = workers, .pieces = pieces};
    examination->held = tr_alloc((size_t)workers, sizeof *examination->held);
    examination->back = tr_alloc((size_t)workers, sizeof *examination->back);
    examination->finding = tr_alloc((size_t)pieces, sizeof *examination->finding);
    if (examination->held && examination->back && examination->finding) {
        for (int w = 0; w < workers; w++) examination->held[w] = -1;
        return TR_OK;
    }
    ps_examination_destroy(out);
    return TR_ENOMEM;
}

void ps_examination_destroy(ps_examination **handle)
{
    ps_examination *examination = *handle;
    if (!examination) return;
    tr_free(examination->held);
    tr_free(examination->back);
    tr_free(examination->finding);
    tr_free(examination);
    *handle = NULL;
}

bool ps_examination_is_open(const ps_examination *examination)
{
    return examination && (examination->backs > 0 || examination->next < examination->pieces);
}

int64_t ps_examination_draw(ps_examination *examination, int worker)
{
    int lowest = 0;
    assert(ps_examination_is_open(examination) && examination->held[worker] < 0);
    for (int i = 1; i < examination->backs; i++)
        if (examination->back[i] < examination->back[lowest]) lowest = i;
    int64_t piece = examination->backs > 0 ? examination->back[lowest] : examination->next++;
    if (examination->backs > 0) examination->back[lowest] = examination->back[--examination->backs];
    return examination->held[worker] = piece;
}

bool ps_examination_found(ps_examination *examination, int worker)
{
    int64_t piece = examination->held[worker];
    if (piece < 0) return false;
    examination->held[worker] = -1;
    if (worker > 0)
        examination->finding[examination->found++] = (struct finding){piece, worker};
    else
        examination->settled++;
    return true;
}

bool ps_examination_tell(ps_examination *examination, int *worker, int64_t *piece)
{
    if (examination->told == examination->found) return false;
    const struct finding *finding = &examination->finding[examination->told++];
    *worker = finding->worker;
    *piece = finding->piece;
    examination->settled++;
    return true;
}

void ps_examination_lose(ps_examination *examination, int worker)
{
    if (!examination || examination->held[worker] < 0) return;
    assert(examination->backs < examination->workers);
    examination->back[examination->backs++] = examination->held[worker];
    examination->held[worker] = -1;
}

bool ps_examination_is_over(const ps_examination *examination)
{
    return examination->settled == examination->pieces;
}
