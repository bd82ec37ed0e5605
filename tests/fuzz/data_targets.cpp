// Fuzz targets: data sets, tokenizers, and the configs of other libraries' models.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "tests/fuzz/targets.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_row.h"
#include "trainer/data/mds/line_format.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_value.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/sources/arrow/arrow_records.h"
#include "trainer/data/sources/csv_reader.h"
#include "trainer/data/sources/json_line.h"
#include "trainer/data/sources/parquet/parquet_records.h"
#include "trainer/data/sources/parquet/parquet_rows.h"
#include "trainer/data/storage/decompress.h"
#include "trainer/data/templates/template.h"
#include "trainer/data/token_files/token_file.h"
#include "trainer/data/token_files/token_files_reader.h"
#include "trainer/data/tokenizer/patterns/split_regex.h"
#include "trainer/data/tokenizer/sentencepiece.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

/// A file that is in memory alone.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("tycho-fuzz", MFD_CLOEXEC)) {
    must(descriptor_ >= 0 && ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == std::ssize(bytes),
         "no file in memory");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  int descriptor() const { return descriptor_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// A folder for files whose names matter; in memory where there is such a place, and gone with the process.
const std::string& temporary_folder() {
  struct Folder {
    std::string path;
    Folder() {
      const bool has_memory = ::access("/dev/shm", W_OK) == 0;
      path = (has_memory ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string()) +
             "/tycho-fuzz-XXXXXX";
      must(::mkdtemp(path.data()) != nullptr, "no temporary folder");
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

/// A file in that folder, instead of the one of the last input.
std::string put_file(const std::string& name, std::string_view bytes) {
  std::string path = temporary_folder() + "/" + name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  must(file >= 0 && ::write(file, bytes.data(), bytes.size()) == std::ssize(bytes), "no temporary file");
  ::close(file);
  return path;
}

/// The index of a data set whose shards are not there.
void mds_index(std::string_view bytes) {
  put_file("index.json", bytes);
  refused_or_taken([&] { MdsReader reader(read_mds_index(temporary_folder())); });
}

/// The first byte chooses the format, the second is the length of the file beside the tokens, which comes
/// first: Megatron-LM's .idx or a Nanoset's .metadata. Files of the other formats are all bytes after the
/// first.
void token_files(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const int kind = bytes[0] & 7;
  const size_t beside = std::min<size_t>(static_cast<unsigned char>(bytes[1]), bytes.size() - 2);
  const std::string_view first = bytes.substr(2, beside), tokens = bytes.substr(2 + beside);
  TokenFilesConfig config;
  if (kind == 0) {
    put_file("tokens.idx", first);
    config.path = put_file("tokens.bin", tokens);
  } else if (kind == 1) {
    put_file("tokens.ds.metadata", first);
    config.path = put_file("tokens.ds", tokens);
  } else if (kind == 4 || kind == 5) {
    config.format = TokenFormat::kRaw;
    config.dtype = kind == 4 ? TokenDtype::kUint16 : TokenDtype::kUint32;
    config.path = put_file("raw.bin", bytes.substr(1));
  } else {  // llm.c or NumPy, by the first bytes
    config.path = put_file("alone.bin", bytes.substr(1));
  }
  refused_or_taken([&] {
    const RowShape shape{.seq_len = 3, .vocab_size = 1 << 16, .tokenizer = ""};
    const auto reader = open_token_files(config, shape);
    must(reader->num_samples() == count_token_file_rows(config, shape.seq_len), "rows were counted twice");
    const auto last = static_cast<uint32_t>(reader->num_samples() - 1);
    reader->read_batch(std::array{last}, 1);
  });
}

class OneShard final : public ShardSource {
 public:
  OneShard(const MdsIndex& index, const MemoryFile& file) : index_(index), file_(file) {}
  int open(size_t) override { return ::dup(file_.descriptor()); }
  void verify(size_t shard, int descriptor) override { check_shard(index_.shards[shard], descriptor); }

 private:
  const MdsIndex& index_;
  const MemoryFile& file_;
};

constexpr std::array kEncodings = {"ndarray:int32", "str",         "bytes",      "int",
                                   "json",          "str_decimal", "ndarray",    "ndarray:uint8:2,3",
                                   "float32",       "pil",         "list[jpeg]", "str_float",
                                   "str_int",       "jpeg_array",  "jpeg",       "list[pil]",
                                   "uint64",        "float64"};

/// A shard of samples of three columns, as an index with the first byte's number of samples describes it.
void mds_shard(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const auto first = static_cast<size_t>(static_cast<unsigned char>(bytes[0]));
  const auto second = static_cast<size_t>(static_cast<unsigned char>(bytes[1]));
  const MemoryFile file(bytes.substr(2));
  MdsShard shard{.path = "fuzz.mds",
                 .samples = 1 + static_cast<int64_t>(first % 4),
                 .bytes = std::ssize(bytes) - 2,
                 .columns = {{"a", kEncodings[second % kEncodings.size()]}, {"b", "str"}, {"c", "int"}}};
  for (const MdsColumn& column : shard.columns) shard.column_sizes.push_back(mds_column_size(column));
  MdsReader reader({.dir = "fuzz",
                    .shards = {shard},
                    .offset_files = {},
                    .first_sample = {0, shard.samples},
                    .hashes = {}},
                   [&](const MdsIndex& index) { return std::make_unique<OneShard>(index, file); });
  for (int64_t sample = 0; sample < shard.samples; ++sample)
    refused_or_taken([&] {
      const std::vector<std::string_view>& values = reader.read(sample);
      for (size_t i = 0; i < values.size(); ++i)
        refused_or_taken([&] { show_mds_value(shard.columns[i].encoding, values[i], 8, "fuzz"); });
    });
}

/// The first byte chooses the format: a line of a shard of text.
void line_shard(std::string_view bytes) {
  if (bytes.empty()) return;
  const int kind = bytes[0] & 3;
  const LineFormat format{.is_json = kind == 0,
                          .separator = kind == 0   ? ""
                                       : kind == 1 ? ","
                                       : kind == 2 ? "\t"
                                                   : " | ",
                          .newline = kind == 3 ? "\r\n" : "\n"};
  const std::vector<MdsColumn> columns = {{"id", "str_int"}, {"score", "str_float"}, {"text", "str"}};
  refused_or_taken([&] {
    const std::vector<std::string> values = split_line(format, columns, bytes.substr(1), "fuzz");
    must(values.size() == columns.size(), "a line has another number of values than columns");
    for (size_t i = 0; i < values.size(); ++i) {
      try {
        check_mds_value(columns[i].encoding, values[i], "fuzz");
      } catch (const Error&) {
        must(false, "a value that was taken does not fit its encoding");
      }
    }
  });
}

/// A Parquet file, of a thousand rows at most: its column "text", and all of its columns as JSON.
void parquet(std::string_view bytes) {
  const MemoryFile file(bytes);
  refused_or_taken([&] {
    const auto open = std::make_shared<const ParquetFile>(file.path());
    std::vector<std::string> columns;
    for (const ParquetNode& node : open->footer().schema.children) columns.push_back(node.name);
    ParquetRows rows(open, columns);
    std::vector<Json> values;
    for (int row = 0; row < 1000 && rows.next(values); ++row) continue;
  });
  refused_or_taken([&] {
    const auto texts = open_parquet(file.path(), "text");
    std::string text;
    for (int row = 0; row < 1000 && texts->next(text); ++row) continue;
  });
}

/// An Arrow file or stream, of a thousand rows at most: its column "text", and each of its columns as JSON.
void arrow(std::string_view bytes) {
  const MemoryFile file(bytes);
  refused_or_taken([&] {
    const ArrowFile open(file.path());
    for (const ArrowField& field : open.schema().children)
      refused_or_taken([&] {
        ArrowRows rows(std::make_shared<ArrowFile>(file.path()), {field.name});
        std::vector<Json> values;
        for (int row = 0; row < 1000 && rows.next(values); ++row) continue;
      });
  });
  refused_or_taken([&] {
    const auto texts = open_arrow(file.path(), "text");
    std::string text;
    for (int row = 0; row < 1000 && texts->next(text); ++row) continue;
  });
}

std::vector<std::vector<std::string>> csv_rows(std::string_view bytes, char separator) {
  const MemoryFile file(bytes);
  CsvReader reader(file.path(), separator);
  std::vector<std::vector<std::string>> rows = {reader.columns()};
  for (std::vector<std::string> values; reader.next(values);) rows.push_back(values);
  return rows;
}

/// Rows that are written with every value in quotes read back the same.
void csv(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd"))
    return;  // decompress has its own
  for (const char separator : {',', '\t'}) {
    refused_or_taken([&] {
      const auto rows = csv_rows(bytes, separator);
      std::string written;
      for (const auto& row : rows)
        for (size_t i = 0; i < row.size(); ++i) {
          written += '"';
          for (const char c : row[i]) written += c == '"' ? "\"\"" : std::string(1, c);
          written += '"';
          written += i + 1 == row.size() ? '\n' : separator;
        }
      must(csv_rows(written, separator) == rows, "rows of CSV do not read back");
    });
  }
}

/// The first byte chooses the encoding.
void mds_value(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::string encoding = kEncodings[static_cast<unsigned char>(bytes[0]) % kEncodings.size()];
  bytes.remove_prefix(1);
  refused_or_taken([&] { python_json(show_mds_value(encoding, bytes, 8, "fuzz")); });
  if (is_mds_array(encoding)) refused_or_taken([&] { decode_mds_array(encoding, bytes, "fuzz"); });
}

/// The first byte chooses the format, the second how many bytes are expected.
void decompress_file(std::string_view bytes) {
  if (bytes.size() < 2) return;
  constexpr std::array kKinds = {CompressionKind::kBrotli, CompressionKind::kBzip2, CompressionKind::kGzip,
                                 CompressionKind::kSnappy, CompressionKind::kZstd};
  const MemoryFile file(bytes.substr(2));
  const CompressionKind kind = kKinds[static_cast<unsigned char>(bytes[0]) % kKinds.size()];
  std::optional<std::string> grown, in_place;
  std::string raw(static_cast<unsigned char>(bytes[1]), '\0');
  refused_or_taken([&] {
    std::string pieces;
    decompress(file.path(), kind, std::ssize(raw), [&](std::string_view piece) { pieces += piece; });
    grown = pieces;
  });
  refused_or_taken([&] {
    decompress_into(file.path(), kind, raw);
    in_place = raw;
  });
  must(grown == in_place, "in one piece it decompresses to something else");
}

/// A line of JSONL: a document, or a conversation.
void json_lines(std::string_view bytes) {
  read_json_line(bytes, "text");
  refused_or_taken([&] { text_of_json_line(bytes, "text", "fuzz"); });
  refused_or_taken([&] { parse_chat_row(bytes, "fuzz"); });
}

/// A template of a chat, with two messages.
void chat_template(std::string_view bytes) {
  refused_or_taken([&] {
    jinja::Rendering rendering;
    std::vector<jinja::Value> messages;
    for (const char* role : {"user", "assistant"})
      messages.push_back(jinja::make_dict({{"role", jinja::Value(std::string(role))},
                                           {"content", jinja::Value(std::string(" a\n\xC3\xA9 "))}},
                                          rendering));
    jinja::Template(bytes, "fuzz")
        .render({{"messages", jinja::make_list(messages, jinja::ListKind::kList, rendering)},
                 {"bos_token", jinja::Value(std::string("<s>"))}},
                jinja::Date());
  });
}

/// config.json of a Hugging Face folder.
void hf_config(std::string_view bytes) {
  refused_or_taken([&] {
    const Json json = parse_json(bytes, "fuzz");
    refused_or_taken([&] { read_hf_config(json, "fuzz", HfStart::kItsWeights); });
    const HfConfig read = read_hf_config(json, "fuzz");
    write_hf_config(read.model, 128, json);
  });
}

/// Where a remote data set is.
void remote(std::string_view bytes) {
  const std::string text(bytes);
  const bool is_right = remote_problem(text).empty();
  try {
    const RemoteUri place = parse_remote(text);
    must(is_right, "a remote with a problem was taken");
    place.below("train");
    percent_encoded(place.prefix);
  } catch (const Error&) {
    must(!is_right, "a remote without a problem was refused");
  }
}

void tokenizer(std::string_view bytes) {
  refused_or_taken([&] {
    const auto made = tokenizer_from_text(bytes, "fuzz");
    made->decode(made->encode("The quick brown fox, 12 345 \xC3\xA9\xFF <|endoftext|>"));
  });
}

void tokenizer_model(std::string_view bytes) {
  refused_or_taken([&] {
    const TokenizerParts parts = parse_sentencepiece(bytes, "fuzz");
    const BpeTokenizer made(parts);
    made.decode(made.encode("The quick brown fox, 12 345 \xC3\xA9\xFF <s> \xE2\x96\x81"));
  });
}

/// A pattern, a zero byte, a text.
void split_regex(std::string_view bytes) {
  refused_or_taken([&] {
    const size_t end = bytes.find('\0');
    const SplitRegex regex(bytes.substr(0, end));
    const std::string_view text = end == std::string_view::npos ? "aab 12\n" : bytes.substr(end + 1);
    SplitRegex::Effort effort{.steps = 900'000};  // of the million that are free: slow patterns end sooner
    for (size_t from = 0; from <= text.size(); ++from)
      if (const auto match = regex.find(text, from, effort)) from = match->end;
  });
}

}  // namespace

std::vector<FuzzTarget> data_fuzz_targets() {
  return {{"mds_index", mds_index},
          {"mds_shard", mds_shard, 256},
          {"mds_value", mds_value, 256},
          {"line_shard", line_shard, 256},
          {"csv", csv, 512},
          {"parquet", parquet, 2048},
          {"arrow", arrow, 8192},
          {"token_files", token_files, 1536},
          {"decompress", decompress_file, 512},
          {"json_lines", json_lines, 512},
          {"hf_config", hf_config, 2048},
          {"remote", remote, 128},
          {"tokenizer", tokenizer, 2048},  // small vocabularies: those of real ones are mostly their tokens
          {"tokenizer_model", tokenizer_model, 4096},
          {"split_regex", split_regex, 128},
          {"chat_template", chat_template, 2048}};
}

}  // namespace tycho
