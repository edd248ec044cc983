# Tests of the command run the built program.
function(trireme_cli_test name)
  trireme_test(cli ${name} SOURCES cli/session.c ${ARGN})
  target_compile_definitions(test_cli_${name} PRIVATE TRIREME_PROGRAM="$<TARGET_FILE:trireme>")
  add_dependencies(test_cli_${name} trireme)
endfunction()

trireme_cli_test(usage)
trireme_cli_test(train)
trireme_cli_test(interrupt)
trireme_cli_test(terminal)
trireme_cli_test(tools)
trireme_test(cli progress SOURCES ../cli/progress.c)
target_include_directories(test_cli_progress PRIVATE ${PROJECT_SOURCE_DIR}/cli)
