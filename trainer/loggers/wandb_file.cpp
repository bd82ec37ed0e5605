// Composes and reads the file of an offline run.
#include "trainer/loggers/wandb_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "trainer/base/hmac.h"
#include "trainer/loggers/wire_message.h"

namespace tycho {
namespace {

constexpr size_t kBlockBytes = 32768, kFrameBytes = 7;
constexpr char kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4;
constexpr std::string_view kFileHeader("\x3aW&B\xe1\xbe\x00", kFrameBytes);

uint32_t checksum(char type, std::string_view bytes) {
  const uLong begun = ::crc32(0, reinterpret_cast<const Bytef*>(&type), 1);
  return static_cast<uint32_t>(
      ::crc32(begun, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

/// Returns a number in the form of Python's json, where NaN and Infinity are words.
std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return Json(value).dump();
}

WireMessage item(std::string_view name, const std::string& json) {
  return WireMessage().text(2, name).text(16, json);
}

/// Returns the items of a history or summary, and those that wandb adds to every row.
WireMessage items(const WandbRow& row, double runtime_s) {
  WireMessage all;
  for (const auto& [name, value] : row.numbers.numbers) all.message(1, item(name, json_number(value)));
  for (const auto& [name, json] : row.tables) all.message(1, item(name, json));
  all.message(1, item("_timestamp", json_number(row.numbers.time_s)));
  all.message(1, item("_runtime", json_number(runtime_s)));
  all.message(1, item("_step", fmt::format("{}", row.numbers.step)));
  return all;
}

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

/// Returns a field of a message; nullopt when it is absent.
std::optional<WireReader::Field> field_of(std::string_view message, uint64_t number) {
  WireReader reader(message);
  while (const std::optional<WireReader::Field> field = reader.next())
    if (field->number == number) return field;
  return std::nullopt;
}

/// Returns the step of a record that is a row of the history, else -1.
int64_t step_of(std::string_view record) {
  const auto history = field_of(record, 2);
  const auto step = history ? field_of(history->bytes, 2) : std::nullopt;
  const auto number = step ? field_of(step->bytes, 1) : std::nullopt;
  if (history && step) return number ? static_cast<int64_t>(number->integer) : 0;
  return -1;
}

uint64_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

}  // namespace

std::string WandbBlocks::header() {
  offset_ = kFileHeader.size();
  return std::string(kFileHeader);
}

std::string WandbBlocks::piece(std::string_view bytes, char type) {
  offset_ += kFrameBytes + bytes.size();
  return little_endian(checksum(type, bytes), 4) + little_endian(bytes.size(), 2) + type + std::string(bytes);
}

std::string WandbBlocks::record(std::string_view bytes) {
  std::string out;
  bool first = true;
  do {
    size_t room = kBlockBytes - offset_ % kBlockBytes;
    if (room < kFrameBytes) {
      out.append(room, '\0');
      offset_ += room;
      room = kBlockBytes;
    }
    const size_t size = std::min(bytes.size(), room - kFrameBytes);
    const bool last = size == bytes.size();
    out += piece(bytes.substr(0, size), first ? (last ? kFull : kFirst) : (last ? kLast : kMiddle));
    bytes.remove_prefix(size);
    first = false;
    if (last) return out;
  } while (true);
}

std::string wandb_header_message(int64_t number) {
  const WireMessage version = WireMessage().text(1, "tycho").text(2, "0.70.0");
  return WireMessage().integer(1, number).message(21, WireMessage().message(1, version)).bytes();
}

std::string wandb_run_message(int64_t number, const WandbRun& run) {
  WireMessage config, message;
  for (const auto& [key, value] : run.config.items())
    config.message(
        1, WireMessage().text(1, key).text(16, value.dump(-1, ' ', false, Json::error_handler_t::replace)));
  // wandb fills this in, and W&B takes a run without it for one that never began: a later attempt would
  // replace what an earlier one has sent.
  config.message(1, WireMessage().text(1, "_wandb").text(16, "{}"));
  message.text(1, run.id);
  if (!run.entity.empty()) message.text(2, run.entity);
  message.text(3, run.project).message(4, config);
  if (!run.group.empty()) message.text(6, run.group);
  message.text(8, run.name);
  for (const std::string& tag : run.tags) message.text(10, tag);
  message.text(13, run.host);
  const double whole_s = std::floor(run.start_s);
  message.message(17, WireMessage()
                          .integer(1, static_cast<int64_t>(whole_s))
                          .integer(2, static_cast<int64_t>((run.start_s - whole_s) * 1e9)));
  if (run.resumes) message.integer(24, 1);
  return WireMessage().integer(1, number).message(17, message).bytes();
}

std::string wandb_history_message(int64_t number, const WandbRow& row, double runtime_s) {
  WireMessage history = items(row, runtime_s);
  history.message(2, WireMessage().integer(1, row.numbers.step));
  return WireMessage().integer(1, number).message(2, history).bytes();
}

std::string wandb_summary_message(int64_t number, const WandbRow& row, double runtime_s) {
  return WireMessage().integer(1, number).message(3, items(row, runtime_s)).bytes();
}

std::string wandb_file_message(int64_t number, const std::string& path) {
  const WireMessage file = WireMessage().text(1, path);
  return WireMessage().integer(1, number).message(6, WireMessage().message(1, file)).bytes();
}

WandbTableFile wandb_table_file(const NamedTable& table, int64_t step) {
  constexpr size_t kHashInName = 20;
  WandbTableFile file;
  file.text = split_form(table).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string hash = hex(sha256(file.text));
  file.path = fmt::format("media/table/{}_{}.table.json", step, hash.substr(0, kHashInName));
  const Json said = {{"_type", "table-file"},
                     {"path", file.path},
                     {"sha256", hash},
                     {"size", file.text.size()},
                     {"ncols", table.columns.size()},
                     {"nrows", table.rows.size()}};
  file.in_row = {table.name, said.dump()};
  return file;
}

std::string wandb_exit_message(int64_t number, int exit_code, double runtime_s) {
  WireMessage exit;
  if (exit_code != 0) exit.integer(1, exit_code);
  exit.integer(2, static_cast<int64_t>(runtime_s));
  return WireMessage().integer(1, number).message(18, exit).bytes();
}

int64_t last_wandb_step(std::string_view file) {
  int64_t last = -1;
  std::string record;
  if (!file.starts_with(kFileHeader)) return last;
  for (size_t at = kFileHeader.size(); at < file.size();) {
    const size_t room = kBlockBytes - at % kBlockBytes;
    if (room < kFrameBytes) {
      at += room;
      continue;
    }
    if (file.size() - at < kFrameBytes) break;
    const size_t size = number_at(file, at + 4, 2);
    const char type = file[at + 6];
    if (size > std::min(room, file.size() - at) - kFrameBytes || type < kFull || type > kLast) break;
    const std::string_view bytes = file.substr(at + kFrameBytes, size);
    if (number_at(file, at, 4) != checksum(type, bytes)) break;
    if (type == kFull || type == kFirst) record.clear();
    record += bytes;
    if (type == kFull || type == kLast) last = std::max(last, step_of(record));
    at += kFrameBytes + size;
  }
  return last;
}

}  // namespace tycho
