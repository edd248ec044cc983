trireme_test(report page SOURCES support/training.c support/families.c)
trireme_test(report run)
add_test(NAME report.pictures COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/report/pictures.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
set_tests_properties(report.pictures PROPERTIES LABELS report SKIP_RETURN_CODE 77 TIMEOUT 300)
