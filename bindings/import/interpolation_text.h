// The grammar of ${...} as OmegaConf has it: pieces of a text, their paths, and what Python makes of values.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bindings/import/document.h"

namespace tycho {

/// One piece of a text: literal, or the inside of ${...}, which may hold further ones.
struct Piece {
  bool is_path = false;
  std::string text;
};
/// A backslash before ${ makes it text, and is itself one where it is doubled. An open brace without its end
/// leaves a piece that is not a path and begins with "${"; see is_unclosed.
std::vector<Piece> pieces_of(const std::string& text);
/// How deep ${ lie inside each other, in time that is linear in the text.
int nesting_of(const std::string& text);
/// Whether a ${ is never closed.
bool is_unclosed(const std::string& text);

/// The inside of a text that is one ${...} and nothing else.
std::optional<std::string> whole_reference(const DocNode& node);

/// "a[1].b" and "[a][1].b" as a.1.b; "..x" at `here`, the path of the node that says so, as the x beside its
/// parent. Paths with a resolver (a:b) come back as they are.
std::string absolute_path(const std::string& path, const std::string& here);
/// A text whose references are all absolute, those inside others too.
std::string with_absolute_paths(const std::string& text, const std::string& here);

/// str() of a value: None, True, 0.0006, [1, 'a'].
std::string python_text(const DocNode& node);
/// The same of a scalar that has been read.
std::string python_text(const DocScalar& scalar);

}  // namespace tycho
