// Compares a file's name with its first bytes; a mismatch is an error, not a guess.
#include "trainer/data/sources/input_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/sources/byte_source.h"
#include "trainer/data/sources/hub_inputs.h"
#include "trainer/data/sources/json_line.h"
#include "trainer/data/sources/saved_data_set.h"
#include "trainer/data/sources/unread_kinds.h"
#include "trainer/data/splits/data_files.h"
#include "trainer/data/splits/folder_splits.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadBytes = 64 << 10;
constexpr std::array kTextEndings = {".txt", ".text"};
constexpr std::array kJsonlEndings = {".jsonl", ".ndjson", ".json"};
constexpr std::string_view kParquetEnding = ".parquet", kParquetMagic = "PAR1";
constexpr std::array kArrowEndings = {".arrow", ".feather"};
constexpr std::string_view kArrowMagic = "ARROW1", kArrowStreamBegin = "\xFF\xFF\xFF\xFF";
constexpr std::string_view kCsvEnding = ".csv", kTsvEnding = ".tsv";

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

template <class Endings>
bool ends_in(const std::string& name, const Endings& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const auto& ending) { return name.ends_with(ending); });
}

enum class FirstLine { kOther, kObject, kObjectWithField };

/// Returns the kind of the first line that is not blank, as far as the head shows it.
FirstLine look_at_first_line(std::string_view head, const std::string& field) {
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || head[begin] != '{') return FirstLine::kOther;
  const size_t end = head.find('\n', begin);
  if (end == std::string_view::npos && head.size() == kHeadBytes)  // a long line: its beginning must decide
    return head.find('"' + field + '"') != std::string_view::npos ? FirstLine::kObjectWithField
                                                                  : FirstLine::kObject;
  const JsonLine line =
      read_json_line(head.substr(begin, end == std::string_view::npos ? end : end - begin), field);
  if (!line.error.empty()) return FirstLine::kOther;
  return line.text ? FirstLine::kObjectWithField : FirstLine::kObject;
}

/// True for a folder with the index.json of mosaicml-streaming.
bool is_data_set(const std::string& folder) {
  const std::string index = folder + "/index.json";
  std::error_code error;
  return fs::is_regular_file(index, error) &&
         read_head(index, kHeadBytes).find("\"shards\"") != std::string::npos;
}

/// Returns the first few of many names.
std::string some_of(const std::vector<std::string>& paths) {
  constexpr size_t kNamesShown = 5;
  const size_t shown = std::min(kNamesShown, paths.size());
  return fmt::format("{}{}", fmt::join(paths.begin(), paths.begin() + static_cast<ptrdiff_t>(shown), ", "),
                     paths.size() > shown ? fmt::format(" and {} more", paths.size() - shown) : "");
}

/// True if lines of JSON may be rows of finetuning data.
bool looks_like_rows(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  return line.find("\"messages\"") != line.npos || line.find("\"prompt\"") != line.npos;
}

/// Finds input files and determines their formats.
class Finder {
 public:
  explicit Finder(const InputRules& rules) : rules_(rules) {}

  void add_named(const std::string& path) {
    const auto format = look(path, false);
    if (!format) {
      fail(ExitCode::kUnusable,
           "[data] {} is JSON, but not one object per line: convert it to JSONL first, for example: jq -c "
           "'.[]' {} > {}l",
           path, path, path);
    }
    found_.files.push_back({path, *format, bytes_of(path)});
  }

  void add_data_set(const std::string& folder) {
    InputFile input{.path = folder, .format = TextFormat::kDataSet};
    for (const std::string& path : files_in(folder)) input.bytes += bytes_of(path);
    found_.files.push_back(std::move(input));
  }

  void add_folder(const std::string& folder) {
    const std::vector<FolderSplit> saved = saved_splits(folder);
    if (saved.empty() && rules_.extensions.empty() && add_declared(folder)) return;
    std::vector<std::string> wanted, skipped, results;
    for (const std::string& path : saved.empty() ? files_in(folder) : files_of(folder, saved))
      (is_result_of_map(path) ? results : is_wanted(path) ? wanted : skipped).push_back(path);
    const size_t before = found_.files.size();
    for (const std::string& path : of_split(folder, std::move(wanted), saved)) {
      if (const auto format = look(path, true)) {
        found_.files.push_back({path, *format, bytes_of(path)});
      } else {
        skipped.push_back(path);
      }
    }
    if (found_.files.size() == before) fail_empty(folder);
    if (!results.empty())
      found_.notes.push_back(
          fmt::format("left out, as results of map and filter that datasets keeps beside its "
                      "data: {}; name such files to read them",
                      some_of(results)));
    if (!rules_.extensions.empty()) skipped.clear();  // the user has chosen
    std::sort(skipped.begin(), skipped.end());
    if (!skipped.empty())
      found_.notes.push_back(fmt::format("skipped, neither {}JSONL, CSV, Parquet nor Arrow by name: {}; {}",
                                         rules_.rows_only ? "" : "text, ", some_of(skipped),
                                         "name such files, or a pattern, to read them"));
    found_.skipped.insert(found_.skipped.end(), skipped.begin(), skipped.end());
  }

