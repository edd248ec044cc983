trireme_test(base math)
trireme_test(base file SOURCES base/file_fault.c)
trireme_test(base hash)
trireme_test(base log)
