// A message is its size, a header as a flatbuffer, and a body.
#include "trainer/data/sources/arrow/arrow_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "trainer/base/file_ops.h"
#include "trainer/data/sources/arrow/arrow_batch.h"

namespace tycho {
namespace {

constexpr std::string_view kFileMagic = "ARROW1";
constexpr int64_t kFileHeaderBytes = 8;
constexpr int64_t kMostHeaderBytes = int64_t{256} << 20;
enum HeaderKind : uint8_t { kSchemaMessage = 1, kDictionaryMessage = 2, kBatchMessage = 3 };

/// Returns the message of an Error without its tag.
std::string_view cause_of(const Error& error) {
  const std::string_view what = error.what();
  return what.substr(what.starts_with('[') ? what.find(' ') + 1 : 0);
}

/// Returns a field below `field` whose values are not read; nullptr if there is none.
const ArrowField* unread_field(const ArrowField& field) {
  const bool is_nested = !field.children.empty();
  if (field.dictionary && is_nested) return &field;
  const bool is_other = field.kind == ArrowKind::kOtherFixed || field.kind == ArrowKind::kOtherUnion ||
                        field.kind == ArrowKind::kOtherRuns;
  const bool is_binary =
      (field.kind == ArrowKind::kBytes || field.kind == ArrowKind::kViews) && !field.is_text;
  if (is_other || is_binary) return &field;
  for (const ArrowField& child : field.children)
    if (const ArrowField* found = unread_field(child)) return found;
  return nullptr;
}

/// True if a row takes bytes of the file, so that the file bounds their number.
bool takes_bytes(const ArrowField& field) {
  if (field.kind == ArrowKind::kNull) return field.dictionary.has_value();
  if (field.kind == ArrowKind::kFixedList) return field.list_size > 0 && takes_bytes(field.children[0]);
  if (field.kind == ArrowKind::kStruct) return std::ranges::any_of(field.children, takes_bytes);
  return true;
}

}  // namespace

struct ArrowFile::Message {
  std::string header;
  int64_t body_begin = 0, body_bytes = 0;
  uint8_t kind = 0;
  int version = 0;

  FlatTable table() const {
    const auto found = FlatTable::root(header).table(2);
    if (!found) fail(ExitCode::kUnusable, "[arrow] a message has no header");
    return *found;
  }
};

ArrowFile::ArrowFile(const std::string& path) : path_(std::make_shared<const std::string>(path)) {
  std::error_code error;
  num_bytes_ = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path, error.message());
  try {
    check_end();
    read_schema();
  } catch (const Error& broken) {
    if (std::string_view(broken.what()).starts_with("[data]")) throw;
    fail(ExitCode::kUnusable, "[data] {} cannot be read as Arrow: {}; copy or download it again", path,
         cause_of(broken));
  }
}

/// Checks that the file is whole: an Arrow file ends with its magic word, a stream with an empty message.
void ArrowFile::check_end() {
  std::array<char, 8> head{}, tail{};
  if (num_bytes_ >= 2 * std::ssize(head)) {
    read_exactly(path(), 0, head.data(), head.size());
    read_exactly(path(), num_bytes_ - std::ssize(tail), tail.data(), tail.size());
  }
  const std::string_view begin(head.data(), head.size()), end(tail.data(), tail.size());
  if (begin.starts_with(kFileMagic)) position_ = kFileHeaderBytes;
  const bool is_file = position_ > 0, is_stream = begin.starts_with("\xFF\xFF\xFF\xFF");
  if (is_file ? end.ends_with(kFileMagic)
              : is_stream && end == std::string_view("\xFF\xFF\xFF\xFF\0\0\0\0", 8))
    return;
  fail(ExitCode::kUnusable,
       "[data] {} is not a whole Arrow {}: its {} is missing; copy or download it again, or let the program "
       "that writes it close it",
       path(), is_file ? "file" : "stream", is_file || is_stream ? "end" : "beginning");
}

std::optional<ArrowFile::Message> ArrowFile::read_message() {
  std::array<int32_t, 2> sizes{};  // a marker, and the bytes of the header
  if (num_bytes_ - position_ < 8) fail(ExitCode::kUnusable, "[arrow] it ends too early");
  read_exactly(path(), position_, sizes.data(), sizeof sizes);
  if (sizes[0] != -1) fail(ExitCode::kUnusable, "[arrow] there is no message at byte {}", position_);
  if (sizes[1] == 0) return std::nullopt;
  const int64_t begin = position_ + 8;
  if (sizes[1] < 0 || sizes[1] > std::min(kMostHeaderBytes, num_bytes_ - begin))
    fail(ExitCode::kUnusable, "[arrow] the header at byte {} has {} bytes", begin, sizes[1]);
  Message message;
  message.header.resize(static_cast<size_t>(sizes[1]));
  read_exactly(path(), begin, message.header.data(), message.header.size());
  const FlatTable table = FlatTable::root(message.header);
  message.version = table.scalar<int16_t>(0, 0);
  message.kind = table.scalar<uint8_t>(1, 0);
  message.body_bytes = table.scalar<int64_t>(3, 0);
  message.body_begin = begin + sizes[1];
  if (message.body_bytes < 0 || message.body_bytes > num_bytes_ - message.body_begin)
    fail(ExitCode::kUnusable, "[arrow] the batch at byte {} has {} bytes", message.body_begin,
         message.body_bytes);
  position_ = message.body_begin + message.body_bytes;
  return message;
}

