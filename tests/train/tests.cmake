trireme_test(train checkpoint SOURCES train/sample.c)
trireme_test(train manual)
trireme_test(train checkpoint_damage SOURCES train/sample.c)
trireme_test(train checkpoint_faults SOURCES train/sample.c base/file_fault.c base/file_power.c)
