# Tests that run jobs on ranks that are threads.
function(trireme_ranks_test name)
  trireme_test(strategy ${name} SOURCES support/ranks.c support/training.c support/families.c ${ARGN})
endfunction()

# What every strategy must do.
set(conformance strategy/conformance.c strategy/conformance_data.c strategy/conformance_faults.c
    strategy/conformance_replay.c strategy/conformance_runs.c strategy/conformance_suite.c)
trireme_ranks_test(conformance ${conformance} TIMEOUT 900)
trireme_ranks_test(conformance_processes ${conformance} TIMEOUT 900 LABELS slow)
trireme_ranks_test(conformance_refuses ${conformance})

trireme_test(strategy alone SOURCES strategy/values.c support/training.c support/families.c support/shadow.c
             support/shadow_table.c)
trireme_ranks_test(evaluation)
trireme_ranks_test(holder support/shadow.c)
trireme_ranks_test(local_sgd)
trireme_ranks_test(matrix)
trireme_ranks_test(parameter_server)
trireme_test(strategy parameter_server_schedule)
trireme_ranks_test(server_memory)
trireme_test(strategy pieces SOURCES support/training.c support/families.c)
trireme_ranks_test(pipeline)
trireme_ranks_test(pipeline_memory)
trireme_ranks_test(ranks)
trireme_ranks_test(requests)
trireme_test(strategy rounds SOURCES support/training.c support/families.c)
trireme_test(strategy scale SOURCES support/training.c support/families.c)
trireme_ranks_test(shared_evaluation)
trireme_ranks_test(shadow strategy/values.c support/shadow.c support/shadow_table.c)
trireme_ranks_test(shrink strategy/shrink.c)
trireme_ranks_test(shrink_apart strategy/shrink.c)
trireme_ranks_test(shares)
trireme_ranks_test(statistics)
trireme_opencl_test(strategy opencl SOURCES support/ranks.c support/training.c support/families.c)
trireme_ranks_test(tokens)

# The real program as several processes: a selection, and all of it.
set(matrix sh ${CMAKE_CURRENT_SOURCE_DIR}/strategy/matrix.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
add_test(NAME strategy.processes COMMAND ${matrix})
add_test(NAME strategy.all_processes COMMAND ${matrix} long)
set_tests_properties(strategy.processes PROPERTIES LABELS "strategy;program" TIMEOUT 900)
set_tests_properties(strategy.all_processes PROPERTIES LABELS "strategy;long" TIMEOUT 1800)
set_tests_properties(strategy.processes strategy.all_processes PROPERTIES RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
