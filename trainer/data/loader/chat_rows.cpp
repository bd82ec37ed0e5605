// Counts lengths, without reading tokens.
#include "trainer/data/loader/chat_rows.h"

#include <algorithm>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/recipe/batch_width.h"

namespace tycho {
namespace {

double padding_share(int64_t tokens, int64_t rows, int64_t row_tokens) {
  return 1 - static_cast<double>(tokens) / static_cast<double>(rows * row_tokens);
}

int64_t sum_of(std::span<const int32_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

void add_packed_batches(const std::shared_ptr<const ChatDataset>& data, const OrderShape& shape,
                        ChatRows& found) {
  const PackedChatReader reader(data, shape);
  found.batches = reader.packing();
  found.rows = reader.num_samples();
  found.waiting = reader.waiting_examples();
  found.lost = reader.lost_examples();
  int64_t tokens = 0;
  for (int64_t row = 0; row < found.rows; ++row)
    for (const uint32_t example : reader.row(static_cast<uint32_t>(row))) tokens += data->lengths()[example];
  found.padding = padding_share(tokens, found.rows, found.row_tokens);
}

/// Adds the counts of trimmed batches, from the first epoch.
void add_trimmed_batches(const ChatDataset& data, const OrderShape& shape, ChatRows& found) {
  const std::vector<int32_t> lengths = data.row_lengths();
  const SampleOrder order = example_order(data.config(), data.shard_sizes(), shape);
  const auto rows = bucketed_rows(order.epoch(0), DataConfig{data.config()}, lengths, shape, 0);
  std::vector<uint32_t> batch(static_cast<size_t>(shape.global_sequences));
  int64_t tokens = 0, room = 0;
  found.narrowest = data.seq_len();
  for (int64_t b = 0; b < found.rows / shape.global_sequences; ++b) {
    rows->read(batch);
    const int64_t width = batch_width(lengths, batch, data.seq_len());
    for (const uint32_t example : batch) tokens += lengths[example];
    room += width * shape.global_sequences;
    found.narrowest = std::min(found.narrowest, width);
    found.widest = std::max(found.widest, width);
  }
  found.trimmed = room > 0;
  if (found.trimmed) found.padding = padding_share(tokens, 1, room);
}

std::string batches_text(const BatchPacking& packing) {
  return fmt::format("{} examples for {} rows at a time, packing_ratio {:g}", packing.group_examples,
                     packing.group_rows, packing.ratio);
}

}  // namespace

ChatRows chat_rows(const std::shared_ptr<const ChatDataset>& data, const OrderShape& shape) {
  std::vector<int32_t> lengths(data->lengths().begin(), data->lengths().end());
  std::sort(lengths.begin(), lengths.end());
  ChatRows found{.place = data->config().place(),
                 .examples = std::ssize(lengths),
                 .cut = data->num_cut(),
                 .dropped = data->num_dropped()};
  found.shortest = lengths.front();
  found.median = lengths[(lengths.size() - 1) / 2];
  found.longest = lengths.back();
  found.row_tokens = data->seq_len();
  found.packed = data->config().pack;
  found.padding_alone = padding_share(sum_of(lengths), found.examples, found.row_tokens);
  if (data->config().packs_batches()) {
    add_packed_batches(data, shape, found);
  } else {
    found.rows = data->num_rows();
    found.padding = padding_share(sum_of(lengths), found.rows, found.row_tokens);
    if (data->config().trim_padding) add_trimmed_batches(*data, shape, found);
  }
  return found;
}

std::string ChatRows::summary() const {
  std::string text = fmt::format("{}: {} examples of {} to {} tokens, half of them at most {}", place,
                                 examples, shortest, longest, median);
  if (batches) text += fmt::format("; packed {}", batches_text(*batches));
  const std::string widths =
      trimmed ? fmt::format("{} to {}", narrowest, widest) : fmt::format("{}", row_tokens);
  text += fmt::format("; {} rows of {} tokens{}, {:.1f} % of which are padding", rows, widths,
                      batches || trimmed ? " in the first epoch" : "", 100 * padding);
  if (trimmed) text += fmt::format(" ({:.1f} % of rows that are not trimmed)", 100 * padding_alone);
  if (packed) text += fmt::format(" ({:.1f} % with one example each)", 100 * padding_alone);
  if (waiting > 0) text += fmt::format("; {} examples go on into the second epoch", waiting);
  if (lost > 0) text += fmt::format("; {} examples are lost by max_leftover_rows", lost);
  return text;
}

std::vector<std::string> ChatRows::lines() const {
  std::vector<std::string> text = {
      fmt::format("{} examples of {} to {} tokens, half at most {}", examples, shortest, longest, median)};
  if (cut > 0 || dropped > 0)
    text.push_back(
        fmt::format("{} cut at {} tokens, {} left out: no target remains", cut, row_tokens, dropped));
  if (batches) text.push_back("packed " + batches_text(*batches));
  std::string waste = fmt::format("{:.1f} % padding", 100 * padding);
  if (packed) waste += fmt::format(", {:.1f} % with one example in each row", 100 * padding_alone);
  if (trimmed) waste += fmt::format(", {:.1f} % without trim_padding", 100 * padding_alone);
  text.push_back(std::move(waste));
  if (trimmed) text.push_back(fmt::format("batches {} to {} tokens wide", narrowest, widest));
  if (waiting > 0) text.push_back(fmt::format("{} examples go on into the second epoch", waiting));
  if (lost > 0) text.push_back(fmt::format("{} examples are lost by max_leftover_rows", lost));
  return text;
}

}  // namespace tycho
