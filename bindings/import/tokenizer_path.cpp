// Where other systems name a tokenizer, they mean the hub, a folder, or a file in it.
#include <filesystem>

#include "bindings/import/systems.h"
#include "trainer/base/file_ops.h"

namespace tycho {

bool is_tokenizer_file(const std::string& name) {
  const std::string file = std::filesystem::path(name).filename().string();
  return file == "tokenizer.json" || file == "tokenizer.model" || file == "vocab.json";
}

namespace {

/// Returns the name of a folder's tokenizer file; the usual one when there is none.
std::string file_in(const std::string& folder) {
  std::error_code error;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.json"})
    if (std::filesystem::exists(folder + "/" + name, error)) return name;
  return "tokenizer.json";
}

}  // namespace

bool is_local_tokenizer(const std::string& name) { return is_local_folder(name) || is_tokenizer_file(name); }

void emit_tokenizer(Mapper& mapper, const DocEntry& entry) {
  const std::string path = mapper.text_of(&entry.node);
  if (is_tokenizer_file(path)) return mapper.emit(entry, "tokenizer", mapper.expression(entry));
  mapper.emit(entry, "tokenizer",
              mapper.expression_with(entry, (path.ends_with('/') ? "" : "/") + file_in(path)));
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
