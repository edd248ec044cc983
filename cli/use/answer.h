/* One prediction, as a line for people or as JSON. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "trireme/predict.h"

struct cli_answer {
    const struct tr_predict_info *info; /* borrowed */
    int32_t top;                        /* classes to print, the likeliest first */
    bool json;
};

/* Prints what the network made of the example called `input`. `label` is its true class, -1 if unknown. */
tr_status cli_answer_print(const struct cli_answer *answer, const char *input, const float *output,
                           int32_t label);

#endif
