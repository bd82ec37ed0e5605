// Names of repositories on the Hugging Face hub, and of folders and files in them.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// A parsed name: hf://[datasets/|models/]OWNER/NAME[@REVISION][/PATH], the grammar of huggingface_hub 2.x.
/// In addition, names without an owner, such as hf://gpt2: the hub says where they have moved.
struct HubName {
  enum class Kind { kModel, kDataset };
  Kind kind = Kind::kModel;
  std::string id;        // "OWNER/NAME", or "NAME"
  std::string revision;  // branch, tag, commit or ref, decoded; "" for main
  std::string path;      // inside the repository; "" for all of it

  /// Returns the name in its shortest form, which parses to the same value.
  std::string text() const;
  /// Returns the name of the repository alone: "hf://datasets/OWNER/NAME".
  std::string repository() const;
  /// Returns this name with another revision.
  HubName at(const std::string& other_revision) const;
  /// Returns the name of something in this folder; this name for "".
  HubName below(const std::string& inside) const;
  bool operator==(const HubName&) const = default;
};

/// True if the text begins with hf://.
bool is_hub_name(std::string_view text);

/// True if the text is the hash of a commit: 40 hex digits.
bool is_commit(std::string_view text);

/// Says what is wrong with a text that begins with hf://, and what to write instead. Returns "" if nothing
/// is.
std::string hub_name_problem(const std::string& text);

/// Parses a name. Throws Error (kUnusable) with hub_name_problem().
HubName parse_hub_name(const std::string& text);

}  // namespace tycho
