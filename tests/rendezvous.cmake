# Where ranks stand and meet.
tycho_test(rendezvous_test LIBS rendezvous SOURCES
  trainer/rendezvous/free_port_test.cpp trainer/rendezvous/rank_cores_test.cpp trainer/rendezvous/rank_place_test.cpp trainer/rendezvous/slurm_lists_test.cpp)
