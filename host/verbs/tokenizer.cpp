// tycho tokenizer: trains and tries out tokenizers.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>

#include "host/data/input_options.h"
#include "host/data/progress_line.h"
#include "host/standard_streams.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/document_reader.h"
#include "trainer/data/tokenizer/decode_stream.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

const VerbSpec kTokenizerSpec = {
    "tokenizer train INPUT ... --out FILE\n       tycho tokenizer encode TOKENIZER [TEXT]\n"
    "       tycho tokenizer decode TOKENIZER [ID ...]\n       tycho tokenizer inspect TOKENIZER\n"
    "       tycho tokenizer compare TOKENIZER TOKENIZER [INPUT ...]",
    "Trains a byte-level BPE tokenizer; encodes text and decodes ids with a tokenizer.json or "
    "tokenizer.model; shows "
    "what such a file does; compares two of them.",
    "  tycho tokenizer train books/ --vocab-size 8192 --out tokenizer.json\n"
    "  tycho tokenizer encode tokenizer.json 'Hello, world'\n"
    "  tycho tokenizer inspect tokenizer.json\n"
    "  tycho tokenizer compare old/tokenizer.json tokenizer.json books/",
    {{"out", "train: where to write tokenizer.json.", "FILE"},
     {"vocab-size", "train: total size: bytes, merges and special tokens.", "N", "8192"},
     {"special", "train: special tokens.", "LIST", "<|endoftext|>"},
     {"min-frequency", "train: pairs rarer than this are not merged.", "N", "2"},
     {"ext",
      "train, compare: endings of the files to read in folders. Default: text, JSONL, CSV, Parquet and "
      "Arrow.",
      "LIST", ""},
     {"format",
      "train, compare: what the inputs are: text, jsonl, csv, tsv, parquet or arrow. Default: by name and "
      "contents.",
      "KIND", ""},
     {"field",
      "train, compare: field of a JSONL line, or column of CSV, Parquet or Arrow, that holds the text.",
      "NAME", "text"},
     {"bad-rows",
      "train, compare: what happens to lines and rows that cannot be used, such as invalid JSON: error, or "
      "skip, which leaves them out and counts them.",
      "POLICY", "error"},
     {"threads", "train: CPU threads; 0 for one per core.", "N", "0"},
     {"added-tokens", "encode: with the tokens that the tokenizer adds around every text."},
     {"skip-special", "decode: leave special tokens out."},
     {"lines",
      "encode, decode: each line of stdin is a JSON string, or a JSON list of ids; prints one line of "
      "JSON for each."},
     kJsonOption}};

namespace {

void warn_of(const SkippedRows& skipped) {
  if (skipped.count > 0) fmt::print(stderr, "warning: {}\n", skipped.text());
}

int train(const Arguments& arguments) {
  BpeTrainOptions options;
  options.vocab_size = static_cast<int32_t>(arguments.integer("vocab-size", 1, INT32_MAX));
  options.special_tokens = arguments.list("special");
  options.min_frequency = arguments.integer("min-frequency", 1);
  options.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  ProgressLine progress;
  options.progress = [&](double fraction, const std::string& phase) {
    progress.show([&] { return fmt::format("{:5.1f} %  {}", 100 * fraction, phase); });
  };
  const std::string out = arguments.text("out");
  const InputFiles inputs = named_inputs(arguments, "text files or folders to train on");
  options.field = arguments.text("field");
  SkippedRows skipped;
  if (bad_rows(arguments) == BadRows::kSkip)
    options.on_bad_row = [&](const std::string& why) { skipped.add(why); };
  const std::vector<InputFile>& files = inputs.files;
  const std::string text = train_bpe(files, options);
  progress.clear();
  warn_of(skipped);
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

/// Calls act(json) for every line of stdin. Errors name the line.
template <class Act>
void for_each_line(Act act) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string place = fmt::format("tycho tokenizer: line {} of stdin", number);
    act(parse_json(line, place), place);
  }
}

std::vector<int32_t> encoded(const Tokenizer& tokenizer, std::string_view text, bool added) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  if (!added) return ids;
  const std::vector<int32_t> begin = tokenizer.text_begin(), end = tokenizer.text_end();
  ids.insert(ids.begin(), begin.begin(), begin.end());
  ids.insert(ids.end(), end.begin(), end.end());
  return ids;
}

int encode(const Arguments& arguments) {
  const auto tokenizer = load_tokenizer(word(arguments, 1, "a tokenizer.json or tokenizer.model"));
  no_more_words(arguments, arguments.has("lines") ? 2 : 3);
  const bool added = arguments.has("added-tokens");
  if (arguments.has("lines")) {
    for_each_line([&](const Json& line, const std::string& place) {
      if (!line.is_string()) fail(ExitCode::kUsage, "[{}] expected a JSON string", place);
      fmt::print("{}\n", Json(encoded(*tokenizer, line.get_ref<const std::string&>(), added)).dump());
    });
    return 0;
  }
  const std::string text = arguments.words.size() > 2 ? arguments.words[2] : all_of_stdin();
  const std::vector<int32_t> ids = encoded(*tokenizer, text, added);
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
    fail(ExitCode::kUsage, "[tycho tokenizer decode] expected ids from 0 to {}, got \"{}\"", size - 1, text);
  }
  return static_cast<int32_t>(id);
}

