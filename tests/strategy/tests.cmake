# Tests that run jobs on ranks that are threads.
function(trireme_ranks_test name)
  trireme_test(strategy ${name} SOURCES support/ranks.c support/training.c support/families.c ${ARGN})
endfunction()

trireme_ranks_test(evaluation)
trireme_ranks_test(holder)
trireme_ranks_test(local_sgd)
trireme_ranks_test(matrix)
trireme_ranks_test(parameter_server)
trireme_test(strategy parameter_server_schedule)
trireme_ranks_test(pipeline)
trireme_ranks_test(pipeline_memory)
trireme_ranks_test(ranks)
trireme_ranks_test(statistics)

# The real program over MPI: a selection, and all of it.
set(matrix sh ${CMAKE_CURRENT_SOURCE_DIR}/strategy/matrix.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
add_test(NAME strategy.processes COMMAND ${matrix})
add_test(NAME strategy.all_processes COMMAND ${matrix} long)
set_tests_properties(strategy.processes PROPERTIES LABELS strategy TIMEOUT 600)
set_tests_properties(strategy.all_processes PROPERTIES LABELS "strategy;long" TIMEOUT 1800)
set_tests_properties(strategy.processes strategy.all_processes PROPERTIES RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
