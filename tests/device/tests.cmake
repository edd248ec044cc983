trireme_test(device team)
set(TR_CASES device/scene.c device/cases.c device/cases_dense.c device/cases_elements.c device/cases_rows.c
    device/cases_sequence.c device/cases_window.c)
trireme_test(device equality SOURCES ${TR_CASES})
trireme_test(device gradients SOURCES ${TR_CASES} device/differences.c device/gradients_layers.c
             device/gradients_rows.c device/gradients_sequence.c)
