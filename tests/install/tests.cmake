# The installation, used from outside this tree.
add_test(NAME install.use COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/install/install.sh ${PROJECT_BINARY_DIR}
                                  ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
set_tests_properties(install.use PROPERTIES LABELS install TIMEOUT 900)
