# The installation, used from outside this tree.
add_test(NAME install.use COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/install/install.sh ${PROJECT_BINARY_DIR}
                                  ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
set_tests_properties(install.use PROPERTIES LABELS install TIMEOUT 900)
# The binary interface, against that of the last release.
add_test(NAME install.abi COMMAND sh ${PROJECT_SOURCE_DIR}/tools/abi)
set_tests_properties(install.abi PROPERTIES LABELS "install;long" TIMEOUT 3600 SKIP_RETURN_CODE 77 PROCESSORS 2)
