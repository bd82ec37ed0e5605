// The grammar of ${...} as OmegaConf has it: pieces of a text, their paths, and what Python makes of values.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bindings/import/document.h"

namespace tycho {

/// One piece of a text: a literal, or the inside of ${...}, which may contain further ones.
struct Piece {
  bool is_path = false;
  std::string text;
};
/// Splits a text into pieces. A backslash before ${ makes it literal; a doubled backslash is a literal one.
/// An unclosed ${ gives a literal piece that begins with "${"; see is_unclosed.
std::vector<Piece> pieces_of(const std::string& text);
/// Returns the maximum nesting depth of ${, in time linear in the text.
int nesting_of(const std::string& text);
/// Returns true when a ${ is never closed.
bool is_unclosed(const std::string& text);

/// Returns the inside of a text that is exactly one ${...}; nullopt for other texts.
std::optional<std::string> whole_reference(const DocNode& node);

/// Returns "a[1].b" and "[a][1].b" as a.1.b, and "..x" at `here`, the path of the referring node, as the x
/// beside its parent. Paths with a resolver (a:b) are returned unchanged.
std::string absolute_path(const std::string& path, const std::string& here);
/// Returns a text with all its references made absolute, including nested ones.
std::string with_absolute_paths(const std::string& text, const std::string& here);

/// Returns Python's str() of a value: None, True, 0.0006, [1, 'a'].
std::string python_text(const DocNode& node);
std::string python_text(const DocScalar& scalar);

}  // namespace tycho
