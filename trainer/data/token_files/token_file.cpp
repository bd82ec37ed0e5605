// Recognises each format by its name and first bytes, never by its tokens.
#include "trainer/data/token_files/token_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/token_files/numpy_header.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLlmcHeaderBytes = 1024;
constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);

int64_t size_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path, error.message());
  return static_cast<int64_t>(bytes);
}

template <class T>
T read_at(const std::string& path, int64_t offset) {
  T value;
  read_exactly(path, offset, &value, sizeof value);
  return value;
}

void set_dtype(TokenFile& file, std::string_view dtype) {
  file.dtype = dtype;
  file.token_bytes = mds_dtype_bytes(dtype);
}

/// Sets num_tokens: the tokens are all bytes from `begin` to the end of the file.
void count_tokens(TokenFile& file) {
  const int64_t bytes = size_of_file(file.path) - file.begin;
  if (bytes < 0 || bytes % file.token_bytes != 0)
    fail(ExitCode::kUnusable,
         "[data] {} has {} bytes of tokens, not a multiple of the {} bytes of a token; is it complete?",
         file.path, bytes, file.token_bytes);
  file.num_tokens = bytes / file.token_bytes;
}

// llm.c

bool is_llmc(const std::string& path) {
  if (size_of_file(path) < kLlmcHeaderBytes) return false;
  const auto magic = read_at<int32_t>(path, 0);
  return magic == 20240520 || magic == 20240801;
}

TokenFile read_llmc(const std::string& path) {
  TokenFile file{.path = path, .format = TokenFormat::kLlmc, .begin = kLlmcHeaderBytes};
  if (!is_llmc(path))
    fail(ExitCode::kUnusable, "[data] {} does not begin with the header of llm.c's token files", path);
  std::array<int32_t, 3> header{};  // magic, version, tokens
  read_exactly(path, 0, header.data(), sizeof header);
  const bool is_gpt2 = header[0] == 20240520;
  if (header[1] != (is_gpt2 ? 1 : 7))
    fail(ExitCode::kUnusable, "[data] {} has version {} of llm.c's format; version {} is read", path,
         header[1], is_gpt2 ? 1 : 7);
  set_dtype(file, is_gpt2 ? "uint16" : "uint32");
  count_tokens(file);
  if (header[2] != file.num_tokens)
    fail(ExitCode::kUnusable, "[data] {} holds {} tokens, its header says {}; copy it again", path,
         file.num_tokens, header[2]);
  return file;
}

// Megatron

/// Returns the name of a Megatron type code. Codes 6 and 7 are floating point types.
std::string_view megatron_dtype(uint8_t code, const std::string& idx) {
  constexpr std::array<std::string_view, 11> kNames = {"", "uint8", "int8",   "int16",  "int32", "int64",
                                                       "", "",      "uint16", "uint32", "uint64"};
  if (code >= kNames.size() || kNames[code].empty())
    fail(ExitCode::kUnusable, "[data] {} has tokens of type {}, which is not an integer type", idx, code);
  return kNames[code];
}

/// Returns the sum of the lengths of all sequences. Checks that they follow one another in the .bin.
int64_t check_sequences(const std::string& idx, int64_t at, int64_t count, int64_t token_bytes) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<int32_t> lengths(static_cast<size_t>(kPiece));
  std::vector<int64_t> begins(lengths.size());
  int64_t sum = 0;
  for (int64_t done = 0; done < count; done += kPiece) {
    const auto n = static_cast<size_t>(std::min(kPiece, count - done));
    read_exactly(idx, at + 4 * done, lengths.data(), n * sizeof(int32_t));
    read_exactly(idx, at + 4 * count + 8 * done, begins.data(), n * sizeof(int64_t));
    for (size_t i = 0; i < n; ++i) {
      if (lengths[i] < 0 || begins[i] != sum * token_bytes)
        fail(
            ExitCode::kUnusable,
            "[data] {}: sequence {} has {} tokens from byte {}, but the ones before it end at byte {}; is it "
            "the index of this file?",
            idx, done + static_cast<int64_t>(i), lengths[i], begins[i], sum * token_bytes);
      sum += lengths[i];
    }
  }
  return sum;
}

std::string index_path(const std::string& path) { return fs::path(path).replace_extension(".idx").string(); }

