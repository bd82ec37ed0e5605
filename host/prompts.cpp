// Reads prompts line by line, so that a bad line of a .jsonl can be named.
#include "host/prompts.h"

#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

std::string prompt_of(const std::string& line, const std::string& place) {
  const Json json = parse_json(line, place);
  if (!json.is_object() || !json.contains("prompt") || !json.at("prompt").is_string())
    fail(ExitCode::kUnusable, "[{}] expected an object with a text called \"prompt\"", place);
  return json.at("prompt").get<std::string>();
}

}  // namespace

std::vector<std::string> read_prompts(const std::string& path) {
  std::istringstream lines(read_typed_file(path));
  std::vector<std::string> prompts;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    prompts.push_back(path.ends_with(".jsonl") ? prompt_of(line, fmt::format("{}:{}", path, number)) : line);
  }
  if (prompts.empty()) fail(ExitCode::kUnusable, "[prompts] {} has no line with a prompt", path);
  return prompts;
}

}  // namespace tycho
