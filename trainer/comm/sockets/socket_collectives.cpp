// A collective is a list of transfers, and a step that runs whenever bytes have moved. Pieces are sent
// directly to the rank that needs them, and sums are computed in a fixed order while the rest is in transit.
#include "trainer/comm/sockets/socket_collectives.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr uint32_t kMagic = 0x6f686379;
constexpr int64_t kHeader = sizeof(Announcement);
static_assert(sizeof(Announcement) == 24);

/// Largest sum whose inputs from other ranks are received whole: then every rank sums everything, and no
/// result is sent back.
constexpr int64_t kWholeBytes = 512 << 10;
/// Bytes of one rank's numbers that wait to be summed.
constexpr int64_t kWindowBytes = 256 << 10;
constexpr int64_t kGrainBytes = 32 << 10;  // summed at once
constexpr int64_t kLineBytes = 64;         // pieces begin at multiples of this

int64_t size_of(SumType type) {
  switch (type) {
    case SumType::kFp64:
    case SumType::kInt64: return 8;
    case SumType::kFp32:
    case SumType::kInt32: return 4;
    case SumType::kBf16: return 2;
    case SumType::kByte: return 1;
  }
  return 1;
}

const char* name_of(SumType type) {
  switch (type) {
    case SumType::kFp32: return "fp32";
    case SumType::kFp64: return "fp64";
    case SumType::kBf16: return "bf16";
    case SumType::kInt32: return "int32";
    case SumType::kInt64: return "int64";
    case SumType::kByte: return "uint8";
  }
  return "?";
}

/// Describes a call: "all_reduce of 16 bytes (fp32)".
std::string text_of(const Announcement& call) {
  std::string text = name_of(call.op);
  if (call.op != CollectiveOp::kBarrier) text += fmt::format(" of {} bytes", call.num_bytes);
  if (call.op == CollectiveOp::kAllReduce || call.op == CollectiveOp::kReduceScatter)
    text += fmt::format(" ({})", name_of(static_cast<SumType>(call.type)));
  if (call.op == CollectiveOp::kBroadcast) text += fmt::format(" from rank {}", call.root);
  return text;
}

bool is_known(const Announcement& call) {
  return call.magic == kMagic && call.op >= CollectiveOp::kAllReduce && call.op <= CollectiveOp::kMessage;
}

TransferFailure mismatch(std::string what, int rank) {
  return {TransferFailure::Kind::kMismatch, std::move(what), {rank}};
}

}  // namespace

const char* name_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllReduce: return "all_reduce";
    case CollectiveOp::kAllGather: return "all_gather";
    case CollectiveOp::kReduceScatter: return "reduce_scatter";
    case CollectiveOp::kBroadcast: return "broadcast";
    case CollectiveOp::kBarrier: return "barrier";
    case CollectiveOp::kMessage: return "message";
  }
  return "?";
}

/// This rank's piece of a sum, while it is computed.
struct SocketCollectives::Reduction {
  SumType type;
  uint8_t* out;
  const uint8_t* own;
  int64_t num_bytes;
  int64_t window;        // size of the ring that each rank's numbers arrive in
  const uint8_t* rings;  // one for each transfer
  bool comes_back;       // the sum is sent to all ranks
  int64_t summed = 0;
};

SocketCollectives::SocketCollectives(int rank, std::vector<Socket> sockets, const WaitLimits& limits,
                                     SumOrder order)
    : rank_(rank),
      sockets_(std::move(sockets)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      limits_(limits),
      order_(order),
      theirs_(sockets_.size()),
      is_checked_(sockets_.size()),
      rows_(sockets_.size()) {
  if (!stop_.is_open()) fail(ExitCode::kTopology, "[parallel] cannot open an eventfd: {}", strerror(errno));
  limits_.stop_fd = stop_.fd();
}

void SocketCollectives::stop() {
  const uint64_t one = 1;
  if (write(stop_.fd(), &one, sizeof one) < 0) return;  // it is full: readable already
}

void SocketCollectives::begin(Announcement mine) {
  mine_ = mine;
  mine_.magic = kMagic;
  mine_.number = num_calls_++;
  transfers_.clear();
  std::fill(is_checked_.begin(), is_checked_.end(), false);
}

Transfer& SocketCollectives::add_transfer(int rank, bool sends, bool receives) {
  Transfer& transfer = transfers_.emplace_back();
  transfer.fd = sockets_[static_cast<size_t>(rank)].fd();
  transfer.rank = rank;
  if (sends) transfer.out.add(&mine_, kHeader);
  if (receives) transfer.in.add(&theirs_[static_cast<size_t>(rank)], kHeader);
  return transfer;
}

std::optional<TransferFailure> SocketCollectives::finish(const std::function<void()>& moved) {
  if (failure_) return failure_;
  if (moved) moved();
  failure_ = run_transfers(transfers_, limits_, [&]() -> std::optional<TransferFailure> {
    if (auto failure = check_announcements()) return failure;
    if (moved) moved();
    return std::nullopt;
  });
  return failure_;
}

std::optional<TransferFailure> SocketCollectives::check_announcements() {
  for (const Transfer& transfer : transfers_) {
    const auto rank = static_cast<size_t>(transfer.rank);
    if (is_checked_[rank] || transfer.in.done() < kHeader) continue;
    is_checked_[rank] = true;
    const Announcement& theirs = theirs_[rank];
    if (theirs == mine_) continue;
    if (!is_known(theirs)) return mismatch(fmt::format("rank {} sent garbage", transfer.rank), transfer.rank);
    return mismatch(
        fmt::format("rank {} calls {} (number {} in this group), but rank {} calls {} (number {})", rank_,
                    text_of(mine_), mine_.number, transfer.rank, text_of(theirs), theirs.number),
        transfer.rank);
  }
  return std::nullopt;
}

uint8_t* SocketCollectives::scratch(int64_t num_bytes) {
  if (num_bytes > scratch_bytes_) {
    scratch_ = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(num_bytes));
    scratch_bytes_ = num_bytes;
  }
  return scratch_.get();
}

