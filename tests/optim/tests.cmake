trireme_test(optim initializer)
trireme_test(optim schedule)
trireme_test(optim optimizer)
