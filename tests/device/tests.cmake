trireme_test(device team)