std::optional<TransferFailure> SocketCollectives::barrier() {
  begin({.op = CollectiveOp::kBarrier});
  for (int i = 1; i < size(); ++i) add_transfer((rank_ + i) % size(), true, true);
  return finish();
}

std::optional<TransferFailure> SocketCollectives::all_gather(void* out, const void* in, int64_t num_bytes) {
  begin({.op = CollectiveOp::kAllGather, .num_bytes = num_bytes});
  auto* pieces = static_cast<uint8_t*>(out);
  for (int i = 1; i < size(); ++i) {
    Transfer& transfer = add_transfer((rank_ + i) % size(), true, true);
    transfer.out.add(const_cast<void*>(in), num_bytes);
    transfer.in.add(pieces + transfer.rank * num_bytes, num_bytes);
  }
  uint8_t* own = pieces + rank_ * num_bytes;
  if (own != in && num_bytes > 0) std::memcpy(own, in, static_cast<size_t>(num_bytes));
  return finish();
}

// A tree in which rank root + i has the children root + i + 1, 2, 4 … below i's lowest bit; each passes on
// the bytes that it has so far.
std::optional<TransferFailure> SocketCollectives::broadcast(void* x, int64_t num_bytes, int root) {
  begin({.op = CollectiveOp::kBroadcast, .root = root, .num_bytes = num_bytes});
  const int place = (rank_ - root + size()) % size();
  const int reach = place == 0 ? size() : place & -place;
  if (place > 0) add_transfer((root + place - reach) % size(), false, true).in.add(x, num_bytes);
  int farthest = 1;
  while (farthest * 2 < reach) farthest *= 2;
  for (int step = farthest; step > 0; step /= 2)
    if (step < reach && place + step < size())
      add_transfer((root + place + step) % size(), true, false).out.add(x, num_bytes);
  if (place == 0) return finish();
  return finish([&] {
    for (size_t i = 1; i < transfers_.size(); ++i)
      transfers_[i].out.set_limit(std::max(transfers_[0].in.done(), kHeader));
  });
}

std::optional<TransferFailure> SocketCollectives::all_reduce(SumType type, void* x, int64_t count) {
  const int64_t num_bytes = count * size_of(type);
  begin({.op = CollectiveOp::kAllReduce, .type = static_cast<uint8_t>(type), .num_bytes = num_bytes});
  auto* bytes = static_cast<uint8_t*>(x);
  return num_bytes * (size() - 1) <= kWholeBytes ? sum_whole(type, bytes, count)
                                                 : sum_pieces(type, bytes, count);
}

std::optional<TransferFailure> SocketCollectives::sum_whole(SumType type, uint8_t* x, int64_t count) {
  const int64_t num_bytes = count * size_of(type);
  uint8_t* others = scratch(num_bytes * (size() - 1));
  rows_[static_cast<size_t>(rank_)] = x;
  for (int i = 1; i < size(); ++i, others += num_bytes) {
    Transfer& transfer = add_transfer((rank_ + i) % size(), true, true);
    transfer.out.add(x, num_bytes);
    transfer.in.add(others, num_bytes);
    rows_[static_cast<size_t>(transfer.rank)] = others;
  }
  if (auto failure = finish()) return failure;
  sum_rows(type, x, rows_.data(), size(), count, order_);
  return std::nullopt;
}

// A piece of x is overwritten by its sum, which is sent back only after its owner has received this rank's
// numbers.
std::optional<TransferFailure> SocketCollectives::sum_pieces(SumType type, uint8_t* x, int64_t count) {
  const int64_t num_bytes = count * size_of(type);
  const int64_t lines = (num_bytes + kLineBytes - 1) / kLineBytes;
  const int64_t piece = (lines + size() - 1) / size() * kLineBytes;
  const auto begin_of = [&](int rank) { return std::min(rank * piece, num_bytes); };
  const auto bytes_of = [&](int rank) { return begin_of(rank + 1) - begin_of(rank); };
  uint8_t* own = x + begin_of(rank_);
  Reduction sum = {type, own, own, bytes_of(rank_), std::min(kWindowBytes, piece), nullptr, true};
  uint8_t* ring = scratch(sum.window * (size() - 1));
  sum.rings = ring;
  for (int i = 1; i < size(); ++i, ring += sum.window) {
    Transfer& transfer = add_transfer((rank_ + i) % size(), true, true);
    transfer.out.add(x + begin_of(transfer.rank), bytes_of(transfer.rank));
    transfer.out.add(own, sum.num_bytes);
    transfer.in.add(ring, sum.num_bytes, sum.window);
    transfer.in.add(x + begin_of(transfer.rank), bytes_of(transfer.rank));
  }
  return finish([&] { sum_arrived(sum); });
}

