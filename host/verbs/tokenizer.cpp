// tycho tokenizer: trains and tries out tokenizers.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "host/input_options.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

const VerbSpec kTokenizerSpec = {
    "tokenizer train INPUT ... --out FILE\n       tycho tokenizer encode TOKENIZER [TEXT]\n"
    "       tycho tokenizer decode TOKENIZER ID ...",
    "Trains a byte-level BPE tokenizer; encodes text; decodes ids.",
    "  tycho tokenizer train books/ --vocab-size 8192 --out tokenizer.json\n"
    "  tycho tokenizer encode tokenizer.json 'Hello, world'",
    {{"out", "train: where to write tokenizer.json.", "FILE"},
     {"vocab-size", "train: total size: bytes, merges and special tokens.", "N", "8192"},
     {"special", "train: special tokens.", "LIST", "<|endoftext|>"},
     {"min-frequency", "train: pairs rarer than this are not merged.", "N", "2"},
     {"ext", "train: endings of the files to read in folders. Default: text and JSONL.", "LIST", ""},
     {"format", "train: text or jsonl, instead of detection by name and contents.", "KIND", ""},
     {"field", "train: field of a JSONL line that holds the text.", "NAME", "text"},
     {"threads", "train: CPU threads; 0 for one per core.", "N", "0"},
     kJsonOption}};

namespace {

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
  const InputFiles inputs = named_inputs(arguments, "text files or folders to train on");
  for (const std::string& path : inputs.skipped)
    fmt::print(stderr, "note: skipped {}; --ext selects other endings\n", path);
  options.field = arguments.text("field");
  const std::vector<InputFile>& files = inputs.files;
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