  void add_hub(const std::string& name) {
    InputFiles found = find_hub_files(name, rules_);
    std::move(found.files.begin(), found.files.end(), std::back_inserter(found_.files));
    std::move(found.notes.begin(), found.notes.end(), std::back_inserter(found_.notes));
  }

  InputFiles take() { return std::move(found_); }

 private:
  /// Adds the files of a configuration that README.md declares. Returns false if it declares none.
  bool add_declared(const std::string& folder) {
    DataListing listing{.place = folder, .readme = text_in(folder, "README.md")};
    listing.standalone = text_in(folder, ".huggingface.yaml");
    if ((listing.readme + listing.standalone).find("configs:") == std::string::npos &&
        rules_.configuration.empty())
      return false;
    for (const std::string& path : files_in(folder))
      listing.files.push_back(fs::path(path).lexically_relative(folder).string());
    const DataFiles chosen = choose_data_files(listing, rules_.configuration);
    if (chosen.configuration == "default" && rules_.configuration.empty() && !chosen.is_declared)
      return false;
    for (const FolderSplit* split : wanted_splits(folder, chosen.splits)) {
      for (const std::string& file : split->files)
        if (const auto format = look(folder + "/" + file, true))
          found_.files.push_back({folder + "/" + file, *format, bytes_of(folder + "/" + file)});
      found_.notes.push_back(fmt::format("of {}, configuration {}, the split {} is read: {}", folder,
                                         chosen.configuration, split->name, some_of(split->files)));
    }
    return true;
  }

  /// Returns the splits to read of those that README.md declares.
  std::vector<const FolderSplit*> wanted_splits(const std::string& folder,
                                                const std::vector<FolderSplit>& splits) const {
    const FolderSplit* wanted = find_split(splits, rules_.split);
    if (wanted == nullptr && rules_.takes_unsplit)
      wanted = find_split(splits, rules_.split.substr(0, rules_.split.find('_')));
    if (wanted != nullptr) return {wanted};
    if (!rules_.split.empty() && !rules_.takes_any) fail_without_split(folder, splits);
    std::vector<const FolderSplit*> all;
    for (const FolderSplit& split : splits) all.push_back(&split);
    return all;
  }

  static std::string text_in(const std::string& folder, const char* name) {
    std::error_code error;
    const std::string path = folder + "/" + name;
    return fs::is_regular_file(path, error) ? read_file(path) : "";
  }

  /// True if a file of a folder should be read, by its name alone.
  bool is_wanted(const std::string& path) const {
    const std::string name = uncompressed_name(lower_case(path));
    if (describes_data(path)) return false;
    if (!rules_.extensions.empty())
      return ends_in(uncompressed_name(path), rules_.extensions) || ends_in(path, rules_.extensions);
    return (!rules_.rows_only && ends_in(name, kTextEndings)) || ends_in(name, kJsonlEndings) ||
           name.ends_with(kParquetEnding) || ends_in(name, kArrowEndings) || name.ends_with(kCsvEnding) ||
           name.ends_with(kTsvEnding) || unread_kind_by_name(name) != nullptr;
  }

