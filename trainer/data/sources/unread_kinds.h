// Kinds of files that contain text or tokens but are not read as texts.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tycho {

/// A format that contains text but is not read, with advice how to make text or JSONL of it.
struct UnreadKind {
  std::string_view ending, magic, name, advice;
  size_t magic_at = 0;
};

/// Returns the kind of files with this name, in lower case and without .gz or .zst; nullptr if there is none.
const UnreadKind* unread_kind_by_name(const std::string& name);
/// Returns the kind of files that begin with these bytes; nullptr if there is none.
const UnreadKind* unread_kind_by_content(std::string_view head);
/// Throws the Error (kUnusable) that the file is not read, with advice. `in_folder`: the file was found in a
/// folder.
[[noreturn]] void refuse(const std::string& path, const UnreadKind& kind, bool in_folder);

}  // namespace tycho
