// Text files as documents, and large ones cut into chunks that can be tokenised alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// The files that `inputs` name: files as they are, folders searched for names that end in one of
/// `extensions` and sorted by path. Throws Error (kUnusable) for an input that is not there and for a folder
/// without such files.
std::vector<std::string> list_documents(const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& extensions);

/// Bytes [begin, end) of one document.
struct TextChunk {
  int64_t document = 0;
  int64_t begin = 0, end = 0;
  bool first = true, last = true;  // of its document
};

/// Every document in chunks, in order; an empty document is one empty chunk. With `may_cut`, documents much
/// larger than chunk_bytes are cut where find_safe_cut allows it, and are whole otherwise.
std::vector<TextChunk> plan_chunks(const std::vector<std::string>& paths, bool may_cut, int64_t chunk_bytes);

std::string read_chunk(const std::vector<std::string>& paths, const TextChunk& chunk);

}  // namespace tycho
