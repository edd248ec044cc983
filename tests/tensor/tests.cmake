trireme_test(tensor shape)
trireme_test(tensor planner)
