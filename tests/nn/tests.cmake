trireme_test(nn cut SOURCES support/networks.c)
trireme_test(nn model SOURCES support/networks.c)
trireme_test(nn network_gradient SOURCES support/networks.c)
trireme_test(nn pass SOURCES support/networks.c)
