trireme_test(data order)
trireme_test(data loader)
trireme_test(data idx SOURCES data/support.c)
trireme_test(data tfrecord SOURCES data/support.c)
