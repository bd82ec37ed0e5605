# Tests of trainer/data, against what Hugging Face's tokenizers, NumPy and mosaicml-streaming gave.
tycho_test(data_test LIBS data SOURCES
  trainer/data/tokenizer/bpe_trainer_test.cpp trainer/data/text/byte_source_test.cpp trainer/data/chat/chat_dataset_test.cpp trainer/data/chat/chat_example_test.cpp
  trainer/data/chat/chat_row_test.cpp trainer/data/chat/chat_template_test.cpp trainer/data/convert/convert_test.cpp
  trainer/data/convert/dataset_damage_test.cpp trainer/data/text/document_reader_test.cpp trainer/data/text/input_files_test.cpp trainer/data/text/json_line_test.cpp
  trainer/data/documents_test.cpp trainer/data/chat/example_packer_test.cpp
  trainer/data/loader/loader_test.cpp trainer/data/mds/mds_reader_test.cpp trainer/data/mds/mds_writer_test.cpp
  trainer/data/text/pretokenize_test.cpp trainer/data/loader/sampler_test.cpp trainer/data/convert/token_packer_test.cpp
  trainer/data/tokenizer/tokenizer_test.cpp)
target_compile_definitions(data_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
