#include "train/setup/beginning.h"

#include "base/alloc.h"

void trainer_beginning_begin(struct trainer_beginning *beginning)
{
    *beginning = (struct trainer_beginning){.step = -1};
}

void trainer_beginning_release(struct trainer_beginning *beginning)
{
    tr_free(beginning->resumed);
    tr_free(beginning->resume_warnings);
    tr_free(beginning->start_summary);
    trainer_beginning_begin(beginning);
}

tr_status trainer_beginning_resume(struct trainer_beginning *beginning, const tr_checkpoint *checkpoint,
                                   bool same)
{
    const char *skipped = tr_checkpoint_skipped(checkpoint);
    beginning->resumed = tr_strdup(tr_checkpoint_path(checkpoint));
    beginning->resume_warnings = tr_strdup(skipped ? skipped : "");
    if (same) beginning->step = tr_checkpoint_facts(checkpoint)->step;
    return beginning->resumed && beginning->resume_warnings ? TR_OK : TR_ENOMEM;
}

tr_status trainer_beginning_add_note(struct trainer_beginning *beginning, const char *line)
{
    char *warnings = tr_format("%s%s\n", beginning->resume_warnings ? beginning->resume_warnings : "", line);
    if (!warnings) return TR_ENOMEM;
    tr_free(beginning->resume_warnings);
    beginning->resume_warnings = warnings;
    return TR_OK;
}
