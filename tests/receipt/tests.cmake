trireme_test(receipt merkle)
trireme_test(receipt canonical)
trireme_test(receipt chain)
trireme_test(receipt file)
