// Where other systems name a tokenizer, they mean the hub, a folder, or a file in it.
#include <filesystem>

#include "bindings/import/systems.h"

namespace tycho {

bool is_tokenizer_file(const std::string& name) {
  const std::string file = std::filesystem::path(name).filename().string();
  return file == "tokenizer.json" || file == "tokenizer.model";
}

bool is_local_tokenizer(const std::string& name) { return is_local_folder(name) || is_tokenizer_file(name); }

void emit_tokenizer(Mapper& mapper, const DocEntry& entry) {
  const std::string path = mapper.text_of(&entry.node);
  const char* rest = is_tokenizer_file(path) ? ""
                     : path.ends_with('/')   ? "tokenizer.json"
                                             : "/tokenizer.json";
  mapper.emit(entry, "tokenizer",
              *rest == '\0' ? mapper.expression(entry) : mapper.expression_with(entry, rest));
}

}  // namespace tycho
