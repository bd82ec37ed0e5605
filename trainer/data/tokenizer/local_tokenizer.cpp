// Files of a tokenizer belong together: all of them come from one commit.
#include "trainer/data/tokenizer/local_tokenizer.h"

#include <fmt/ranges.h>

#include <array>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/tekken.h"
#include "trainer/data/tokenizer/vocab_files.h"
#include "trainer/hub/hub_files.h"

namespace tycho {
namespace {

constexpr std::array kTokenizers = {kTokenizerFile, kSentencePieceFile, kVocabFile, kTekkenFile};
constexpr std::array kBeside = {kTokenizerConfigFile, kSpecialTokensMapFile, kAddedTokensFile, kMergesFile,
                                "chat_template.jinja"};

/// Returns the path of the tokenizer's file in its repository.
std::string file_of(const HubSnapshot& snapshot, const HubName& name) {
  if (snapshot.find(name.path) != nullptr) return name.path;
  const std::string folder = name.path.empty() ? "" : name.path + "/";
  for (const char* file : kTokenizers)
    if (snapshot.find(folder + file) != nullptr) return folder + file;
  fail(ExitCode::kUnusable,
       "[tokenizer] expected a tokenizer.json, tokenizer.model, vocab.json or tekken.json in {}, got none at "
       "{}: name the file",
       name.text(), snapshot.commit());
}

}  // namespace

std::string local_tokenizer(const std::string& name) {
  if (!is_hub_name(name)) return name;
  const HubName parsed = parse_hub_name(name);
  const HubSnapshot snapshot = open_hub(parsed);
  const std::string file = file_of(snapshot, parsed), folder = file.substr(0, file.rfind('/') + 1);
  for (const char* beside : kBeside)
    if (snapshot.find(folder + beside) != nullptr) hub_file(snapshot, folder + beside);
  return hub_file(snapshot, file);
}

std::string folder_as_tokenizer(const std::string& folder) {
  std::error_code error;
  for (const char* file : kTokenizers)
    if (std::filesystem::exists(std::filesystem::path(folder) / file, error))
      return fmt::format("{} is a folder; name the file in it: \"{}/{}\"", folder, folder, file);
  return fmt::format("{} is a folder without a tokenizer; expected a file named {}", folder,
                     fmt::join(kTokenizers, ", "));
}

}  // namespace tycho
