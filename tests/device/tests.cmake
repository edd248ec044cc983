trireme_test(device team)
set(TR_CASES device/scene.c device/cases.c device/cases_dense.c device/cases_elements.c device/cases_rows.c
    device/cases_sequence.c device/cases_window.c)
trireme_test(device equality SOURCES ${TR_CASES})
