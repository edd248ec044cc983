trireme_test(dispute units TIMEOUT 1800 SOURCES ${TR_CASES})
trireme_test(dispute evidence)
trireme_test(dispute wire)
trireme_test(dispute program)

# The referee is a program of one file, and of C99.
add_executable(dispute_referee ${PROJECT_SOURCE_DIR}/src/dispute/referee.c)
set_target_properties(dispute_referee PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
target_compile_options(dispute_referee PRIVATE -Wall -Wextra -ffp-contract=off)
target_link_libraries(dispute_referee PRIVATE m)

trireme_test(dispute disputes TIMEOUT 1800 SOURCES dispute/referee.c support/training.c support/families.c)
trireme_test(dispute party SOURCES dispute/two_sides.c support/training.c)
trireme_test(dispute failures SOURCES dispute/two_sides.c support/training.c)
trireme_test(dispute judge SOURCES dispute/two_sides.c support/training.c)
trireme_test(dispute steps SOURCES dispute/two_sides.c support/training.c)
trireme_test(dispute settle SOURCES dispute/referee.c dispute/two_sides.c support/training.c)
foreach(test disputes settle)
  target_compile_definitions(test_dispute_${test} PRIVATE TEST_REFEREE="$<TARGET_FILE:dispute_referee>")
  add_dependencies(test_dispute_${test} dispute_referee)
endforeach()

add_test(NAME dispute.command COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/dispute/command.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
set_tests_properties(dispute.command PROPERTIES LABELS dispute TIMEOUT 600)
