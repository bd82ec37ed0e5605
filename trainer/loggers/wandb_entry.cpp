// Reads records field by field; unknown fields are passed over.
#include "trainer/loggers/wandb_entry.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "trainer/loggers/wandb_blocks.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Reads the fields of a message from outside, one after the other.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  struct Field {
    uint64_t number = 0, integer = 0;
    std::string_view bytes;
  };
  /// Returns the next field; nullopt at the end, and for bytes that are no message.
  std::optional<Field> next() {
    const std::optional<uint64_t> tag = varint();
    if (!tag) return std::nullopt;
    Field field{.number = *tag >> 3};
    switch (*tag & 7) {
      case 0: {
        const std::optional<uint64_t> value = varint();
        if (!value) return std::nullopt;
        field.integer = *value;
        return field;
      }
      case 1: return take(8, field);
      case 5: return take(4, field);
      case 2: {
        const std::optional<uint64_t> length = varint();
        return length ? take(*length, field) : std::nullopt;
      }
      default: return std::nullopt;
    }
  }

 private:
  std::optional<Field> take(uint64_t length, Field field) {
    if (length > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return field;
  }
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

using Field = WireReader::Field;

template <class Take>
void for_each_field(std::string_view message, const Take& take) {
  WireReader reader(message);
  while (const std::optional<Field> field = reader.next()) take(*field);
}

/// Reads an item of a history, a config or statistics: its name is the field `name_field`.
NamedText item_in(std::string_view message, uint64_t name_field) {
  NamedText item;
  for_each_field(message, [&](const Field& field) {
    if (field.number == name_field) item.name = field.bytes;
    if (field.number == 16) item.text = field.bytes;
  });
  return item;
}

double seconds_in(std::string_view timestamp) {
  double seconds = 0;
  for_each_field(timestamp, [&](const Field& field) {
    if (field.number == 1) seconds += static_cast<double>(field.integer);
    if (field.number == 2) seconds += static_cast<double>(field.integer) * 1e-9;
  });
  return seconds;
}

WandbRun run_in(std::string_view message) {
  WandbRun run;
  for_each_field(message, [&](const Field& field) {
    const std::string text(field.bytes);
    switch (field.number) {
      case 1: run.id = text; break;
      case 2: run.entity = text; break;
      case 3: run.project = text; break;
      case 4:
        for_each_field(field.bytes, [&](const Field& update) {
          const NamedText item = item_in(update.bytes, 1);
          Json value = Json::parse(item.text, nullptr, /*allow_exceptions=*/false);
          if (item.name != "_wandb" && !value.is_discarded()) run.config[item.name] = std::move(value);
        });
        break;
      case 6: run.group = text; break;
      case 8: run.name = text; break;
      case 10: run.tags.push_back(text); break;
      case 13: run.host = text; break;
      case 17: run.start_s = seconds_in(field.bytes); break;
      default: break;
    }
  });
  return run;
}

WandbStepEntry step_in(std::string_view message) {
  WandbStepEntry row;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 1) row.items.push_back(item_in(field.bytes, 2));
    if (field.number == 2)
      for_each_field(field.bytes, [&](const Field& step) {
        if (step.number == 1) row.step = static_cast<int64_t>(step.integer);
      });
  });
  return row;
}

WandbSystemEntry system_in(std::string_view message) {
  WandbSystemEntry entry;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 2) entry.time_s = seconds_in(field.bytes);
    if (field.number == 3) entry.items.push_back(item_in(field.bytes, 1));
  });
  return entry;
}

WandbFilesEntry files_in(std::string_view message) {
  WandbFilesEntry entry;
  for_each_field(message, [&](const Field& file) {
    for_each_field(file.bytes, [&](const Field& field) {
      if (field.number == 1) entry.paths.emplace_back(field.bytes);
    });
  });
  return entry;
}

WandbAlertEntry alert_in(std::string_view message) {
  WandbAlertEntry entry;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 1) entry.title = field.bytes;
    if (field.number == 2) entry.text = field.bytes;
    if (field.number == 3) entry.level = field.bytes;
  });
  return entry;
}

void read_manifest(std::string_view message, WandbArtifact& artifact) {
  for_each_field(message, [&](const Field& entry) {
    if (entry.number != 4) return;
    for_each_field(entry.bytes, [&](const Field& field) {
      if (field.number == 1) artifact.entry = field.bytes;
      if (field.number == 3) artifact.reference = field.bytes;
    });
  });
}

WandbArtifact artifact_in(std::string_view message) {
  WandbArtifact artifact;
  for_each_field(message, [&](const Field& field) {
    const std::string text(field.bytes);
    switch (field.number) {
      case 4: artifact.type = text; break;
      case 5: artifact.name = text; break;
      case 6: artifact.digest = text; break;
      case 8: artifact.metadata = Json::parse(text, nullptr, /*allow_exceptions=*/false); break;
      case 11: artifact.aliases.push_back(text); break;
      case 12: read_manifest(field.bytes, artifact); break;
      default: break;
    }
  });
  return artifact;
}

WandbExitEntry exit_in(std::string_view message) {
  WandbExitEntry entry;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 1) entry.exit_code = static_cast<int>(field.integer);
  });
  return entry;
}

}  // namespace

double WandbStepEntry::runtime_s() const {
  for (const NamedText& item : items)
    if (item.name == "_runtime") return std::strtod(item.text.c_str(), nullptr);
  return 0;
}

WandbEntry read_wandb_entry(std::string_view record) {
  WandbEntry entry;
  for_each_field(record, [&](const Field& field) {
    switch (field.number) {
      case 2: entry = step_in(field.bytes); break;
      case 6: entry = files_in(field.bytes); break;
      case 7: entry = system_in(field.bytes); break;
      case 8: entry = artifact_in(field.bytes); break;
      case 10: entry = alert_in(field.bytes); break;
      case 17: entry = run_in(field.bytes); break;
      case 18: entry = exit_in(field.bytes); break;
      default: break;
    }
  });
  return entry;
}

WandbEnd end_of_wandb_files(const std::vector<std::string>& paths) {
  WandbEnd end;
  for (const std::string& path : paths) {
    end.has_exit = false;
    WandbBlockFile file(path);
    while (const std::optional<std::string> record = file.next()) {
      const WandbEntry entry = read_wandb_entry(*record);
      if (const auto* row = std::get_if<WandbStepEntry>(&entry); row && row->step > end.step)
        end.step = row->step, end.runtime_s = row->runtime_s();
      if (const auto* artifact = std::get_if<WandbArtifact>(&entry)) end.artifacts.insert(artifact->digest);
      end.has_exit = end.has_exit || std::holds_alternative<WandbExitEntry>(entry);
    }
  }
  return end;
}

std::vector<std::string> wandb_files(const std::string& dir, const std::string& id) {
  std::vector<std::pair<std::string, std::string>> found;  // begin of the attempt, and path
  std::error_code ignored;
  for (const fs::directory_entry& folder : fs::directory_iterator(dir, ignored))
    for (const char* ending : {".wandb", ".online"}) {
      const fs::path file = folder.path() / ("run-" + id + ending);
      const std::string name = folder.path().filename().string();
      const size_t begin = name.find("run-");
      if (begin != std::string::npos && fs::exists(file))
        found.emplace_back(name.substr(begin), file.string());
    }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [begin, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace tycho
