# Everything that reads what others wrote, as targets of a fuzzer (fuzz.h). The seeds and damaged copies of them are an ordinary
# test; with TRIREME_FUZZ, which needs clang, there is a program that looks for more.
set(targets fuzz/targets.c fuzz/targets_data.c fuzz/targets_memory.c fuzz/targets_run.c fuzz/targets_text.c)
trireme_test(fuzz corpus TIMEOUT 900 SOURCES ${targets})
target_link_libraries(test_fuzz_corpus PRIVATE trireme_commands)
if(NOT TRIREME_SANITIZE AND NOT TRIREME_FUZZ)
  add_test(NAME fuzz.undefined COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/undefined.sh ${PROJECT_SOURCE_DIR}
                                       ${PROJECT_BINARY_DIR}/undefined ${CMAKE_COMMAND})
  set_tests_properties(fuzz.undefined PROPERTIES LABELS "fuzz;program" TIMEOUT 3600 SKIP_RETURN_CODE 77 PROCESSORS 2)
endif()
if(TRIREME_FUZZ)
  add_executable(fuzz fuzz/libfuzzer.c ${targets})
  target_link_libraries(fuzz PRIVATE trireme_commands)
  target_include_directories(fuzz PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_options(fuzz PRIVATE -fsanitize=fuzzer)
endif()
