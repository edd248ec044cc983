# Jobs of several processes to which things happen from outside. They are about time limits, and run alone.
function(trireme_living_test name)
  trireme_test(living ${name} TIMEOUT 600 SOURCES living/job.c cli/session.c)
  add_dependencies(test_living_${name} trireme)
  set_tests_properties(living.${name} PROPERTIES RUN_SERIAL TRUE)
endfunction()

trireme_living_test(kills)
trireme_living_test(launcher)
trireme_living_test(local)
trireme_living_test(losses)
trireme_living_test(memory)
trireme_living_test(mpirun)
trireme_living_test(servers)
# A smaller set of the same under MPI.
foreach(name kills launcher losses servers)
  add_test(NAME living.${name}_mpi COMMAND test_living_${name} --mpi)
  set_tests_properties(living.${name}_mpi PROPERTIES LABELS living TIMEOUT 600 RUN_SERIAL TRUE)
endforeach()
add_test(NAME living.many_kills COMMAND test_living_kills --long)
add_test(NAME living.many_losses COMMAND test_living_losses --long)
set_tests_properties(living.many_kills living.many_losses PROPERTIES LABELS "living;long" TIMEOUT 1800
                     RUN_SERIAL TRUE)

# Two machines: name spaces of networks, processes and host names.
set(machines sh ${CMAKE_CURRENT_SOURCE_DIR}/living/machines.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
add_test(NAME living.machines COMMAND ${machines})
add_test(NAME living.outage COMMAND ${machines} outage)
add_test(NAME living.slow_link COMMAND ${machines} slow)
add_test(NAME living.machines_losses COMMAND ${machines} losses)
set_tests_properties(living.machines PROPERTIES LABELS living)
set_tests_properties(living.outage living.slow_link living.machines_losses PROPERTIES LABELS "living;long")
set_tests_properties(living.machines living.outage living.slow_link living.machines_losses
                     PROPERTIES TIMEOUT 900 RUN_SERIAL TRUE SKIP_RETURN_CODE 77)

# Three nodes under SLURM.
add_test(NAME living.slurm COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/living/slurm.sh $<TARGET_FILE:trireme>
         ${PROJECT_SOURCE_DIR})
set_tests_properties(living.slurm PROPERTIES LABELS "living;long" TIMEOUT 1200 RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
