trireme_test(strategy ranks SOURCES support/training.c support/families.c)
