// Puts pages together.
#include "trainer/report/html_page.h"

#include <fmt/format.h>

#include "trainer/report/page_files.h"
#include "trainer/report/svg.h"

namespace tycho {
namespace {

std::string_view style() {
  for (const PageFile& file : page_files())
    if (std::string_view(file.name) == "page.css") return file.text;
  return "";
}

}  // namespace

std::string html_page(const std::string& title, const std::string& summary,
                      const std::vector<PageFact>& facts, const std::string& body,
                      const std::string& footer) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</"
      "h1>\n<div>{2}</div>\n<div class=\"facts\">",
      escape_html(title), style(), escape_html(summary));
  for (const PageFact& fact : facts)
    text +=
        fmt::format("<div><b>{}</b><span>{}</span></div>", escape_html(fact.value), escape_html(fact.name));
  return text + "</div>\n" + body + fmt::format("<footer>{}</footer>\n</body></html>\n", escape_html(footer));
}

std::string html_section(const std::string& title, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", escape_html(title), content);
}

std::string html_plots(const std::string& drawings) {
  return drawings.empty() ? "" : "<div class=\"plots\">" + drawings + "</div>";
}

std::string html_legend(const std::vector<std::pair<std::string, std::string>>& colors_and_names) {
  if (colors_and_names.size() < 2) return "";
  std::string text = "<p class=\"legend\">";
  for (const auto& [color, name] : colors_and_names)
    text += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", color, escape_html(name));
  return text + "</p>\n";
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<table>\n";
  for (const auto& row : rows) {
    const char* tag = &row == &rows.front() ? "th" : "td";
    text += "<tr>";
    for (const std::string& cell : row) text += fmt::format("<{0}>{1}</{0}>", tag, escape_html(cell));
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

}  // namespace tycho
