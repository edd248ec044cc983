# Plans: a time of its own, a network in it, costs, clusters, traces, and strategies that are rehearsed.
trireme_test(plan world)
trireme_test(plan network)
trireme_test(plan transport SOURCES support/simulated.c)
trireme_test(plan costs)
trireme_test(plan devices)
trireme_test(plan machine)
trireme_test(plan cluster)
trireme_test(plan plan)
trireme_test(plan traces)
trireme_test(plan page SOURCES support/files/html.c)
trireme_test(plan rehearsal SOURCES support/ranks.c support/training.c support/families.c)

# The traces are what SimGrid replays; skipped where it is missing.
add_test(NAME plan.replay COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/plan/replay.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
set_tests_properties(plan.replay PROPERTIES LABELS "plan;program" SKIP_RETURN_CODE 77 TIMEOUT 600)

# What is measured and predicted over links that are slow, against real runs there; skipped where they cannot be had.
add_test(NAME plan.links COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/plan/links.sh $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
set_tests_properties(plan.links PROPERTIES LABELS "plan;program;long" SKIP_RETURN_CODE 77 TIMEOUT 1200)