  /// Returns the files in `paths` that belong to the wanted split of a folder. `saved`: its splits, if
  /// `datasets` has saved it.
  std::vector<std::string> of_split(const std::string& folder, std::vector<std::string> paths,
                                    const std::vector<FolderSplit>& saved) {
    const bool has_one = saved.size() == 1 && saved[0].name.empty();
    if (rules_.split.empty() || !rules_.extensions.empty() || has_one) return paths;
    std::vector<std::string> names;
    for (const std::string& path : paths) names.push_back(fs::path(path).lexically_relative(folder).string());
    const std::vector<FolderSplit> splits = saved.empty() ? folder_splits(names) : saved;
    if (splits.empty() && (rules_.takes_unsplit || rules_.split == "train")) return paths;
    const FolderSplit* wanted = find_split(splits, rules_.split);
    if (wanted == nullptr && rules_.takes_unsplit)  // "train_small" is made of "train"
      wanted = find_split(splits, rules_.split.substr(0, rules_.split.find('_')));
    if (wanted == nullptr) {
      if (!rules_.takes_any) fail_without_split(folder, splits);
      found_.notes.push_back(
          fmt::format("{} has no files of the split {} by their names: all are read", folder, rules_.split));
      return paths;
    }
    std::vector<std::string> taken, left;
    for (size_t i = 0; i < paths.size(); ++i)
      (std::ranges::find(wanted->files, names[i]) == wanted->files.end() ? left : taken).push_back(paths[i]);
    if (!left.empty())
      found_.notes.push_back(fmt::format("of {}, the split {} is read: {}; left out: {}", folder,
                                         wanted->name, some_of(taken), some_of(left)));
    return taken;
  }

  [[noreturn]] void fail_without_split(const std::string& folder,
                                       const std::vector<FolderSplit>& splits) const {
    std::vector<std::string> there;
    for (const FolderSplit& split : splits) there.push_back(split.name);
    fail(ExitCode::kUnusable,
         "[data] {} expected files of the split {}, got {} by the names of its files and folders; choose one "
         "with split, or name the files, as in '{}/*'",
         folder, rules_.split, there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")), folder);
  }

  [[noreturn]] void fail_empty(const std::string& folder) const {
    if (rules_.extensions.empty())
      fail(ExitCode::kUnusable,
           "[data] folder {} has no {}.jsonl, .ndjson or .json, .csv or .tsv (also .gz, .zst) and no "
           ".parquet or .arrow; name the files{}",
           folder, rules_.rows_only ? "" : ".txt, ", rules_.rows_only ? "" : ", or their endings with --ext");
    fail(ExitCode::kUnusable,
         "[data] folder {} has no file that ends in {}; choose other endings, or name the files", folder,
         fmt::join(rules_.extensions, " or "));
  }

  static int64_t bytes_of(const std::string& path) {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path, error.message());
    return static_cast<int64_t>(bytes);
  }

