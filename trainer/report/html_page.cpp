// Puts pages together.
#include "trainer/report/html_page.h"

#include <fmt/format.h>

#include "trainer/report/svg.h"

namespace tycho {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1d1d1f; max-width: 1140px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2.4rem; margin: 1rem 0 }
.facts div { min-width: 7rem } .facts b { display: block; font-size: 1.35rem; font-weight: 600 } .facts span { color: #666 }
.verdict { border-left: 4px solid #3b528b; padding: .4rem .9rem; background: #f4f5f9 }
table { border-collapse: collapse; font-size: .9rem; display: block; overflow-x: auto } td, th { padding: .25rem .8rem .25rem 0; text-align: left;
border-bottom: 1px solid #e6e6e6; white-space: nowrap; font-variant-numeric: tabular-nums } th { color: #666; font-weight: 500 }
.legend span { display: inline-block; margin-right: 1.2rem } .legend i { display: inline-block; width: 1.1rem; height: .3rem; margin-right: .4rem;
vertical-align: middle }
.plots { display: flex; flex-wrap: wrap; gap: .5rem } svg { max-width: 100%; height: auto; font: 11px system-ui, sans-serif }
svg text { fill: #555 } svg .title { font-size: 13px; font-weight: 600; fill: #1d1d1f } svg .label { fill: #333; font-size: 12px }
svg .frame { fill: #fff; stroke: #d5d5d5 } svg .tick { stroke: #efefef } svg .axis { stroke: #555 }
svg .ground { fill: #fff; fill-opacity: .85 } svg .legend { fill: #666 } svg .beyond { stroke: #fff; stroke-width: .5px }
svg .inner { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round }
footer { color: #888; margin-top: 2.5rem; font-size: .85rem }
)";

}  // namespace

std::string html_page(const std::string& title, const std::string& summary,
                      const std::vector<PageFact>& facts, const std::string& body,
                      const std::string& footer) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</"
      "h1>\n<div>{2}</div>\n<div class=\"facts\">",
      escape_html(title), kStyle, escape_html(summary));
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
