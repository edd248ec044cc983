# The installation, used from outside this tree.
set(install ${CMAKE_CURRENT_SOURCE_DIR}/install)
add_test(NAME install.use COMMAND sh ${install}/install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
add_test(NAME install.components COMMAND sh ${install}/components.sh ${PROJECT_BINARY_DIR} ${CMAKE_COMMAND})
add_test(NAME install.programs COMMAND sh ${install}/programs.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND}
                                       ${CMAKE_C_COMPILER})
# Each writes into the build folder where it installed.
set_tests_properties(install.use install.components install.programs PROPERTIES LABELS install TIMEOUT 900 RESOURCE_LOCK install)
# The binary interface, against that of the last release.
add_test(NAME install.abi COMMAND sh ${PROJECT_SOURCE_DIR}/tools/abi)
set_tests_properties(install.abi PROPERTIES LABELS "install;long" TIMEOUT 3600 SKIP_RETURN_CODE 77 PROCESSORS 2)
