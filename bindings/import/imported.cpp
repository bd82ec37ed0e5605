// Which files are of other systems, by their names.
#include "bindings/import/imported.h"

#include <cctype>
#include <filesystem>

namespace tycho {

std::string name_of_file(const std::string& file) {
  std::string name;
  for (const char c : std::filesystem::path(file).stem().string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_rest_of_character = (byte & 0xC0) == 0x80;
    if (is_rest_of_character) continue;
    name += std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '-' ? c : '-';
  }
  return name.empty() || std::isalnum(static_cast<unsigned char>(name[0])) == 0 ? "imported" : name;
}

bool is_foreign_recipe(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml") || is_toml(file);
}

}  // namespace tycho