void ArrowFile::read_schema() {
  const std::optional<Message> message = read_message();
  if (!message || message->kind != kSchemaMessage) fail(ExitCode::kUnusable, "[arrow] it has no schema");
  schema_ = read_arrow_schema(message->table());
  for (const ArrowField& field : schema_.children) add_dictionaries(field);
}

void ArrowFile::add_dictionaries(const ArrowField& field) {
  if (field.dictionary) {
    ArrowField values = field;
    values.dictionary.reset();
    dictionary_fields_.try_emplace(*field.dictionary, std::move(values));
  }
  for (const ArrowField& child : field.children) add_dictionaries(child);
}

void ArrowFile::choose(const std::vector<size_t>& columns) {
  for (const size_t column : columns) {
    const ArrowField& field = schema_.children.at(column);
    const ArrowField* unread = unread_field(field);
    if (unread == nullptr && !takes_bytes(field)) unread = &field;
    if (unread != nullptr)
      fail(ExitCode::kUnusable,
           "[data] {}: column \"{}\" holds {}, which are not read; write it as texts, or leave it out",
           path(), unread->path,
           unread == &field && !takes_bytes(field) ? "only nulls" : kind_of_values(*unread));
  }
  chosen_ = columns;
}

ArrowColumn ArrowFile::chosen(ArrowColumn column) {
  if (column.field->dictionary) {
    const auto found = dictionaries_.find(*column.field->dictionary);
    if (found != dictionaries_.end()) column.dictionary = found->second;
  }
  for (ArrowColumn& child : column.children) child = chosen(std::move(child));
  return column;
}

void ArrowFile::take_dictionary(const Message& message) {
  const FlatTable table = message.table();
  const auto id = table.scalar<int64_t>(0, 0);
  const auto field = dictionary_fields_.find(id);
  const auto batch = table.table(1);
  if (field == dictionary_fields_.end() || !batch)
    fail(ExitCode::kUnusable, "[arrow] a dictionary belongs to no column ({})", id);
  if (!field->second.children.empty()) return;  // not read: see unread_field
  ArrowBatch values(*batch, message.version, path_, message.body_begin, message.body_bytes);
  auto& parts = dictionaries_[id];
  const bool adds = table.scalar<uint8_t>(2, 0) != 0;
  // Batches before this one keep the dictionary that they had.
  parts = adds && parts != nullptr ? std::make_shared<std::vector<ArrowColumn>>(*parts)
                                   : std::make_shared<std::vector<ArrowColumn>>();
  parts->push_back(values.take(field->second, true));
}

void ArrowFile::take_batch(const Message& message) {
  ArrowBatch batch(message.table(), message.version, path_, message.body_begin, message.body_bytes);
  std::vector<ArrowColumn> all;
  for (size_t i = 0; i < schema_.children.size(); ++i) {
    const bool is_chosen = std::ranges::find(chosen_, i) != chosen_.end();
    all.push_back(batch.take(schema_.children[i], is_chosen));
    if (all.back().length != batch.num_rows())
      fail(ExitCode::kUnusable, "[arrow] column \"{}\" has {} values in a batch of {} rows",
           schema_.children[i].path, all.back().length, batch.num_rows());
  }
  columns_.clear();
  for (const size_t i : chosen_) columns_.push_back(chosen(std::move(all[i])));
  batch_rows_ = batch.num_rows();
}

bool ArrowFile::next_batch() {
  while (const std::optional<Message> message = read_message()) {
    if (message->kind == kDictionaryMessage) {
      take_dictionary(*message);
    } else if (message->kind == kBatchMessage) {
      take_batch(*message);
      if (batch_rows_ > 0) return true;
    } else {
      fail(ExitCode::kUnusable, "[arrow] a message has the kind {}", message->kind);
    }
  }
  position_ = num_bytes_;
  return false;
}

bool ArrowFile::next() {
  ++row_;
  if (++place_ < batch_rows_) return true;
  place_ = batch_rows_ = 0;
  // At the end, the position is that of the file: there is no message to read again.
  if (position_ == num_bytes_) return false;
  try {
    return next_batch();
  } catch (const Error& broken) {
    fail_row(broken);
  }
}

void ArrowFile::fail_row(const Error& broken) const {
  fail(ExitCode::kUnusable, "[data] {}: row {} cannot be read: {}; copy or download it again", path(),
       row_ + 1, cause_of(broken));
}

void ArrowFile::fail_column(const std::string& name, std::string_view advice) const {
  constexpr size_t kShown = 12;
  std::vector<std::string> names;
  for (const ArrowField& field : schema_.children)
    if (names.size() < kShown) names.push_back('"' + field.path + '"');
  fail(ExitCode::kUnusable, "[data] {} has no column {}; it has {}. {}", path(), name,
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), advice);
}

}  // namespace tycho