std::optional<TransferFailure> SocketCollectives::reduce_scatter(SumType type, void* out, const void* in,
                                                                 int64_t count) {
  const int64_t num_bytes = count * size_of(type);
  begin({.op = CollectiveOp::kReduceScatter, .type = static_cast<uint8_t>(type), .num_bytes = num_bytes});
  auto* pieces = static_cast<uint8_t*>(const_cast<void*>(in));
  const int64_t lines = (num_bytes + kLineBytes - 1) / kLineBytes;
  Reduction sum = {type,
                   static_cast<uint8_t*>(out),
                   pieces + rank_ * num_bytes,
                   num_bytes,
                   std::min(kWindowBytes, lines * kLineBytes),
                   nullptr,
                   false};
  uint8_t* ring = scratch(sum.window * (size() - 1));
  sum.rings = ring;
  for (int i = 1; i < size(); ++i, ring += sum.window) {
    Transfer& transfer = add_transfer((rank_ + i) % size(), true, true);
    transfer.out.add(pieces + transfer.rank * num_bytes, num_bytes);
    transfer.in.add(ring, num_bytes, sum.window);
  }
  return finish([&] { sum_arrived(sum); });
}

/// Sums the numbers that have come from all ranks, and allows the next bytes to move.
void SocketCollectives::sum_arrived(Reduction& sum) {
  int64_t ready = sum.num_bytes;
  for (const Transfer& transfer : transfers_)
    ready = std::min(ready, std::max<int64_t>(transfer.in.done() - kHeader, 0));
  const bool is_all = ready == sum.num_bytes;
  if (!is_all) ready -= ready % kLineBytes;
  if (is_all || ready - sum.summed >= std::min(kGrainBytes, sum.window)) {
    while (sum.summed < ready) {
      const int64_t at = sum.summed % sum.window;
      const int64_t n = std::min(ready - sum.summed, sum.window - at);
      rows_[static_cast<size_t>(rank_)] = sum.own + sum.summed;
      for (size_t i = 0; i < transfers_.size(); ++i)
        rows_[static_cast<size_t>(transfers_[i].rank)] =
            sum.rings + static_cast<int64_t>(i) * sum.window + at;
      sum_rows(sum.type, sum.out + sum.summed, rows_.data(), size(), n / size_of(sum.type), order_);
      sum.summed += n;
    }
  }
  for (Transfer& transfer : transfers_) {
    const bool is_summed = sum.summed == sum.num_bytes;
    transfer.in.set_limit(is_summed ? transfer.in.total()
                                    : kHeader + std::min(sum.num_bytes, sum.summed + sum.window));
    if (sum.comes_back) transfer.out.set_limit(transfer.out.total() - sum.num_bytes + sum.summed);
  }
}

MessageWire::MessageWire(int own, int other, Socket socket, const WaitLimits& limits)
    : own_(own), other_(other), socket_(std::move(socket)), limits_(limits), out_(1), in_(1) {}

std::optional<TransferFailure> MessageWire::send(const void* x, int64_t num_bytes) {
  Announcement header = {
      .magic = kMagic, .op = CollectiveOp::kMessage, .number = num_sent_++, .num_bytes = num_bytes};
  Transfer& transfer = out_[0] = {.fd = socket_.fd(), .rank = other_};
  transfer.out.add(&header, kHeader);
  transfer.out.add(const_cast<void*>(x), num_bytes);
  return run_transfers(out_, limits_, []() -> std::optional<TransferFailure> { return std::nullopt; });
}

std::optional<TransferFailure> MessageWire::recv(void* x, int64_t num_bytes) {
  const Announcement wanted = {
      .magic = kMagic, .op = CollectiveOp::kMessage, .number = num_received_++, .num_bytes = num_bytes};
  Announcement header;
  Transfer& transfer = in_[0] = {.fd = socket_.fd(), .rank = other_};
  transfer.in.add(&header, kHeader);
  transfer.in.add(x, num_bytes);
  return run_transfers(in_, limits_, [&]() -> std::optional<TransferFailure> {
    if (transfer.in.done() < kHeader || header == wanted) return std::nullopt;
    if (!is_known(header)) return mismatch(fmt::format("rank {} sent garbage", other_), other_);
    return mismatch(fmt::format("rank {} sends a message of {} bytes, but rank {} receives one of {} bytes",
                                other_, header.num_bytes, own_, num_bytes),
                    other_);
  });
}

}  // namespace tycho