std::string decoded(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
  DecodeStream stream(tokenizer, {.skip_special = skip_special});
  std::string text;
  for (const int32_t id : ids) text += stream.add(id);
  return text + stream.finish();
}

int decode(const Arguments& arguments) {
  const auto tokenizer = load_tokenizer(word(arguments, 1, "a tokenizer.json or tokenizer.model"));
  const bool skip = arguments.has("skip-special");
  if (arguments.has("lines")) {
    no_more_words(arguments, 2);
    for_each_line([&](const Json& line, const std::string& place) {
      std::vector<int32_t> ids;
      if (!line.is_array()) fail(ExitCode::kUsage, "[{}] expected a JSON list of ids", place);
      for (const Json& id : line) ids.push_back(to_id(id.dump(), tokenizer->size()));
      fmt::print("{}\n", Json(decoded(*tokenizer, ids, skip)).dump());
    });
    return 0;
  }
  std::vector<std::string> words(arguments.words.begin() + 2, arguments.words.end());
  if (words.empty()) {
    std::istringstream given(all_of_stdin());
    for (std::string id; given >> id;) words.push_back(id);
  }
  std::vector<int32_t> ids;
  for (const std::string& id : words) ids.push_back(to_id(id, tokenizer->size()));
  const std::string text = decoded(*tokenizer, ids, skip);
  print_exact_text();
  fmt::print("{}\n", arguments.has("json") ? Json(text).dump() : text);
  return 0;
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Returns the special tokens by id, in the tokenizer's spelling.
Json special_tokens(const Tokenizer& tokenizer) {
  Json tokens = Json::array();
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.is_special(id)) tokens.push_back({{"id", id}, {"token", tokenizer.token_bytes(id)}});
  return tokens;
}

std::string in_words(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) tokens.push_back(quoted(tokenizer.token_bytes(id)));
  return tokens.empty() ? "nothing" : fmt::format("{}", fmt::join(tokens, " "));
}

int inspect(const Arguments& arguments) {
  const std::string path = word(arguments, 1, "a tokenizer.json or tokenizer.model");
  no_more_words(arguments, 2);
  const auto tokenizer = load_tokenizer(path);
  const TokenizerInfo& info = tokenizer->info();
  const Json special = special_tokens(*tokenizer);
  if (arguments.has("json")) {
    const Json shown = {{"file", path},
                        {"format", info.format},
                        {"kind", info.kind},
                        {"size", tokenizer->size()},
                        {"tokens", info.num_tokens},
                        {"merges", info.num_merges},
                        {"normalizers", info.normalizers},
                        {"pre_tokenizers", info.pre_tokenizers},
                        {"text_begin", tokenizer->text_begin()},
                        {"text_end", tokenizer->text_end()},
                        {"bos", info.bos},
                        {"eos", info.eos},
                        {"pad", info.pad},
                        {"unknown", info.unknown},
                        {"special_tokens", special},
                        {"hash", tokenizer->hash()}};
    fmt::print("{}\n", shown.dump(-1, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", "));
  };
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<16}{}\n", name, value); };
  row("file", path);
  row("kind", info.kind + ", " + info.format);
  row("tokens", fmt::format("{}, the largest id is {}", info.num_tokens, tokenizer->size() - 1));
  row("merges", std::to_string(info.num_merges));
  row("normalizers", list(info.normalizers));
  row("cuts text at", list(info.pre_tokenizers));
  row("before a text", in_words(*tokenizer, tokenizer->text_begin()));
  row("after a text", in_words(*tokenizer, tokenizer->text_end()));
  for (const auto& [name, token] :
       {std::pair("bos", &info.bos), {"eos", &info.eos}, {"pad", &info.pad}, {"unknown", &info.unknown}})
    if (!token->empty()) row(name, fmt::format("{} ({})", quoted(*token), tokenizer->find(*token)));
  constexpr size_t kShown = 12;
  for (size_t i = 0; i < special.size() && i < kShown; ++i)
    row(i == 0 ? "special tokens" : "", fmt::format("{:>6}  {}", special[i]["id"].get<int32_t>(),
                                                    quoted(special[i]["token"].get<std::string>())));
  if (special.size() > kShown) row("", fmt::format("and {} more; --json lists all", special.size() - kShown));
  return 0;
}

/// The results of two tokenizers on the same texts.
struct Comparison {
  int64_t documents = 0, differ = 0, bytes = 0;
  std::array<int64_t, 2> tokens{};
  std::string first;  // the first difference
};

