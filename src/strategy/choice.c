/* Choosing a strategy by the model file: its class and options, with or without a job. */
#include "strategy/choice.h"

#include "base/fail.h"

tr_status tr_strategy_check_version(const struct tr_strategy_class *class)
{
    if (class->version == TR_STRATEGY_CLASS_VERSION) return TR_OK;
    return tr_fail(TR_EMISMATCH,
                   "the strategy \"%s\" was made for version %d of what strategies provide, this library "
                   "takes version %d; build it anew",
                   class->name, class->version, TR_STRATEGY_CLASS_VERSION);
}

tr_status tr_strategy_choose(const tr_config *choice, struct tr_strategy_choice *out)
{
    const struct tr_entry *entry;
    *out = (struct tr_strategy_choice){0};
    TR_TRY(tr_registry_read(&tr_strategies, choice, &entry, &out->options));
    out->class = (const struct tr_strategy_class *)entry;
    tr_status status = tr_strategy_check_version(out->class);
    if (status != TR_OK)
        tr_strategy_choice_release(out);
    else if (out->class->traits)
        out->class->traits(out->options, &out->traits);
    return status;
}

void tr_strategy_choice_release(struct tr_strategy_choice *choice)
{
    if (choice->options) tr_entry_release(&choice->class->entry, choice->options);
    choice->options = NULL;
}

tr_status tr_strategy_choice_check(const struct tr_strategy_choice *choice, const struct tr_job *job,
                                   int ranks)
{
    if (ranks > TR_STRATEGY_RANKS)
        return tr_fail(TR_EINVAL, "%d ranks; at most %d can share a job", ranks, TR_STRATEGY_RANKS);
    if (choice->traits.asynchronous && job->optimizer.sam > 0)
        return tr_fail(
            TR_EINVAL,
            "optimizer.sam takes two gradients of the same parameters, which asynchronous workers do not "
            "have; choose a synchronous strategy, or leave it out");
    return choice->class->check ? choice->class->check(job, choice->options, ranks) : TR_OK;
}

tr_status tr_strategy_choice_settle(struct tr_strategy_choice *choice, const struct tr_job *job, int ranks)
{
    TR_TRY(tr_strategy_choice_check(choice, job, ranks));
    if (!choice->class->resolve) return TR_OK;
    choice->class = choice->class->resolve(choice->options, ranks);
    choice->traits = (struct tr_strategy_traits){0};
    if (choice->class->traits) choice->class->traits(choice->options, &choice->traits);
    return TR_OK;
}

tr_status tr_strategy_choose_for(const struct tr_job *job, bool replays, int ranks,
                                 struct tr_strategy_choice *out)
{
    if (replays) {
        *out = (struct tr_strategy_choice){.class = &tr_strategy_replay, .traits = {.asynchronous = true}};
        return TR_OK;
    }
    TR_TRY(tr_strategy_choose(job->file.strategy, out));
    tr_status status = tr_strategy_choice_settle(out, job, ranks);
    if (status != TR_OK) tr_strategy_choice_release(out);
    return status;
}

tr_status tr_strategy_check(const struct tr_job *job, int ranks)
{
    struct tr_strategy_choice choice;
    TR_TRY(tr_strategy_choose(job->file.strategy, &choice));
    tr_status status = tr_strategy_choice_check(&choice, job, ranks);
    tr_strategy_choice_release(&choice);
    return status;
}

tr_status tr_strategy_peek(const tr_config *node, const char **name, bool *asynchronous)
{
    struct tr_strategy_choice choice;
    TR_TRY(tr_strategy_choose(node, &choice));
    *name = choice.class->name;
    *asynchronous = choice.traits.asynchronous;
    tr_strategy_choice_release(&choice);
    return TR_OK;
}

const char *tr_strategy_first_option(const char *name)
{
    const struct tr_entry *entry = tr_registry_find(&tr_strategies, name);
    return entry && entry->option_count > 0 ? entry->options[0].key : NULL;
}

tr_status tr_strategy_outline(const struct tr_job *job, int workers, struct tr_strategy_outline *out)
{
    struct tr_strategy_choice choice;
    TR_TRY(tr_strategy_choose(job->file.strategy, &choice));
    *out = (struct tr_strategy_outline){
        .name = choice.class->name,
        .ranks = workers + choice.traits.servers,
        .asynchronous = choice.traits.asynchronous,
        .own_hash = choice.class->own_hash,
    };
    tr_status status = tr_strategy_choice_check(&choice, job, out->ranks);
    tr_strategy_choice_release(&choice);
    return status;
}

tr_status tr_strategy_keeping(const struct tr_job *job, enum tr_strategy_keeping *out)
{
    struct tr_strategy_choice choice;
    TR_TRY(tr_strategy_choose(job->file.strategy, &choice));
    /* Parts are collected; servers hold what workers do not. Replicas differ, and so has the hash its own. */
    const bool parts = tr_strategy_class_spreads(choice.class) || choice.traits.servers > 0;
    *out = parts ? TR_KEEP_PARTS : choice.class->own_hash ? TR_KEEP_OWN : TR_KEEP_ALL;
    tr_strategy_choice_release(&choice);
    return TR_OK;
}

tr_status tr_strategy_spares(const struct tr_job *job, int64_t *bytes)
{
    struct tr_strategy_choice choice;
    TR_TRY(tr_strategy_choose(job->file.strategy, &choice));
    *bytes = choice.class->spares ? choice.class->spares(job, choice.options) : 0;
    tr_strategy_choice_release(&choice);
    return TR_OK;
}
