// tycho data convert: text to samples of tokens, and conversations to samples of their own.
#include "host/data/convert.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "host/data/input_options.h"
#include "host/data/progress_line.h"
#include "host/text_table.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/convert_chat.h"
#include "trainer/data/tokenizer/local_tokenizer.h"
#include "trainer/hub/hub_files.h"
#include "trainer/metrics/format.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {
namespace {

/// Throws Error (kUsage) for the first of these options that was given.
void refuse_options(const Arguments& arguments, std::initializer_list<const char*> names, const char* why) {
  for (const char* name : names)
    if (arguments.given.contains(name)) fail(ExitCode::kUsage, "[data] --{} {}", name, why);
}

/// Returns the name of the hub that LLM Foundry's `option` means by a text that is no file or folder here.
/// Throws Error (kUnusable) for OWNER/NAME if OWNER is a folder here: that is the path of something else.
std::string hub_name_of(const char* option, const std::string& text, const std::string& scheme) {
  const std::string folder = text.substr(0, text.find('/'));
  std::error_code error;
  if (folder.size() < text.size() && std::filesystem::is_directory(folder, error))
    fail(ExitCode::kUnusable,
         "[data] {} {}: the folder {} has no such file or folder; for the hub write {}{}", option, text,
         folder, scheme, text);
  return parse_hub_name(scheme + text).text();
}

/// Returns the path on this machine of the tokenizer that --tokenizer names: a file, or a model of the hub,
/// hf://OWNER/NAME, OWNER/NAME or a name without an owner, such as gpt2.
std::string tokenizer_path(const std::string& text) {
  std::error_code error;
  const bool is_plain_name = !std::filesystem::exists(text, error) && !text.ends_with(".json") &&
                             !text.ends_with(".model") && std::count(text.begin(), text.end(), '/') <= 1 &&
                             hub_name_problem("hf://" + text).empty();
  if (!is_plain_name) return local_tokenizer(text);
  const std::string name = hub_name_of("--tokenizer", text, "hf://");
  try {
    return local_tokenizer(name);
  } catch (const Error& hub) {
    fail(hub.code(), "[data] --tokenizer {}: there is no such file or folder here, so {} was asked for:\n{}",
         text, name, hub.what());
  }
}

ConvertOptions to_options(const Arguments& arguments) {
  word(arguments, 1, "text, JSONL, CSV, Parquet or Arrow files, or folders, to convert");
  ConvertOptions options;
  options.inputs.assign(arguments.words.begin() + 1, arguments.words.end());
  options.keeps_fetched = arguments.has("keep");
  options.rules = input_rules(arguments);
  options.rules.split = arguments.text("split");
  options.rules.takes_unsplit = true;
  options.rules.takes_any = false;
  options.rules.configuration = arguments.text("config");
  options.keep_newlines = arguments.has("keep-newlines");
  options.no_added_tokens = arguments.has("no-added-tokens");
  options.no_separator = arguments.has("no-separator");
  if (!arguments.text("hashes").empty()) options.hashes = arguments.list("hashes");
  options.compression = arguments.text("compression");
  options.tokenizer = tokenizer_path(arguments.text("tokenizer"));
  options.out_dir = arguments.text("out");
  options.split = arguments.text("split");
  options.val_split = arguments.text("val-split");
  options.val_fraction = arguments.number("val-fraction", 0, 1);
  options.concat_tokens = arguments.integer("concat-tokens", 1);
  options.bos_text = arguments.text("bos-text");
  options.eos_text = arguments.text("eos-text");
  options.no_wrap = arguments.has("no-wrap");
  if (arguments.given.contains("max-documents"))
    options.max_documents = arguments.integer("max-documents", 1);
  options.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  options.rules.downloads = options.threads;
  return options;
}

/// A split of LLM Foundry that is the beginning of another.
struct ShortSplit {
  const char *name, *source;
  int64_t samples;
};
constexpr std::array<ShortSplit, 4> kShortSplits = {{{"train_small", "train", 100000},
                                                     {"val_small", "val", 10000},
                                                     {"val_xsmall", "val", 3000},
                                                     {"val_xxsmall", "val", 100}}};

/// Returns the arguments with LLM Foundry's names of options replaced by ours, and --dataset by the word that
/// it stands for. LLM Foundry's --splits takes several words.
Arguments with_own_names(Arguments arguments) {
  for (const auto& [other, own] :
       {std::pair{"data-subset", "config"}, {"out-root", "out"}, {"num-workers", "threads"}})
    if (arguments.has(other)) arguments.options[own] = arguments.options[other];
  if (!arguments.has("dataset")) return arguments;
  if (arguments.text("splits").empty() && arguments.words.size() > 1)
    fail(ExitCode::kUsage, "[data] expected --dataset or words that name the inputs, got both: {}",
         arguments.words[1]);
  for (size_t i = 1; i < arguments.words.size(); ++i) arguments.options["splits"] += "," + arguments.words[i];
  arguments.words.resize(1);
  const std::string& name = arguments.text("dataset");
  std::error_code error;
  const bool is_place = is_hub_name(name) || std::filesystem::exists(name, error);
  arguments.words.push_back(is_place ? name : hub_name_of("--dataset", name, "hf://datasets/"));
  return arguments;
}

using ShowProgress = std::function<void(const ConvertProgress&)>;

/// Shows progress. Speed and time left are measured from the first call.
class ConversionLine {
 public:
  void show(const ConvertProgress& progress) {
    const auto now = Clock::now();
    if (!start_) start_ = now, first_ = progress;
    line_.show([&] { return text(progress, std::chrono::duration<double>(now - *start_).count()); });
  }
  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string text(const ConvertProgress& progress, double seconds) const {
    const double share = progress.bytes_total > 0 ? 100.0 * progress.bytes_done / progress.bytes_total : 0;
    const auto bytes = static_cast<double>(progress.bytes_done - first_.bytes_done);
    std::string rate;
    if (seconds > 1 && bytes > 0) {
      const double left_s = static_cast<double>(progress.bytes_total - progress.bytes_done) * seconds / bytes;
      rate = fmt::format("  {} tokens/s  eta={}",
                         human_count(static_cast<double>(progress.tokens - first_.tokens) / seconds),
                         clock_text(left_s));
    }
    return fmt::format("{:5.1f} %  {} tokens  {} samples{}", share,
                       human_count(static_cast<double>(progress.tokens)), progress.samples, rate);
  }

