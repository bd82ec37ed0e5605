// Reads the Markdown of docs/: headings, paragraphs, lists, fenced code, tables, comments; `, ** and links.
#include "host/help/plain_page.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace tycho {
namespace {

constexpr size_t kNarrowest = 8;  // columns of a table's cell

/// Returns the number of code points, each of which takes one column.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// Returns how many bytes the first `columns` columns of a text have.
size_t bytes_of(std::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t column = 0; at < text.size() && column < columns; ++column) do
      ++at;
    while (at < text.size() && (text[at] & 0xc0) == 0x80);
  return at;
}

/// Returns the text without the marks of bold words and links. Code in backticks stays as it is.
std::string without_marks(std::string_view text) {
  std::string out;
  bool is_code = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`') is_code = !is_code;
    if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '|') continue;
    if (!is_code && text.substr(at, 2) == "**") {
      ++at;
      continue;
    }
    const size_t middle = !is_code && text[at] == '[' ? text.find("](", at) : std::string_view::npos;
    const size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
    if (end == std::string_view::npos) {
      out += text[at];
      continue;
    }
    const std::string_view target = text.substr(middle + 2, end - middle - 2);
    out += without_marks(text.substr(at + 1, middle - at - 1));
    if (target.starts_with("http")) out += " <" + std::string(target) + ">";
    at = end;
  }
  return out;
}

/// Returns the words of a text in lines of at most `columns` columns. A word that is longer is cut only if
/// `cuts_words`.
std::vector<std::string> lines_of_words(const std::string& text, size_t columns, bool cuts_words) {
  std::vector<std::string> lines = {""};
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > columns) lines.emplace_back();
    for (; cuts_words && width_of(word) > columns; word.erase(0, bytes_of(word, columns))) {
      lines.back() = word.substr(0, bytes_of(word, columns));
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

using Row = std::vector<std::string>;

/// Returns the cells of "| a | b |". A | in backticks, or after a backslash, belongs to its cell.
Row cells_of(std::string_view line) {
  Row cells(1);
  bool is_code = false;
  for (size_t at = 1; at < line.size(); ++at) {
    if (line[at] == '`') is_code = !is_code;
    const bool ends = line[at] == '|' && line[at - 1] != '\\' && !is_code;
    if (ends && at + 1 < line.size()) cells.emplace_back();
    if (!ends) cells.back() += line[at];
  }
  for (std::string& cell : cells) {
    cell = without_marks(cell);
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
  }
  return cells;
}

bool is_rule(const Row& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
    return !cell.empty() && cell.find_first_not_of("-: ") == std::string::npos;
  });
}

/// Returns the widths of the columns; the widest give way until the table fits.
std::vector<size_t> widths_of(const std::vector<Row>& rows, size_t columns) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const size_t width : widths) total += width;
  for (; total > columns; --total) {
    size_t& widest = *std::max_element(widths.begin(), widths.end());
    if (widest <= kNarrowest) break;
    --widest;
  }
  return widths;
}

std::string table_text(const std::vector<Row>& rows, size_t columns) {
  const std::vector<size_t> widths = widths_of(rows, columns);
  std::string text;
  for (const Row& row : rows) {
    std::vector<Row> cells;
    size_t height = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      cells.push_back(is_rule(row) ? Row{std::string(widths[i], '-')}
                                   : lines_of_words(row[i], widths[i], true));
      height = std::max(height, cells.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      std::string out;
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::string part = line < cells[i].size() ? cells[i][line] : "";
        out +=
            (i == 0 ? "" : "  ") + part + std::string(widths[i] - std::min(widths[i], width_of(part)), ' ');
      }
      text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text;
}

/// Returns the columns of a list's mark and the blanks before it ("- ", "12. "); 0 for other lines.
size_t mark_of(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return 0;
  if (line.compare(begin, 2, "- ") == 0 || line.compare(begin, 2, "* ") == 0) return begin + 2;
  const size_t end = line.find_first_not_of("0123456789", begin);
  return end != begin && end != std::string::npos && line.compare(end, 2, ". ") == 0 ? end + 2 : 0;
}

class Page {
 public:
  explicit Page(size_t columns) : columns_(columns) {}

  void add(const std::string& line) {
    const bool is_fence =
        line.find("```") == line.find_first_not_of(' ') && line.find("```") != std::string::npos;
    if (is_fence || is_code_) {
      end_block();
      is_code_ = is_code_ != is_fence;
      if (!is_fence) text_ += line.empty() ? "\n" : "    " + line + "\n";
    } else if (is_comment_ || line.starts_with("<!--")) {
      is_comment_ = line.find("-->") == std::string::npos;
    } else if (line.starts_with("|")) {
      end_words();
      rows_.push_back(cells_of(line));
    } else if (line.starts_with("#")) {
      add_heading(line);
    } else {
      add_words(line);
    }
  }

  std::string take() {
    end_block();
    return std::move(text_);
  }

 private:
  void add_heading(const std::string& line) {
    end_block();
    const size_t level = line.find_first_not_of('#');
    if (level == std::string::npos) return;
    const std::string title = without_marks(line.substr(line.find_first_not_of(' ', level)));
    text_ += title + "\n" + std::string(width_of(title), level == 1 ? '=' : '-') + "\n";
  }

  void add_words(const std::string& line) {
    if (const size_t mark = mark_of(line); mark > 0 || line.find_first_not_of(' ') == std::string::npos) {
      end_block();
      head_ = line.substr(0, mark);
      if (mark == 0) text_ += "\n";
    }
    if (!rows_.empty()) end_block();
    words_ += line.substr(head_.empty() || !words_.empty() ? 0 : head_.size()) + " ";
  }

  void end_words() {
    if (words_.find_first_not_of(' ') != std::string::npos) {
      bool is_first = true;
      const size_t room = columns_ - std::min(columns_, head_.size());
      for (const std::string& line : lines_of_words(without_marks(words_), room, false)) {
        text_ += (is_first ? head_ : std::string(head_.size(), ' ')) + line + "\n";
        is_first = false;
      }
    }
    words_.clear();
    head_.clear();
  }

  void end_block() {
    end_words();
    // A first row without words only names columns.
    if (rows_.size() > 1 && is_rule(rows_[1]) &&
        std::all_of(rows_[0].begin(), rows_[0].end(), [](const std::string& cell) { return cell.empty(); }))
      rows_.erase(rows_.begin(), rows_.begin() + 2);
    text_ += table_text(rows_, columns_);
    rows_.clear();
  }

  size_t columns_;
  bool is_code_ = false, is_comment_ = false;
  std::string text_, words_, head_;
  std::vector<Row> rows_;
};

}  // namespace

std::string plain_page(std::string_view markdown, size_t columns) {
  Page page(columns);
  std::istringstream stream{std::string(markdown)};
  for (std::string line; std::getline(stream, line);) page.add(line);
  return page.take();
}

}  // namespace tycho
