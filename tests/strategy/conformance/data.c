/* What the conformance suite must know about each class. A new one is added here. */
#include "strategy/conformance/conformance.h"

#include <stddef.h>
#include <string.h>

/* The mean of something over all replicas, into all of them. */
static void average(const struct replay *replay, double **values)
{
    for (int64_t i = 0; i < replay->floats; i++) {
        double sum = 0;
        for (int64_t r = 0; r < replay->replicas; r++) sum += values[r][i];
        for (int64_t r = 0; r < replay->replicas; r++) values[r][i] = sum / (double)replay->replicas;
    }
}

static double option_of(const struct replay *replay, const struct tr_strategy_class *class, const char *key)
{
    for (int i = 0; i < class->option_count; i++) {
        const struct tr_option *option = &class->options[i];
        const char *at = (const char *)replay->options + option->offset;
        float number;
        int32_t count;
        if (strcmp(option->key, key) != 0) continue;
        memcpy(&number, at, sizeof number);
        memcpy(&count, at, sizeof count);
        return option->type == TR_OPTION_FLOAT ? (double)number : (double)count;
    }
    return 0;
}

/* docs/explanation/strategies.md, local-sgd: averages, and an outer step with momentum. */
static void meet_local_sgd(struct replay *replay, int64_t steps)
{
    double momentum = option_of(replay, &tr_strategy_local_sgd, "momentum"),
           rate = option_of(replay, &tr_strategy_local_sgd, "rate");
    (void)steps;
    average(replay, replay->w);
    average(replay, replay->m);
    average(replay, replay->ema);
    for (int64_t i = 0; i < replay->floats; i++) {
        replay->outer[i] = momentum * replay->outer[i] + (replay->last[i] - replay->w[0][i]);
        replay->last[i] -= rate * replay->outer[i];
        for (int64_t r = 0; r < replay->replicas; r++) replay->w[r][i] = replay->last[i];
    }
}

/* docs/explanation/strategies.md, easgd: replicas and centre pull each other at the ends of periods. */
static void meet_easgd(struct replay *replay, int64_t steps)
{
    const struct tr_strategy_class *class = &tr_strategy_easgd;
    double beta = option_of(replay, class, "beta"), alpha = beta / (double)replay->replicas;
    replay->apart = true;
    if (steps % (int64_t)option_of(replay, class, "every") != 0) return;
    for (int64_t i = 0; i < replay->floats; i++) {
        double centre = replay->last[i];
        for (int64_t r = 0; r < replay->replicas; r++) {
            double away = replay->w[r][i] - centre;
            replay->w[r][i] -= alpha * away;
            replay->last[i] += alpha * away;
        }
    }
}

/* docs/explanation/strategies.md, gossip: means of neighbours in the ring, and now and then of all. */
static void meet_gossip(struct replay *replay, int64_t steps)
{
    const struct tr_strategy_class *class = &tr_strategy_gossip;
    int64_t exchange = steps / (int64_t)option_of(replay, class, "every"), all = replay->replicas,
            reach = (int64_t)option_of(replay, class, "neighbours");
    double mixed[CONFORMANCE_RANKS][1024];
    if (steps == replay->steps || exchange % (int64_t)option_of(replay, class, "consensus") == 0) {
        average(replay, replay->w);
        average(replay, replay->m);
        average(replay, replay->ema);
        return;
    }
    for (int64_t r = 0; r < all; r++)
        for (int64_t i = 0; i < replay->floats; i++) {
            double sum = 0;
            int64_t count = 0;
            for (int64_t s = r - reach; s <= r + reach && count < all; s++, count++)
                sum += replay->w[(s + all) % all][i];
            mixed[r][i] = sum / (double)count;
        }
    for (int64_t r = 0; r < all; r++) memcpy(replay->w[r], mixed[r], (size_t)replay->floats * sizeof(double));
}

const struct conformance_data conformance_data[] = {
    {"allreduce", NULL},
    {"easgd", meet_easgd},
    {"gossip", meet_gossip},
    {"local-sgd", meet_local_sgd},
    {"parameter-server", NULL},
    {"pipeline", NULL},
    {NULL, NULL},
};