TokenFile read_megatron(const std::string& path) {
  constexpr int64_t kOldHeader = 26, kHeader = 34;
  const std::string idx = index_path(path);
  TokenFile file{.path = path, .format = TokenFormat::kMegatron};
  const int64_t bytes = size_of_file(idx);
  std::array<char, 9> magic{};
  if (bytes >= kOldHeader) read_exactly(idx, 0, magic.data(), magic.size());
  if (std::string_view(magic.data(), magic.size()) != kMegatronMagic)
    fail(ExitCode::kUnusable, "[data] {} is not an index of Megatron-LM (MMapIndexedDataset)", idx);
  if (const auto version = read_at<uint64_t>(idx, 9); version != 1)
    fail(ExitCode::kUnusable, "[data] {} has version {}; version 1 is read", idx, version);
  set_dtype(file, megatron_dtype(read_at<uint8_t>(idx, 17), idx));
  const auto count = read_at<int64_t>(idx, 18);
  const int64_t most = bytes / 12;
  int64_t header = kOldHeader;
  if (count < 0 || count > most || bytes != kOldHeader + 12 * count) {
    // A list of documents follows, and for data of several kinds a byte for each sequence.
    header = kHeader;
    const int64_t documents = bytes >= kHeader ? read_at<int64_t>(idx, kOldHeader) : -1;
    const int64_t rest = count < 0 || count > most || documents < 0 || documents > most
                             ? -1
                             : bytes - kHeader - 12 * count - 8 * documents;
    if (rest != 0 && (rest != count || rest < 0))
      fail(ExitCode::kUnusable,
           "[data] {} has {} bytes, which its {} sequences and {} documents do not fill; copy it again", idx,
           bytes, count, documents);
  }
  const int64_t tokens = check_sequences(idx, header, count, file.token_bytes);
  count_tokens(file);
  if (tokens != file.num_tokens)
    fail(ExitCode::kUnusable, "[data] {} holds {} tokens, {} says {}; copy both again", path, file.num_tokens,
         idx, tokens);
  return file;
}

// Nanoset

/// Reads the metadata of a Nanoset: "NAME|2", then the number of tokens.
TokenFile read_nanoset(const std::string& path, std::optional<int64_t> token_bytes) {
  TokenFile file{.path = path, .format = TokenFormat::kNanoset};
  const std::string metadata = path + ".metadata";
  std::error_code error;
  std::optional<int64_t> said_tokens;
  if (fs::exists(metadata, error)) {
    std::istringstream lines(read_file_up_to(metadata, kMostTypedBytes));
    std::string first, second;
    std::getline(lines, first);
    std::getline(lines, second);
    const auto number = [&](std::string_view text) {
      int64_t value = -1;
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (problem != std::errc() || end != text.data() + text.size())
        fail(ExitCode::kUnusable,
             "[data] {} must begin with lines like \"gpt2|2\" and \"1000\": a tokenizer with the bytes of a "
             "token, and the number of tokens",
             metadata);
      return value;
    };
    const size_t bar = first.rfind('|');
    const int64_t said_bytes =
        number(bar == std::string::npos ? "" : std::string_view(first).substr(bar + 1));
    if (token_bytes && token_bytes != said_bytes)
      fail(ExitCode::kUnusable, "[data] {} says {} bytes per token, token_bytes is {}; leave token_bytes out",
           metadata, said_bytes, *token_bytes);
    token_bytes = said_bytes;
    if (!second.empty()) said_tokens = number(second);
  }
  if (!token_bytes)
    fail(ExitCode::kUnusable,
         "[data] {} does not exist: say whether tokens have 2 or 4 bytes, token_bytes = 2 for a vocabulary "
         "of at "
         "most 65536",
         metadata);
  if (token_bytes != 2 && token_bytes != 4)
    fail(ExitCode::kUnusable, "[data] {} says {} bytes per token; expected 2 or 4", metadata, *token_bytes);
  set_dtype(file, token_bytes == 2 ? "uint16" : "uint32");
  count_tokens(file);
  if (said_tokens && said_tokens != file.num_tokens)
    fail(ExitCode::kUnusable, "[data] {} holds {} tokens, {} says {}; copy both again", path, file.num_tokens,
         metadata, *said_tokens);
  return file;
}

// NumPy

