trireme_test(io safetensors)
trireme_test(io events SOURCES base/file_fault.c)
trireme_test(io graph SOURCES support/networks.c)
trireme_test(io histogram)
