// Copies the entries of shards unchanged, except for the names of their files.
#include "trainer/data/mds/merge_index.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_index.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

void add_parts(const std::string& dir, const std::string& below, std::vector<std::string>& parts) {
  std::error_code error;
  for (fs::directory_iterator it(dir + "/" + below, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || !it->is_directory(error)) continue;
    const std::string part = below.empty() ? name : below + "/" + name;
    if (fs::exists(it->path() / "index.json", error))
      parts.push_back(part);
    else
      add_parts(dir, part, parts);
  }
}

void add_shards(const std::string& path, const std::string& part, Json& all) {
  Json index = parse_json(read_file(path), path);
  for (Json& shard : index["shards"]) {
    for (const char* file : {"raw_data", "zip_data", "raw_meta", "zip_meta"})
      if (const auto found = shard.find(file); found != shard.end() && found->is_object())
        (*found)["basename"] = part + "/" + (*found)["basename"].get<std::string>();
    all.push_back(std::move(shard));
  }
}

/// True if the samples were made by the same rules.
bool same_rules(const ConversionNote& a, const ConversionNote& b) {
  return a.bos_text == b.bos_text && a.eos_text == b.eos_text && a.no_wrap == b.no_wrap &&
         a.concat_tokens == b.concat_tokens && a.text_begin == b.text_begin && a.text_end == b.text_end &&
         a.keep_newlines == b.keep_newlines;
}

/// Adds the note of a part to `sum`; resets `sum` if the note does not match the others.
void add_note(const std::string& dir, const std::string& part, bool is_first,
              std::optional<ConversionNote>& sum) {
  const ConversionNote note = read_conversion_note(dir + "/" + part);
  if (is_first) {
    sum = note;
    sum->shards.clear();
  } else if (sum && !note.tokenizer_hash.empty() && !sum->tokenizer_hash.empty()) {
    if (note.tokenizer_hash != sum->tokenizer_hash)
      fail(
          ExitCode::kUnusable,
          "[data] {}/{} was made with another tokenizer than the folders before it; leave it out, or convert "
          "its text again",
          dir, part);
    sum->documents += note.documents;
    sum->text_bytes += note.text_bytes;
    sum->tokens += note.tokens;
    sum->dropped_tokens += note.dropped_tokens;
    sum->samples += note.samples;
  }
  if (sum && (note.tokenizer_hash.empty() || !same_rules(*sum, note))) sum.reset();
  if (!sum) return;
  for (const auto& [name, hash] : note.shards) sum->shards.emplace(part + "/" + name, hash);
}

void check_columns(const MdsIndex& first, const MdsIndex& other) {
  if (first.shards.empty() || other.shards.empty() || first.shards[0].columns == other.shards[0].columns)
    return;
  fail(ExitCode::kUnusable,
       "[mds] {} has other columns than {}: only data sets of the same kind can be merged", other.dir,
       first.dir);
}

}  // namespace

std::vector<std::string> find_parts(const std::string& dir) {
  std::vector<std::string> parts;
  add_parts(dir, "", parts);
  std::sort(parts.begin(), parts.end());
  return parts;
}

MergedIndex merge_indexes(FileOps& files, const std::string& dir, const std::vector<std::string>& parts) {
  const std::string path = dir + "/index.json";
  if (parts.empty())
    fail(ExitCode::kUsage, "[data] {} has no folder with an index.json: nothing to merge", dir);
  MergedIndex merged{static_cast<int64_t>(parts.size())};
  Json shards = Json::array();
  std::optional<MdsIndex> first;
  std::optional<ConversionNote> note;
  for (const std::string& part : parts) {
    const MdsIndex index = read_mds_index(dir + "/" + part);
    if (!first) first = index;
    check_columns(*first, index);
    merged.shards += std::ssize(index.shards);
    merged.samples += index.num_samples();
    add_shards(dir + "/" + part + "/index.json", part, shards);
    add_note(dir, part, &part == &parts.front(), note);
  }
  const std::string text = python_json({{"version", 2}, {"shards", std::move(shards)}}, JsonKeys::kInOrder);
  if (::access(path.c_str(), F_OK) == 0 && read_file(path) != text)
    fail(ExitCode::kUsage, "[data] {} is there already, with other shards; remove it to merge these folders",
         path);
  // Writes the note first, because readers of the index take its checksums from the note.
  if (note) write_conversion_note(files, dir, *note);
  write_file_atomically(files, path, text);
  return merged;
}

}  // namespace tycho