TokenFile read_numpy(const std::string& path) {
  const NumpyHeader header = read_numpy_header(path);
  TokenFile file{.path = path, .format = TokenFormat::kNumpy, .begin = header.bytes};
  set_dtype(file, header.dtype);
  count_tokens(file);
  if (header.num_elements != file.num_tokens)
    fail(ExitCode::kUnusable, "[data] {} holds {} tokens, its header says {}; copy it again", path,
         file.num_tokens, header.num_elements);
  return file;
}

// Bare tokens

/// Refuses tokens of 32 bits that are to be read as 16 bits: every second one would be 0 or close to it.
void check_width(const TokenFile& file) {
  constexpr size_t kFewest = 16, kMost = 1024;
  constexpr uint16_t kMostHigh = 7;  // vocabularies of at most 524288
  std::vector<std::array<uint16_t, 2>> pairs(static_cast<size_t>(file.num_tokens) / 2);
  if (pairs.size() < kFewest) return;
  pairs.resize(std::min(pairs.size(), kMost));
  read_exactly(file.path, 0, pairs.data(), pairs.size() * sizeof pairs[0]);
  const auto small_at = [&](size_t place) {
    return std::all_of(pairs.begin(), pairs.end(),
                       [&](const auto& pair) { return pair[place] <= kMostHigh; });
  };
  if (small_at(1) && !small_at(0))
    fail(ExitCode::kUnusable,
         "[data] {} expected tokens of 16 bits, got 32 bits by its first {} tokens: every second half is "
         "close to 0; write dtype = \"uint32\"",
         file.path, pairs.size());
}

TokenFile read_raw(const std::string& path, TokenDtype dtype) {
  TokenFile file{.path = path, .format = TokenFormat::kRaw};
  if (has_numpy_header(path) || is_llmc(path))
    fail(ExitCode::kUnusable,
         "[data] {} expected nothing but tokens, got a header of {}; leave out format and dtype, which the "
         "header says",
         path, is_llmc(path) ? "llm.c" : "NumPy");
  set_dtype(file, enum_name(dtype));
  count_tokens(file);
  if (dtype == TokenDtype::kUint16) check_width(file);
  return file;
}

TokenFormat format_of(const std::string& path, TokenFormat wanted) {
  if (wanted != TokenFormat::kAuto) return wanted;
  if (path.ends_with(".ds")) return TokenFormat::kNanoset;
  std::error_code error;
  if (fs::exists(index_path(path), error)) return TokenFormat::kMegatron;
  if (is_llmc(path)) return TokenFormat::kLlmc;
  if (has_numpy_header(path)) return TokenFormat::kNumpy;
  fail(ExitCode::kUnusable,
       "[data] {} is not known: it has no {} beside it (Megatron-LM), no header of llm.c or NumPy, and does "
       "not end in .ds (Nanoset); if it is nothing but tokens, as nanoGPT's train.bin and OLMo's .npy are, "
       "write format = \"raw\" and dtype = \"uint16\" or \"uint32\"",
       path, fs::path(index_path(path)).filename().string());
}

TokenFile read_token_file(const std::string& path, const TokenFilesConfig& config) {
  switch (format_of(path, config.format)) {
    case TokenFormat::kMegatron: return read_megatron(path);
    case TokenFormat::kNanoset: return read_nanoset(path, config.token_bytes);
    case TokenFormat::kNumpy: return read_numpy(path);
    case TokenFormat::kRaw: return read_raw(path, config.dtype.value_or(TokenDtype::kUint16));
    default: return read_llmc(path);
  }
}

}  // namespace

std::vector<TokenFile> find_token_files(const TokenFilesConfig& config) {
  std::vector<std::string> paths;
  std::error_code error;
  if (fs::is_directory(config.path, error)) {
    for (fs::recursive_directory_iterator it(config.path, error), end; !error && it != end;
         it.increment(error)) {
      const std::string ending = it->path().extension().string();
      const bool is_tokens = ending == ".bin" || ending == ".ds" || ending == ".npy";
      if (is_tokens && it->is_regular_file(error)) paths.push_back(it->path().string());
    }
  } else {
    paths = {config.path};
  }
  if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", config.path, error.message());
  if (paths.empty())
    fail(ExitCode::kUnusable, "[data] {} has no file that ends in .bin, .ds or .npy", config.path);
  std::sort(paths.begin(), paths.end());
  std::vector<TokenFile> files;
  for (const std::string& path : paths) files.push_back(read_token_file(path, config));
  return files;
}

}  // namespace tycho