/// Returns the first ids that differ, with the text before them.
std::string first_difference(const std::array<std::unique_ptr<Tokenizer>, 2>& both,
                             const std::array<std::vector<int32_t>, 2>& ids) {
  const auto place = std::mismatch(ids[0].begin(), ids[0].end(), ids[1].begin(), ids[1].end());
  const auto shown = [&](size_t side, std::vector<int32_t>::const_iterator from) {
    const auto end = from + std::min<ptrdiff_t>(5, ids[side].end() - from);
    return in_words(*both[side], {from, end});
  };
  return fmt::format("token {}: {} against {}", place.first - ids[0].begin(), shown(0, place.first),
                     shown(1, place.second));
}

Comparison compare_texts(const Arguments& arguments, const std::array<std::unique_ptr<Tokenizer>, 2>& both) {
  const InputRules rules = input_rules(arguments);
  const InputFiles inputs = find_inputs({arguments.words.begin() + 3, arguments.words.end()}, rules);
  DocumentReader reader(inputs.files, {.field = rules.field, .keep_newlines = true});
  Comparison result;
  SkippedRows skipped;
  OnBadRow on_bad_row;
  if (rules.bad_rows == BadRows::kSkip) on_bad_row = [&](const std::string& why) { skipped.add(why); };
  const auto compare_text = [&](std::string_view text, const std::string& file, bool is_new) {
    const std::array ids = {both[0]->encode(text), both[1]->encode(text)};
    result.documents += is_new;
    result.bytes += static_cast<int64_t>(text.size());
    for (size_t side = 0; side < 2; ++side) result.tokens[side] += static_cast<int64_t>(ids[side].size());
    if (ids[0] == ids[1]) return;
    if (result.differ++ == 0)
      result.first =
          fmt::format("document {}, of {}, {}", result.documents, file, first_difference(both, ids));
  };
  while (const auto chunk = reader.next()) {
    const InputFile& file = reader.file(*chunk);
    if (chunk->format == TextFormat::kText) {
      compare_text(chunk->text, file.path, chunk->first);
    } else {
      for_each_record(
          *chunk, file, rules.field, [&](std::string_view text) { compare_text(text, file.path, true); },
          on_bad_row);
    }
  }
  warn_of(skipped);
  return result;
}

int compare(const Arguments& arguments) {
  std::array<std::unique_ptr<Tokenizer>, 2> both;
  for (size_t side = 0; side < 2; ++side)
    both[side] = load_tokenizer(word(arguments, side + 1, "two tokenizers to compare"));
  int64_t shared = 0;
  for (int32_t id = 0; id < std::min(both[0]->size(), both[1]->size()); ++id)
    shared += both[0]->token_bytes(id) == both[1]->token_bytes(id) &&
              both[0]->is_special(id) == both[1]->is_special(id);
  const bool with_texts = arguments.words.size() > 3;
  const Comparison texts = with_texts ? compare_texts(arguments, both) : Comparison();
  const bool same_around =
      both[0]->text_begin() == both[1]->text_begin() && both[0]->text_end() == both[1]->text_end();
  if (arguments.has("json")) {
    Json shown = {{"sizes", {both[0]->size(), both[1]->size()}},
                  {"same_tokens", shared},
                  {"same_file", both[0]->hash() == both[1]->hash()},
                  {"same_added_around_texts", same_around}};
    if (with_texts)
      shown["texts"] = {{"documents", texts.documents},
                        {"differ", texts.differ},
                        {"bytes", texts.bytes},
                        {"tokens", texts.tokens},
                        {"first", texts.first}};
    fmt::print("{}\n", shown.dump(-1, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  fmt::print("files           {}\n", both[0]->hash() == both[1]->hash() ? "the same" : "differ");
  fmt::print("ids             {} and {}, {} of them the same token\n", both[0]->size(), both[1]->size(),
             shared);
  fmt::print("around a text   {}\n", same_around ? "the same" : "differ");
  if (!with_texts) return 0;
  const auto per_token = [&](size_t side) {
    return texts.tokens[side] == 0
               ? 0.0
               : static_cast<double>(texts.bytes) / static_cast<double>(texts.tokens[side]);
  };
  fmt::print("documents       {}, {} with other ids\n", texts.documents, texts.differ);
  fmt::print("tokens          {} and {}, {:.3f} and {:.3f} bytes each\n", texts.tokens[0], texts.tokens[1],
             per_token(0), per_token(1));
  if (texts.differ > 0) fmt::print("first           {}\n", texts.first);
  return 0;
}

}  // namespace

int run_tokenizer(const Arguments& arguments) {
  return pick_subverb(
      arguments, "tokenizer",
      {{"train", train}, {"encode", encode}, {"decode", decode}, {"inspect", inspect}, {"compare", compare}});
}

}  // namespace tycho
