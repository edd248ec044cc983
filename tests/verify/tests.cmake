trireme_test(verify roots TIMEOUT 1200 SOURCES support/training.c support/families.c support/ranks.c)
trireme_test(verify verify TIMEOUT 1200 SOURCES support/training.c support/families.c)
trireme_test(verify logs SOURCES support/training.c support/families.c)
trireme_test(verify kills SOURCES support/training.c support/families.c)
trireme_test(verify burn_in SOURCES support/training.c)
trireme_test(verify forms SOURCES support/training.c support/families.c)
trireme_test(verify stretches)
trireme_test(verify replay SOURCES support/training.c support/families.c)

# Roots by another program than ours.
add_test(NAME verify.root COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/verify/root.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
set_tests_properties(verify.root PROPERTIES LABELS "verify;program" SKIP_RETURN_CODE 77 TIMEOUT 600)
