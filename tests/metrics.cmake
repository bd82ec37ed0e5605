# Tests of what a run reports about itself.
tycho_test(metrics_test
  SOURCES
    trainer/metrics/config_test.cpp trainer/metrics/curve_test.cpp trainer/metrics/device_peak_test.cpp trainer/metrics/file_reporter_test.cpp
    trainer/metrics/format_test.cpp trainer/metrics/live_view_test.cpp trainer/metrics/plain_reporter_test.cpp
    trainer/metrics/plot_test.cpp trainer/metrics/run_name_test.cpp trainer/metrics/shown_metrics_test.cpp trainer/metrics/tee_test.cpp trainer/metrics/terminal_reporter_test.cpp
    trainer/metrics/step_metrics_test.cpp trainer/metrics/throughput_test.cpp
  LIBS loggers)

# Loggers beside metrics.jsonl.
tycho_test(loggers_test
  SOURCES
    trainer/loggers/background_sink_test.cpp trainer/loggers/csv_sink_test.cpp trainer/loggers/event_file_test.cpp
    trainer/loggers/metric_names_test.cpp trainer/loggers/prometheus_sink_test.cpp trainer/loggers/tensorboard_sink_test.cpp
    trainer/loggers/wandb_file_test.cpp trainer/loggers/wandb_sink_test.cpp trainer/loggers/wire_message_test.cpp
  LIBS loggers)
target_compile_definitions(loggers_test PRIVATE TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
