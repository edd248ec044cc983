trireme_test(export exchange SOURCES support/training.c support/families.c)
trireme_test(export layout SOURCES support/networks.c)
trireme_test(export c TIMEOUT 600 SOURCES export/program.c support/networks.c support/training.c support/families.c)
trireme_test(export onnx SOURCES support/networks.c)
