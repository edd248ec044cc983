/* Small data of all formats in the test directory. */
#ifndef TESTS_DATA_SAMPLES_H
#define TESTS_DATA_SAMPLES_H

/* Setup of a group of tests: writes them. samples.c shows their names and contents. */
int write_samples(void **unused);

#endif
