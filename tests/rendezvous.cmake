# Where ranks stand, how they meet, and how they watch over each other.
tycho_test(rendezvous_test LIBS rendezvous SOURCES
  trainer/rendezvous/meet/answered_requests_test.cpp trainer/rendezvous/meet/control_messages_test.cpp trainer/rendezvous/listener_test.cpp trainer/rendezvous/dial_test.cpp trainer/rendezvous/endpoint_test.cpp
  trainer/rendezvous/handed_listener_test.cpp trainer/rendezvous/handshake_test.cpp trainer/rendezvous/launcher_reports_test.cpp
  trainer/rendezvous/meet/meet_options_test.cpp trainer/rendezvous/meet/rendezvous_test.cpp trainer/rendezvous/meet/roster_test.cpp
  trainer/rendezvous/progress_test.cpp trainer/rendezvous/recent_collectives_test.cpp trainer/rendezvous/rank_cores_test.cpp trainer/rendezvous/rank_info_test.cpp
  trainer/rendezvous/slurm_lists_test.cpp trainer/rendezvous/job_token_test.cpp trainer/rendezvous/frames_test.cpp)
# Processes of their own, and many descriptors.
tycho_test(monitor_test LIBS rendezvous SOURCES trainer/rendezvous/meet/hostile_test.cpp trainer/rendezvous/meet/monitor_test.cpp)
