trireme_test(base math)
