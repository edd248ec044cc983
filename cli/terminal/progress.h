/* The progress line: figures and a bar that fit a given width. Pure text, no input or output. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "base/text/text.h"

struct cli_progress {
    int64_t step, steps;
    double loss, accuracy;      /* NaN: none */
    double examples_per_second; /* 0: unknown */
    double seconds_left;        /* negative: unknown */
};

struct cli_progress_style {
    bool unicode, color;
};

/* Appends the line for a terminal of `width` columns: as many fields as fit, the most important first,
   never wider than width - 1, so that no terminal wraps it. Nothing below 5 columns. */
void cli_progress_line(const struct cli_progress *progress, int width, struct cli_progress_style style,
                       struct tr_text *text);

#define CLI_FIGURE_SIZE 32
/* A loss for people: "0.5120", "29.0312", "1.204e+05", "1.1e-06", "nan". Returns `buffer`. */
const char *cli_figure(double value, char buffer[CLI_FIGURE_SIZE]);

#endif
