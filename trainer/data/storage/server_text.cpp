// Finds the code and message of an error's XML.
#include "trainer/data/storage/server_text.h"

#include <string_view>

#include "trainer/http/answer_line.h"

namespace tycho {

std::string shown_server_text(const std::string& text) {
  const auto tag = [&](std::string_view name) -> std::string {
    const size_t begin = text.find("<" + std::string(name) + ">");
    const size_t end = text.find("</" + std::string(name) + ">");
    if (begin == text.npos || end == text.npos || end < begin) return "";
    return text.substr(begin + name.size() + 2, end - begin - name.size() - 2);
  };
  std::string shown = tag("Code");
  if (const std::string message = tag("Message"); !message.empty())
    shown += (shown.empty() ? "" : ": ") + message;
  if (shown.empty() && text.find('<') == text.npos) shown = text;
  std::string line = answer_line(shown);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace tycho
