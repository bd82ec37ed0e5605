# Ranks: what they are told, what they tell each other, and whole runs of several.
tycho_test(parallel_test TORCH LIBS parallel SOURCES trainer/parallel/gather_texts_test.cpp trainer/parallel/gloo_test.cpp)
tycho_test(ranks_test SOURCES ranks/prompt_test.cpp ranks/ranks_test.cpp LIBS base)
target_compile_definitions(ranks_test PRIVATE TYCHO_PROGRAM="$<TARGET_FILE:tycho>" TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
add_dependencies(ranks_test tycho tycho_engine)
