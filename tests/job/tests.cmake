trireme_test(job variables SOURCES support/networks.c)
trireme_test(job memory SOURCES support/training.c support/families.c support/shadow.c)
trireme_test(job options)
trireme_test(job settings SOURCES support/training.c)
