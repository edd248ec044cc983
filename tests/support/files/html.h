/* Rules that every page we write keeps to. */
#ifndef TESTS_SUPPORT_FILES_HTML_H
#define TESTS_SUPPORT_FILES_HTML_H

/* Fails unless every tag is closed in order. */
void expect_well_formed(const char *html);
/* Fails unless every row of a table has a cell below each of its heads. */
void expect_whole_rows(const char *html);
/* Fails unless rules of style stand within <style>, and no text of them outside. */
void expect_styled(const char *html);

#endif