  ProgressLine line_;
  std::optional<Clock::time_point> start_;
  ConvertProgress first_;
};

Json split_json(const ConvertedSplit& split) {
  return {{"dir", split.dir},
          {"documents", split.documents},
          {"bytes", split.bytes},
          {"longest_bytes", split.longest_bytes},
          {"skipped_rows", split.skipped_rows},
          {"tokens", split.tokens},
          {"samples", split.samples},
          {"dropped_tokens", split.dropped_tokens},
          {"shards", split.shards}};
}

/// Converts the splits of --splits, one after the other.
ConvertResult convert_splits(const Arguments& arguments, ConvertOptions options) {
  refuse_options(arguments, {"split", "val-split", "val-fraction"}, "has no effect with --splits");
  ConvertResult all;
  for (const std::string& name : arguments.list("splits")) {
    std::error_code error;
    if (std::filesystem::exists(options.out_dir + "/" + name + "/index.json", error)) {
      all.notes.push_back(fmt::format("{}/{} is there already, and left as it is", options.out_dir, name));
      continue;
    }
    options.split = options.rules.split = name;
    options.max_samples.reset();
    for (const ShortSplit& one : kShortSplits) {
      if (name != one.name) continue;
      options.rules.split = one.source;
      options.max_samples = one.samples;
    }
    ConvertResult result = convert_text(options);
    for (const auto part : {&ConvertResult::notes, &ConvertResult::warnings})
      std::move((result.*part).begin(), (result.*part).end(), std::back_inserter(all.*part));
    std::move(result.splits.begin(), result.splits.end(), std::back_inserter(all.splits));
  }
  return all;
}

ConvertResult convert_documents(const Arguments& arguments, const ShowProgress& progress) {
  refuse_options(arguments, {"template", "template-date"}, "needs --chat and --tokenizer");
  ConvertOptions options = to_options(arguments);
  options.progress = progress;
  return arguments.text("splits").empty() ? convert_text(options) : convert_splits(arguments, options);
}

ConvertResult convert_conversations(const Arguments& arguments, const ShowProgress& progress) {
  refuse_options(arguments,
                 {"concat-tokens", "ext", "format", "field", "bos-text", "eos-text", "no-separator",
                  "no-added-tokens", "keep-newlines", "no-wrap", "max-documents", "splits"},
                 "has no effect with --chat");
  word(arguments, 1, "JSONL, CSV, Parquet or Arrow files, or folders of them, to convert");
  ConvertChatOptions options;
  options.inputs.assign(arguments.words.begin() + 1, arguments.words.end());
  options.splits = {.out_dir = arguments.text("out"),
                    .split = arguments.text("split"),
                    .val_split = arguments.text("val-split"),
                    .val_fraction = arguments.number("val-fraction", 0, 1),
                    .compression = arguments.text("compression")};
  if (!arguments.text("hashes").empty()) options.splits.hashes = arguments.list("hashes");
  if (arguments.has("tokenizer"))
    options.tokenizer = tokenizer_path(arguments.text("tokenizer"));
  else
    refuse_options(arguments, {"template", "template-date"},
                   "needs --tokenizer: without it, texts are written");
  options.bad_rows = bad_rows(arguments);
  options.configuration = arguments.text("config");
  options.keeps_fetched = arguments.has("keep");
  options.chat_template = arguments.text("template");
  options.template_date = arguments.text("template-date");
  options.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  options.progress = progress;
  return convert_chat(options);
}

}  // namespace

int convert_data(const Arguments& given) {
  const Arguments arguments = with_own_names(given);
  set_hub_access(HubAccess::kRefresh);
  ConversionLine line;
  const ShowProgress progress = [&line](const ConvertProgress& now) { line.show(now); };
  const ConvertResult result = arguments.has("chat") ? convert_conversations(arguments, progress)
                                                     : convert_documents(arguments, progress);
  line.clear();
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
  for (const std::string& warning : result.warnings) fmt::print(stderr, "warning: {}\n", warning);
  Json splits = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"split", "documents", "bytes", "longest", "tokens", "bytes/token", "samples", "shards"}};
  for (const ConvertedSplit& split : result.splits) {
    splits.push_back(split_json(split));
    const auto bytes = static_cast<double>(split.bytes), tokens = static_cast<double>(split.tokens);
    rows.push_back({split.dir, fmt::to_string(split.documents), human_bytes(bytes),
                    human_bytes(static_cast<double>(split.longest_bytes)), human_count(tokens),
                    split.tokens > 0 ? fmt::format("{:.2f}", bytes / tokens) : "-",
                    fmt::to_string(split.samples), fmt::to_string(split.shards)});
  }
  fmt::print("{}", arguments.has("json") ? splits.dump(2) + "\n" : text_table(rows));
  return 0;
}

}  // namespace tycho
