trireme_test(data order)
trireme_test(data loader)
trireme_test(data idx SOURCES data/support.c)
