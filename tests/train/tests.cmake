trireme_test(train checkpoint SOURCES train/sample.c)
