trireme_test(comm thread SOURCES comm/ranks.c comm/scenarios.c comm/scenario_sums.c)
