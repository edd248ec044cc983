trireme_test(data order)
trireme_test(data loader)
