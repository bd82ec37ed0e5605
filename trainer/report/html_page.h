// A page of HTML in one file: tables and drawings, no other files. Torch-free.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// A number at the top of a page, and its name.
struct PageFact {
  std::string value, name;
};

/// Makes a page. Escapes texts; `body` is HTML. `summary` is a line below the title.
std::string html_page(const std::string& title, const std::string& summary,
                      const std::vector<PageFact>& facts, const std::string& body, const std::string& footer);
/// Returns a heading and the HTML below it; "" for no content.
std::string html_section(const std::string& title, const std::string& content);
/// Places drawings side by side as far as they fit.
std::string html_plots(const std::string& drawings);
/// Returns a line of names, each behind a mark in its colour ("#440154"); "" for fewer than two.
std::string html_legend(const std::vector<std::pair<std::string, std::string>>& colors_and_names);
/// Makes a table whose first row is the header.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tycho
