/* Looking for what pages and charts say. */
#ifndef TESTS_REPORT_PAGES_H
#define TESTS_REPORT_PAGES_H

/* Fails unless the text has this part, or has it not; and how often it has. */
void expect(const char *html, const char *part);
void expect_none(const char *html, const char *part);
int count_of(const char *html, const char *part);

/* Writes a file of a run in scratch_place's directory `place`; the run's directory is made if need be. */
void put_file(const char *place, const char *run, const char *name, const char *text);

#endif