  static std::vector<std::string> files_in(const std::string& folder) {
    std::vector<std::string> paths;
    std::error_code error;
    fs::recursive_directory_iterator it(folder, error), end;
    for (; !error && it != end; it.increment(error)) {
      if (it->path().filename().string().starts_with('.')) {
        if (it->is_directory(error)) it.disable_recursion_pending();
      } else if (it->is_regular_file(error)) {
        paths.push_back(it->path().string());
      }
    }
    if (error) fail(ExitCode::kUnusable, "[data] cannot read folder {}: {}", folder, error.message());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  /// Returns the format of a file; nothing for a .json that is not one object on every line.
  std::optional<TextFormat> look(const std::string& path, bool in_folder) const {
    const std::string name = uncompressed_name(lower_case(path));
    if (const UnreadKind* kind = unread_kind_by_name(name); kind != nullptr && !rules_.format)
      refuse(path, *kind, in_folder);
    const std::string head = read_head(path, kHeadBytes);
    if (const UnreadKind* kind = unread_kind_by_content(head)) refuse(path, *kind, in_folder);
    if (const auto arrow = look_at_arrow(path, head, in_folder)) return arrow;
    const bool is_parquet = head.starts_with(kParquetMagic);
    if (rules_.format && is_parquet == (rules_.format == TextFormat::kParquet)) return rules_.format;
    if (is_parquet || name.ends_with(kParquetEnding) || rules_.format == TextFormat::kParquet)
      return look_at_parquet(path, is_parquet, in_folder);
    if (name.ends_with(".json")) {
      const FirstLine line = look_at_first_line(head, rules_.field);
      const bool has_field = rules_.rows_only ? looks_like_rows(head) : line == FirstLine::kObjectWithField;
      // Folders of Hugging Face contain dataset_infos.json and similar files.
      if (line == FirstLine::kOther || (in_folder && !has_field)) return std::nullopt;
      return TextFormat::kJsonl;
    }
    if (ends_in(name, kJsonlEndings)) return TextFormat::kJsonl;
    if (name.ends_with(kCsvEnding)) return TextFormat::kCsv;
    if (name.ends_with(kTsvEnding)) return TextFormat::kTsv;
    if (rules_.rows_only) return TextFormat::kJsonl;
    if (look_at_first_line(head, rules_.field) == FirstLine::kObjectWithField) {
      fail(ExitCode::kUsage,
           "[data] {} looks like JSONL with the field \"{}\": add --format jsonl, or --format text to train "
           "on the JSON itself",
           path, rules_.field);
    }
    return TextFormat::kText;
  }

  /// Returns kArrow for a file that is Arrow by its first bytes. Checks a file that is declared to be.
  std::optional<TextFormat> look_at_arrow(const std::string& path, std::string_view head,
                                          bool in_folder) const {
    const std::string name = lower_case(path);
    const bool is_named = ends_in(name, kArrowEndings) || rules_.format == TextFormat::kArrow;
    const bool is_arrow = head.starts_with(kArrowMagic) || (is_named && head.starts_with(kArrowStreamBegin));
    if (is_arrow && rules_.format && rules_.format != TextFormat::kArrow)
      fail(ExitCode::kUsage, "[data] {} is an Arrow file: leave --format out", path);
    if (is_arrow) return TextFormat::kArrow;
    if (is_named)
      fail(ExitCode::kUnusable,
           "[data] {} is not an Arrow file, despite its name or --format; "
           "copy or download it again, or name its kind with --format{}",
           path, in_folder ? "; or select other files of the folder with --ext" : "");
    return std::nullopt;
  }

  /// Checks a file that is Parquet, or is declared to be.
  TextFormat look_at_parquet(const std::string& path, bool is_parquet, bool in_folder) const {
    if (!is_parquet)
      fail(ExitCode::kUnusable,
           "[data] {} is not a Parquet file, despite its name or --format; "
           "copy or download it again, or name its kind with --format{}",
           path, in_folder ? "; or select other files of the folder with --ext" : "");
    if (uncompressed_name(path) != path)
      fail(ExitCode::kUnusable,
           "[data] {} is a compressed Parquet file, whose pages cannot be found: unpack it", path);
    if (rules_.format) fail(ExitCode::kUsage, "[data] {} is a Parquet file: leave --format out", path);
    return TextFormat::kParquet;
  }

  const InputRules& rules_;
  InputFiles found_;
};

/// Returns the paths that a pattern matches, sorted. Returns `input` itself if it is no pattern, or exists.
std::vector<std::string> matches_of(const std::string& input) {
  std::error_code error;
  if (is_hub_name(input) || input.find_first_of("*?[") == std::string::npos || fs::exists(input, error))
    return {input};
  glob_t found{};
  const int result = ::glob(input.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (result == GLOB_NOMATCH) fail(ExitCode::kUnusable, "[data] no file or folder matches {}", input);
  if (result != 0) fail(ExitCode::kUnusable, "[data] a folder that {} names cannot be read", input);
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Returns what to write for a name that may be one of the hub; "" for other texts.
std::string hub_hint(const std::string& input) {
  const std::string name = "hf://datasets/" + input;
  const bool may_be = std::count(input.begin(), input.end(), '/') == 1 &&
                      input.find('.') == std::string::npos && hub_name_problem(name).empty();
  return may_be ? fmt::format("; the data set of the hub is {}", name) : "";
}

}  // namespace

InputFiles find_input_files(const std::vector<std::string>& inputs, const InputRules& rules) {
  Finder finder(rules);
  std::vector<std::string> paths;
  for (const std::string& input : inputs)
    for (std::string& path : matches_of(input)) paths.push_back(std::move(path));
  for (const std::string& input : paths) {
    std::error_code error;
    if (is_hub_name(input)) {
      finder.add_hub(input);
    } else if (is_data_set(input)) {
      finder.add_data_set(input);
    } else if (fs::is_directory(input, error)) {
      finder.add_folder(input);
    } else if (fs::exists(input, error)) {
      finder.add_named(input);
    } else {
      fail(ExitCode::kUnusable, "[data] there is no file or folder {}{}", input, hub_hint(input));
    }
  }
  return finder.take();
}

std::string version_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return path;
  const auto time = fs::last_write_time(path, error).time_since_epoch().count();
  return fmt::format("{}|{}|{}", path, size, time);
}

std::string version_of(const InputFile& file) {
  if (file.lender) return fmt::format("{}|{}", file.hash, file.bytes);
  return version_of(file.format == TextFormat::kDataSet ? file.path + "/index.json" : file.path);
}

}  // namespace tycho
