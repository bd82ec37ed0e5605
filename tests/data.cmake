# Tests of trainer/data, against what Hugging Face's tokenizers, NumPy and mosaicml-streaming gave.
tycho_test(data_test LIBS data SOURCES
  trainer/data/bpe_trainer_test.cpp trainer/data/byte_source_test.cpp trainer/data/chat_dataset_test.cpp trainer/data/chat_example_test.cpp
  trainer/data/chat_row_test.cpp trainer/data/chat_template_test.cpp trainer/data/convert_test.cpp
  trainer/data/dataset_damage_test.cpp trainer/data/document_reader_test.cpp trainer/data/input_files_test.cpp trainer/data/json_line_test.cpp
  trainer/data/documents_test.cpp trainer/data/example_packer_test.cpp
  trainer/data/loader_test.cpp trainer/data/mds_test.cpp trainer/data/mds_writer_test.cpp
  trainer/data/pretokenize_test.cpp trainer/data/sampler_test.cpp trainer/data/token_packer_test.cpp
  trainer/data/tokenizer_test.cpp)
target_compile_definitions(data_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
