# Tests of what a run reports about itself.
tycho_test(metrics_test
  SOURCES
    trainer/metrics/curve_test.cpp trainer/metrics/device_peak_test.cpp trainer/metrics/file_reporter_test.cpp
    trainer/metrics/format_test.cpp trainer/metrics/live_view_test.cpp trainer/metrics/plain_reporter_test.cpp
    trainer/metrics/plot_test.cpp trainer/metrics/shown_metrics_test.cpp trainer/metrics/tee_test.cpp trainer/metrics/terminal_reporter_test.cpp
    trainer/metrics/step_metrics_test.cpp trainer/metrics/throughput_test.cpp
  LIBS metrics)
