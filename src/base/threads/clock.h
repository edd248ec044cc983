/* Time: for speeds, intervals and stamps, never for anything that arithmetic depends on. */
#ifndef TR_BASE_CLOCK_H
#define TR_BASE_CLOCK_H

/* Seconds since some moment in the past; only differences are meaningful. Never goes back. Any thread. */
double tr_clock_seconds(void);
/* Makes tr_clock_seconds() on the calling thread return the time of `source`: for runs in simulated time
   (src/plan). NULL: the system's clock again. `user` is borrowed until then. */
typedef double (*tr_clock_source)(void *user);
void tr_clock_use(tr_clock_source source, void *user);
/* Seconds since 1970-01-01 00:00 UTC. Any thread. */
double tr_clock_wall(void);

#define TR_CLOCK_TEXT 32
/* Writes a time of tr_clock_wall() as "2026-01-31T23:59:59Z" and returns `text`. Any thread. */
const char *tr_clock_text(double wall, char text[TR_CLOCK_TEXT]);

#endif
