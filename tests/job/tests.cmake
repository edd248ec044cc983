trireme_test(job variables SOURCES support/networks.c)
