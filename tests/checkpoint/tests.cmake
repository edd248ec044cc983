trireme_test(checkpoint save SOURCES checkpoint/sample.c)
trireme_test(checkpoint damage SOURCES checkpoint/sample.c)
trireme_test(checkpoint faults SOURCES checkpoint/sample.c base/files/file_fault.c base/files/file_power.c)
trireme_test(checkpoint best SOURCES checkpoint/sample.c base/files/file_fault.c base/files/file_power.c)
