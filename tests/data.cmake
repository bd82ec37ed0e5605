# Tests of trainer/data, against what Hugging Face's tokenizers, NumPy and mosaicml-streaming gave.
tycho_test(data_test LIBS loader prepare SOURCES
  trainer/data/tokenizer/bpe_trainer_test.cpp trainer/data/sources/byte_source_test.cpp trainer/data/chat/batch_packer_test.cpp trainer/data/chat/packing_ratio_test.cpp trainer/data/chat/chat_dataset_test.cpp trainer/data/chat/chat_example_test.cpp
  trainer/data/chat/chat_row_test.cpp trainer/data/chat/chat_weights_test.cpp trainer/data/chat/chat_template_test.cpp trainer/data/prepare/convert_test.cpp trainer/data/prepare/killed_convert_test.cpp trainer/data/prepare/publication_test.cpp
  trainer/data/prepare/dataset_damage_test.cpp trainer/data/prepare/dataset_stats_test.cpp trainer/data/prepare/text_stats_test.cpp trainer/data/sources/csv_reader_test.cpp trainer/data/sources/document_reader_test.cpp trainer/data/splits/data_files_test.cpp trainer/data/splits/folder_splits_test.cpp trainer/data/splits/path_pattern_test.cpp trainer/data/sources/input_files_test.cpp trainer/data/sources/json_line_test.cpp
  trainer/data/chat/example_packer_test.cpp trainer/data/chat/mds_rows_test.cpp trainer/data/templates/template_test.cpp
  trainer/data/loader/data_order_test.cpp trainer/data/loader/loader_test.cpp trainer/data/loader/compressed_streams_test.cpp trainer/data/loader/packed_chat_reader_test.cpp trainer/data/sources/arrow/arrow_records_test.cpp trainer/data/sources/parquet/packed_integers_test.cpp trainer/data/sources/parquet/parquet_records_test.cpp
  trainer/data/sources/parquet/parquet_page_test.cpp trainer/data/sources/parquet/parquet_rows_test.cpp trainer/data/sources/parquet/thrift_test.cpp trainer/data/chat/row_table_test.cpp trainer/data/chat/chat_blocks_test.cpp
  trainer/data/tokenizer/patterns/piece_scanner_test.cpp trainer/data/loader/mix_test.cpp trainer/data/rows/token_array_test.cpp trainer/recipe/batch_width_test.cpp trainer/data/order/length_buckets_test.cpp trainer/data/order/numpy_rng_test.cpp
  trainer/data/order/sample_order_test.cpp trainer/data/order/shuffle_test.cpp trainer/data/order/spread_buckets_test.cpp trainer/data/order/torch_permutation_test.cpp
  trainer/data/prepare/token_packer_test.cpp trainer/data/rows/skipped_rows_test.cpp trainer/data/tokenizer/patterns/split_regex_test.cpp
  trainer/data/loader/text_dataset_test.cpp trainer/data/token_files/token_file_test.cpp trainer/data/token_files/token_files_reader_test.cpp trainer/data/tokenizer/decode_stream_test.cpp trainer/data/tokenizer/sentencepiece_test.cpp trainer/data/tokenizer/tekken_test.cpp
  trainer/data/tokenizer/tokenizer_styles_test.cpp trainer/data/tokenizer/tokenizer_test.cpp trainer/data/tokenizer/tokenizer_use_test.cpp trainer/data/prepare/convert_chat_test.cpp trainer/data/loader/order_marks_test.cpp)
# Data sets of mosaicml-streaming's formats, against those that it wrote.
tycho_test(mds_test LIBS loader prepare SOURCES
  trainer/data/storage/compression_test.cpp trainer/data/storage/decompress_test.cpp trainer/data/storage/lz4_block_test.cpp trainer/data/mds/compressed_shard_test.cpp trainer/data/mds/line_format_test.cpp
  trainer/data/mds/mds_index_test.cpp trainer/data/mds/mds_reader_test.cpp trainer/data/mds/recut_test.cpp trainer/data/mds/merge_index_test.cpp trainer/data/mds/mds_value_test.cpp trainer/data/mds/mds_writer_test.cpp trainer/data/mds/shard_hash_test.cpp trainer/data/mds/shard_memory_test.cpp trainer/data/mds/token_dataset_test.cpp)
target_compile_definitions(mds_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
target_compile_definitions(data_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(remote_test LIBS loader prepare SOURCES
  trainer/identities/aws_signature_test.cpp trainer/data/mds/cached_file_test.cpp trainer/data/storage/download_test.cpp trainer/data/storage/http_server.cpp
  trainer/data/storage/compressed_cache_test.cpp trainer/recipe/remote_uri_test.cpp trainer/data/mds/shard_cache_test.cpp
  trainer/identities/azure_identity_test.cpp trainer/identities/aws_identity_test.cpp
  trainer/identities/credential_process_test.cpp)
target_compile_definitions(remote_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
# Stores of objects: one set of cases for all kinds, and each kind's own.
tycho_test(buckets_test LIBS buckets http storage SOURCES
  trainer/buckets/folder_bucket_test.cpp trainer/buckets/s3_bucket_test.cpp trainer/buckets/bucket_peer_test.cpp trainer/buckets/s3_server.cpp
  trainer/buckets/store_server.cpp trainer/data/storage/http_server.cpp)
tycho_test(azure_test LIBS buckets http storage SOURCES
  trainer/buckets/azure_bucket_test.cpp trainer/buckets/azure_server.cpp trainer/buckets/store_server.cpp trainer/data/storage/http_server.cpp)
# The hub by name, against a stand-in and what huggingface_hub asks and writes.
tycho_test(hub_test LIBS storage SOURCES trainer/recipe/hub_name_test.cpp trainer/hub/hub_files_test.cpp trainer/hub/hub_golden_test.cpp trainer/hub/hub_push_test.cpp
  trainer/hub/hub_uploads.cpp trainer/hub/hub_server.cpp trainer/data/storage/http_server.cpp)
target_compile_definitions(hub_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
# Data sets of the hub, converted from the stand-in.
tycho_test(hub_data_test LIBS loader prepare SOURCES trainer/data/sources/hub_inputs_test.cpp trainer/data/sources/hub_rows_test.cpp trainer/hub/hub_server.cpp trainer/data/storage/http_server.cpp)
target_compile_definitions(hub_data_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
# For scripts: the web server of remote_test as a program.
add_executable(serve_folder trainer/data/storage/serve_folder.cpp trainer/data/storage/http_server.cpp)
target_link_libraries(serve_folder PRIVATE tycho_storage)
add_executable(serve_hub trainer/hub/serve_hub.cpp trainer/hub/hub_server.cpp trainer/data/storage/http_server.cpp)
target_link_libraries(serve_hub PRIVATE tycho_storage)
add_executable(serve_store trainer/buckets/serve_store.cpp trainer/buckets/s3_server.cpp trainer/buckets/azure_server.cpp trainer/buckets/store_server.cpp
  trainer/data/storage/http_server.cpp)
target_link_libraries(serve_store PRIVATE tycho_buckets tycho_storage PkgConfig::LIBCRYPTO)
tycho_script_test(remote_s3 SCRIPT host/remote_s3.sh)
tycho_script_test(buckets_peer SCRIPT host/buckets_peer.sh)
tycho_script_test(azure_peer SCRIPT host/azure_peer.sh)
tycho_script_test(streaming_peer SCRIPT host/streaming_peer.sh)
tycho_script_test(datasets_peer SCRIPT host/datasets_peer.sh)
tycho_script_test(hub_peer SCRIPT host/hub_peer.sh TIMEOUT 600)
