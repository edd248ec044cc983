trireme_test(strategy ranks SOURCES support/ranks.c support/training.c support/families.c)
