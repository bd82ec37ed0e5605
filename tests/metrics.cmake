# Tests of what a run reports about itself.
tycho_test(metrics_test
  SOURCES
    trainer/recipe/log_test.cpp trainer/metrics/control_filter_test.cpp trainer/metrics/curve_test.cpp trainer/metrics/device_peak_test.cpp trainer/metrics/file_reporter_test.cpp
    trainer/metrics/format_test.cpp trainer/metrics/gpu_use_test.cpp trainer/metrics/line_tail_test.cpp trainer/metrics/live_view_test.cpp trainer/metrics/machine_use_test.cpp trainer/metrics/plain_reporter_test.cpp
    trainer/metrics/plot_test.cpp trainer/recipe/run_name_test.cpp trainer/metrics/screen_writer_test.cpp trainer/metrics/shown_metrics_test.cpp trainer/metrics/tee_test.cpp trainer/metrics/terminal_reporter_test.cpp
    trainer/metrics/step_metrics_test.cpp trainer/metrics/throughput_test.cpp
  LIBS loggers)
add_library(fake_nvml SHARED trainer/metrics/fake_nvml.cpp)
set_target_properties(fake_nvml PROPERTIES CXX_VISIBILITY_PRESET default)
add_dependencies(metrics_test fake_nvml)
target_compile_definitions(metrics_test PRIVATE TYCHO_FAKE_NVML="$<TARGET_FILE:fake_nvml>")

# Loggers beside metrics.jsonl.
tycho_test(loggers_test
  SOURCES
    trainer/loggers/background_sink_test.cpp trainer/loggers/csv_sink_test.cpp trainer/loggers/event_file_test.cpp
    trainer/loggers/metric_names_test.cpp trainer/loggers/metrics_endpoint_test.cpp trainer/loggers/mlflow_folder_test.cpp
    trainer/loggers/mlflow_server_test.cpp trainer/loggers/mlflow_store_test.cpp trainer/data/storage/http_server.cpp
    trainer/loggers/notify_test.cpp trainer/loggers/prometheus_sink_test.cpp trainer/loggers/recorded_numbers_test.cpp trainer/loggers/tensorboard_sink_test.cpp
    trainer/loggers/wandb_file_test.cpp trainer/loggers/wandb_online_test.cpp trainer/loggers/wandb_machine_test.cpp trainer/loggers/wandb_server_test.cpp trainer/loggers/wandb_sink_test.cpp trainer/loggers/wandb_upload_test.cpp trainer/loggers/wire_message_test.cpp
  LIBS loggers http)
target_compile_definitions(loggers_test PRIVATE TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# Requests to trackers, MLflow itself, and the uploader of W&B.
tycho_test(http_test SOURCES trainer/http/answer_line_test.cpp trainer/http/certificates_test.cpp trainer/http/http_exchange_test.cpp trainer/data/storage/http_server.cpp LIBS http)
tycho_script_test(mlflow_peer SCRIPT host/mlflow_peer.sh TIMEOUT 900)
tycho_script_test(wandb_peer SCRIPT host/wandb_peer.sh TIMEOUT 900)
