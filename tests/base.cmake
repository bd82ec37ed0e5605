# The foundations: values with units, JSON, files, hashes, random numbers, config readers.
tycho_test(base_test LIBS base SOURCES
  trainer/base/absent_test.cpp trainer/base/as_error_test.cpp trainer/base/text/base64_test.cpp trainer/base/bytes_test.cpp trainer/base/duration_test.cpp trainer/base/environment_test.cpp trainer/base/fields_test.cpp
  trainer/base/file_ops_test.cpp trainer/base/defined_kind_test.cpp trainer/base/hash_test.cpp trainer/base/hmac_test.cpp trainer/base/host_name_test.cpp trainer/base/in_parallel_test.cpp trainer/base/json_reader_test.cpp
  trainer/base/json_test.cpp trainer/base/cached_text_test.cpp trainer/base/json_writer_test.cpp trainer/base/nearest_test.cpp trainer/base/page_memory_test.cpp
  trainer/base/regex_test.cpp trainer/base/random/philox_test.cpp trainer/base/random/random_bytes_test.cpp trainer/base/schema_test.cpp trainer/base/secrets_test.cpp trainer/base/text/json_number_test.cpp trainer/base/text/shell_words_test.cpp trainer/base/text/without_place_test.cpp
  trainer/base/folder_draft_test.cpp trainer/base/regular_file_test.cpp trainer/base/processor_name_test.cpp)
