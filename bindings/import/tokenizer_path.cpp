// Where other systems name a tokenizer, they mean the hub, a folder, or a file in it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "bindings/import/systems.h"
#include "trainer/base/file_ops.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

namespace {

constexpr std::array kTokenizers = {"tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json"};

/// Returns the name of a folder's tokenizer file; the usual one when there is none.
std::string file_in(const std::string& folder) {
  std::error_code error;
  for (const char* name : kTokenizers)
    if (std::filesystem::exists(folder + "/" + name, error)) return name;
  return "tokenizer.json";
}

}  // namespace

bool is_tokenizer_file(const std::string& name) {
  const std::string file = std::filesystem::path(name).filename().string();
  return std::find(kTokenizers.begin(), kTokenizers.end(), file) != kTokenizers.end();
}

bool is_local_tokenizer(const std::string& name) {
  const bool is_path =
      is_local_folder(name) || is_tokenizer_file(name) || std::count(name.begin(), name.end(), '/') > 1;
  return is_path && !is_hub_name(name);
}

void emit_tokenizer(Mapper& mapper, const DocEntry& entry) {
  const std::string name = mapper.text_of(&entry.node), scheme = is_hub_name(name) ? "" : "hf://";
  if (is_local_tokenizer(name)) return emit_tokenizer_path(mapper, entry);
  if (const std::string problem = hub_name_problem(scheme + name); !problem.empty())
    return mapper.problem(entry, "names neither a folder nor a model of the hub: " + problem);
  mapper.emit(entry, "tokenizer",
              scheme.empty() ? mapper.expression(entry) : mapper.expression_after(scheme, entry));
}

void emit_tokenizer_path(Mapper& mapper, const DocEntry& entry) {
  const std::string path = mapper.text_of(&entry.node);
  if (is_hub_name(path) || is_tokenizer_file(path))
    return mapper.emit(entry, "tokenizer", mapper.expression(entry));
  mapper.emit(entry, "tokenizer",
              mapper.expression_with(entry, (path.ends_with('/') ? "" : "/") + file_in(path)));
}

void emit_titan_tokenizer(Mapper& mapper, const DocEntry& entry) {
  constexpr std::string_view kDownloaded = "assets/hf/";
  const std::string path = mapper.text_of(&entry.node);
  const size_t at = path.find(kDownloaded);
  const std::string name = at == path.npos ? "" : path.substr(at + kDownloaded.size());
  std::error_code error;
  if (!name.starts_with("Llama-") || name.find('/') != name.npos || std::filesystem::exists(path, error))
    return emit_tokenizer_path(mapper, entry);
  mapper.note(entry, "this folder is not here: the tokenizer is that of meta-llama/" + name + " on the hub");
  mapper.emit(entry, "tokenizer", lua_quoted("hf://meta-llama/" + name));
}

Json foundry_tokenizer_config(Mapper& mapper) {
  const DocNode* name = mapper.root().at("tokenizer.name");
  if (mapper.is_null(name) || !is_local_tokenizer(mapper.text_of(name))) return {};
  std::filesystem::path folder = mapper.text_of(name);
  if (is_tokenizer_file(folder)) folder = folder.parent_path();
  std::error_code error;
  const std::filesystem::path file = folder / "tokenizer_config.json";
  const auto size = std::filesystem::file_size(file, error);
  constexpr uintmax_t kLargest = 16 << 20;
  Json config = error || size > kLargest ? Json() : Json::parse(read_file(file), nullptr, false);
  if (!config.is_object()) config = Json::object();
  // Newer versions of transformers write the template beside it.
  if (std::filesystem::exists(folder / "chat_template.jinja", error)) config["chat_template"] = "in its file";
  return config;
}

}  // namespace tycho
