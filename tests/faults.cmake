# Faults in the middle of whole runs.
add_library(fault_shim MODULE faults/fault_shim.cpp)
target_link_libraries(fault_shim PRIVATE tycho_flags ${CMAKE_DL_LIBS})
tycho_compile(fault_shim COLD)
add_executable(fault_runs faults/fault_runs.cpp faults/trial.cpp)
target_link_libraries(fault_runs PRIVATE tycho_base tycho_flags)
tycho_compile(fault_runs COLD)
add_dependencies(fault_runs tycho tycho_engine fault_shim)
tycho_test(phases_test SOURCES ranks/phases_test.cpp LIBS lock)
target_compile_definitions(phases_test PRIVATE TYCHO_PROGRAM="$<TARGET_FILE:tycho>" TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  TYCHO_FAULT_SHIM="$<TARGET_FILE:fault_shim>")
add_dependencies(phases_test tycho tycho_engine fault_shim)
if(NOT TYCHO_SANITIZE)  # whose runtime must be loaded before the shim
  tycho_test(fetch_test SOURCES host/verbs/fetch_test.cpp trainer/hub/hub_server.cpp trainer/data/storage/http_server.cpp LIBS storage)
  target_compile_definitions(fetch_test PRIVATE TYCHO_PROGRAM="$<TARGET_FILE:tycho>" TYCHO_FAULT_SHIM="$<TARGET_FILE:fault_shim>")
  add_dependencies(fetch_test tycho fault_shim)
  add_test(NAME fault_runs
    COMMAND fault_runs --tycho $<TARGET_FILE:tycho> --shim $<TARGET_FILE:fault_shim> --trials 100)
  # Half a minute each, in which ranks wait for one that does not answer.
  add_test(NAME fault_runs_stops
    COMMAND fault_runs --tycho $<TARGET_FILE:tycho> --shim $<TARGET_FILE:fault_shim> --stops --trials 24 --jobs 8)
  set_tests_properties(fetch_test PROPERTIES TIMEOUT 300)
  set_tests_properties(fault_runs fault_runs_stops PROPERTIES TIMEOUT 1800 LABELS torch ENVIRONMENT "${environment}")
endif()
