// Files are found as `data convert` finds them, so what is counted is what would be converted.
#include "host/data/texts.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "host/data/input_options.h"
#include "host/data/length_table.h"
#include "trainer/base/bytes.h"
#include "trainer/base/json.h"
#include "trainer/data/prepare/text_stats.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

void print_text_stats(const TextStats& stats, const Tokenizer* tokenizer) {
  fmt::print("{} files, {} documents ({} empty), {}\n", stats.files, stats.documents, stats.empty_documents,
             human_bytes(static_cast<double>(stats.bytes())));
  if (stats.skipped.count > 0) fmt::print("{}\n", stats.skipped.text());
  print_lengths("documents", "bytes", stats.document_bytes);
  fmt::print("duplicates: {:.2f} % of the documents are the same as an earlier one{}\n",
             100 * stats.duplicate_share,
             stats.duplicates_of_one_in == 1
                 ? ""
                 : fmt::format(", estimated from one of {}", stats.duplicates_of_one_in));
  if (tokenizer != nullptr)
    fmt::print(
        "tokens: {}, {:.2f} bytes per token, {:.1f} tokens per document\n",
        human_count(static_cast<double>(stats.tokens)),
        static_cast<double>(stats.bytes()) / static_cast<double>(std::max<int64_t>(stats.tokens, 1)),
        static_cast<double>(stats.tokens) / static_cast<double>(std::max<int64_t>(stats.documents, 1)));
}

}  // namespace

bool is_converted(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + "/index.json", error)) return true;
  fs::directory_iterator it(path, error), end;
  for (; !error && it != end; it.increment(error))
    if (fs::exists(it->path() / "index.json", error)) return true;
  return false;
}

int show_text_stats(const Arguments& arguments) {
  const InputRules rules = input_rules(arguments);
  const InputFiles inputs =
      named_inputs(arguments, "text, JSONL, CSV, Parquet or Arrow files, folders, or a data set");
  std::unique_ptr<Tokenizer> tokenizer;
  if (arguments.has("tokenizer")) tokenizer = load_tokenizer(arguments.text("tokenizer"));
  auto threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const TextStats stats = text_stats(inputs, rules, tokenizer.get(), threads);
  if (!arguments.has("json")) {
    print_text_stats(stats, tokenizer.get());
    return 0;
  }
  Json json = {{"files", stats.files},
               {"documents", stats.documents},
               {"empty_documents", stats.empty_documents},
               {"skipped_rows", stats.skipped.count},
               {"bytes", stats.bytes()},
               {"document_bytes", lengths_json(stats.document_bytes)},
               {"duplicate_share", stats.duplicate_share},
               {"duplicates_of_one_in", stats.duplicates_of_one_in}};
  if (tokenizer != nullptr) json["tokens"] = stats.tokens;
  fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace tycho
