// A file of tokens that another system wrote, and the position of its tokens.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/recipe/data.h"

namespace tycho {

/// Tokens one after the other, little endian.
struct TokenFile {
  std::string path;
  TokenFormat format = TokenFormat::kAuto;  // never kAuto after the file is read
  std::string_view dtype;                   // a name of mds_format.h: "uint16", "int32" ...
  int64_t token_bytes = 0;
  int64_t begin = 0;  // byte of the first token
  int64_t num_tokens = 0;
};

/// Finds the files of `config.path`: that file, or all files in the folder and below whose names end in
/// .bin, .ds or .npy, sorted by path. Headers, indexes and sizes are compared with each other. Throws Error
/// (kUnusable) naming the file and what is wrong with it.
///   megatron: NAME.bin with NAME.idx, as Megatron-LM's and fairseq's MMapIndexedDataset write them
///             (megatron/core/datasets/indexed_dataset.py; fairseq's has no list of documents)
///   nanoset:  NAME.ds of datatrove's tokenizers, with NAME.ds.metadata or token_bytes
///   llmc:     NAME.bin with llm.c's header of 1024 bytes (dev/data/data_common.py), GPT-2's or Llama 3's
///   numpy:    NAME.npy of one dimension, as numpy.save writes it
///   raw:      nothing but tokens of config.dtype: nanoGPT's train.bin, OLMo's .npy
std::vector<TokenFile> find_token_files(const TokenFilesConfig& config);

}  // namespace tycho
