// A page in Markdown as text for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Returns the page with paragraphs, lists and tables wrapped at `columns` columns. Headings are underlined,
/// code is indented by four columns and never wrapped, links keep their text, comments are left out.
std::string plain_page(std::string_view markdown, size_t columns);

}  // namespace tycho
