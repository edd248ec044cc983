trireme_test(tensor shape)
