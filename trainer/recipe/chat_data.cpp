// Values derived from the keys of data for finetuning.
#include "trainer/recipe/chat_data.h"

#include <string>
#include <string_view>

namespace tycho {

std::optional<std::chrono::year_month_day> ChatConfig::template_day() const {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (template_date.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = template_date[i] >= '0' && template_date[i] <= '9';
    if (kForm[i] == 'd' ? !is_digit : template_date[i] != '-') return std::nullopt;
  }
  const std::chrono::year_month_day day(
      std::chrono::year(std::stoi(template_date.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(std::stoi(template_date.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(std::stoi(template_date.substr(8, 2)))));
  return day.ok() ? std::optional(day) : std::nullopt;
}

std::string ChatConfig::remote_ending() const {
  for (const char* kind : {".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"})
    for (const char* compression : {"", ".gz", ".zst", ".zstd"})
      if (const std::string ending = std::string(kind) + compression; remote.ends_with(ending)) return ending;
  return "";
}

std::string ChatConfig::rows_text() const {
  if (packs_batches()) return "; packed batch by batch, attention within examples";
  return pack ? "; rows of several examples, attention stays within each" : "; rows of one example each";
}

}  // namespace tycho
