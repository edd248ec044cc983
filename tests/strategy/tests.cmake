# Tests that run jobs on ranks that are threads.
function(trireme_ranks_test name)
  trireme_test(strategy ${name} SOURCES support/ranks.c support/training.c support/families.c ${ARGN})
endfunction()

trireme_ranks_test(local_sgd)
trireme_ranks_test(matrix)
trireme_ranks_test(parameter_server)
trireme_test(strategy parameter_server_schedule)
trireme_ranks_test(pipeline)
trireme_ranks_test(ranks)
trireme_ranks_test(statistics)
