// tycho tokenizer: train one, and look at what it does.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/convert.h"
#include "trainer/data/tokenizer.h"

namespace tycho {

const VerbSpec kTokenizerSpec = {
    "tokenizer train INPUT ... --out FILE\n       tycho tokenizer encode TOKENIZER [TEXT]\n"
    "       tycho tokenizer decode TOKENIZER ID ...",
    "Trains a byte-level BPE tokenizer; encodes text; decodes ids.",
    "  tycho tokenizer train books/ --vocab-size 8192 --out tokenizer.json\n"
    "  tycho tokenizer encode tokenizer.json 'Hello, world'",
    {{"out", "train: where to write tokenizer.json.", "FILE"},
     {"vocab-size", "train: bytes, merges and special tokens together.", "N", "8192"},
     {"special", "train: special tokens.", "LIST", "<|endoftext|>"},
     {"min-frequency", "train: pairs that are rarer are not merged.", "N", "2"},
     {"ext", "train: endings of the files to read in folders.", "LIST", ".txt"},
     {"threads", "train: CPU threads; 0 for one per core.", "N", "0"},
     kJsonOption}};

namespace {

std::vector<std::string> text_files(const Arguments& arguments) {
  const auto endings = arguments.list("ext");
  word(arguments, 1, "text files or folders to train on");
  std::vector<std::string> files;
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    const std::string& input = arguments.words[i];
    if (!std::filesystem::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    const size_t before = files.size();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(input)) {
      for (const std::string& ending : endings) {
        if (entry.is_regular_file() && entry.path().string().ends_with(ending)) files.push_back(entry.path());
      }
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  if (files.empty()) {
    fail(ExitCode::kUnusable, "[tokenizer] no files ending in {} in {}; name others with --ext",
         fmt::join(endings, ", "), arguments.words[1]);
  }
  return files;
}

int train(const Arguments& arguments) {
  BpeTrainOptions options;
  options.vocab_size = static_cast<int32_t>(arguments.integer("vocab-size", 1, INT32_MAX));
  options.special_tokens = arguments.list("special");
  options.min_frequency = arguments.integer("min-frequency", 1);
  options.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  const bool live = isatty(STDERR_FILENO) != 0;
  if (live) {
    options.progress = [](double fraction, const std::string& phase) {
      fmt::print(stderr, "\r{:5.1f} %  {:<40}", 100 * fraction, phase);
    };
  }
  const std::string out = arguments.text("out");
  const std::vector<std::string> files = text_files(arguments);
  const std::string text = train_bpe(files, options);
  if (live) fmt::print(stderr, "\r{:60}\r", "");
  const std::string folder = std::filesystem::path(out).parent_path();
  if (!folder.empty()) make_dirs(real_files(), folder);
  write_file_atomically(real_files(), out, text);
  const int32_t size = load_tokenizer(out)->size();
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"file", out}, {"size", size}, {"files", files.size()}}.dump());
  } else {
    fmt::print("{}: {} tokens, from {} files\n", out, size, files.size());
  }
  return 0;
}

std::string all_of_stdin() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

int encode(const Arguments& arguments) {
  const auto tokenizer = load_tokenizer(word(arguments, 1, "a tokenizer.json"));
  no_more_words(arguments, 3);
  const std::string text = arguments.words.size() > 2 ? arguments.words[2] : all_of_stdin();
  const std::vector<int32_t> ids = tokenizer->encode(text);
  if (arguments.has("json")) {
    fmt::print("{}\n", Json(ids).dump());
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
  return 0;
}

int32_t to_id(const std::string& text, int32_t size) {
  char* end = nullptr;
  const long id = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || id < 0 || id >= size) {
    fail(ExitCode::kUsage, "[tycho tokenizer decode] wanted ids from 0 to {}, given \"{}\"", size - 1, text);
  }
  return static_cast<int32_t>(id);
}

int decode(const Arguments& arguments) {
  const auto tokenizer = load_tokenizer(word(arguments, 1, "a tokenizer.json"));
  word(arguments, 2, "ids to decode");
  std::vector<int32_t> ids;
  for (size_t i = 2; i < arguments.words.size(); ++i)
    ids.push_back(to_id(arguments.words[i], tokenizer->size()));
  const std::string text = tokenizer->decode(ids);
  fmt::print("{}\n", arguments.has("json") ? Json(text).dump() : text);
  return 0;
}

}  // namespace

int run_tokenizer(const Arguments& arguments) {
  return pick_subverb(arguments, "tokenizer", {{"train", train}, {"encode", encode}, {"decode", decode}});
}

}  // namespace tycho
