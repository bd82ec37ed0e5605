// Every rank first announces the sizes that it will send, because collectives need equal sizes on all ranks.
#include "trainer/comm/collective_strings.h"

#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cstring>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

/// Encodes an error for other ranks: the exit code, then the message, as in "12 [data] shard.00003.mds is
/// damaged".
std::string exit_reason(const Error& error) {
  return fmt::format("{} {}", static_cast<int>(error.code()), without_secrets(error.what()));
}

/// Returns the error of rank `rank`, as other ranks report it. `reason`: result of exit_reason on that rank.
Error ended_by(size_t rank, const std::string& reason) {
  const size_t space = reason.find(' ');
  return Error(fmt::format("[parallel] rank {} ended the run: {}", rank, reason.substr(space + 1)),
               static_cast<ExitCode>(std::stoi(reason.substr(0, space))));
}

/// Position of a rank while others call: a reduction, or past the end of the callback.
enum class Progress : int64_t { kCall = 1, kDone = 2, kFailed = 3 };

/// Announcement of every rank before it sends numbers.
struct Header {
  Progress progress;
  int64_t line, count;
};

class WorldDist final : public Dist {
 public:
  explicit WorldDist(Communicator& world) : world_(world) {}
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void enter() override { told_of_failure_ = false; }
  bool told_of_failure() const override { return told_of_failure_; }

  void leave(bool failed) override {
    if (size() == 1) return;
    // Ranks that still call learn that this rank has left, and then come here too.
    for (bool all_left = false; !all_left;) {
      all_left = true;
      for (const Header& header : exchange({failed ? Progress::kFailed : Progress::kDone, 0, 0}))
        all_left &= header.progress != Progress::kCall;
    }
  }

  std::vector<std::vector<double>> gather(const std::vector<double>& values,
                                          const std::string& place) override {
    if (size() == 1) return {values};
    const int64_t line = line_number_of(place), count = static_cast<int64_t>(values.size());
    const std::vector<Header> headers = exchange({Progress::kCall, line, count});
    for (size_t r = 0; r < headers.size(); ++r) {
      told_of_failure_ = headers[r].progress == Progress::kFailed;
      if (told_of_failure_) fail(ExitCode::kTopology, "[dist] rank {} failed in this callback", r);
      if (headers[r].progress == Progress::kDone)
        fail(ExitCode::kTopology,
             "[dist] rank {} has left the callback, but rank {} calls dist at {}: every rank must make the "
             "same calls",
             r, rank(), place);
    }
    check_alike(headers, place);
    return numbers(values);
  }

 private:
  static int64_t line_number_of(const std::string& place) {
    return static_cast<int64_t>(std::stoull(hash_hex(place).substr(0, 13), nullptr, 16));
  }

  std::vector<Header> exchange(const Header& mine) {
    Tensor all = at::zeros({size(), 3}, at::TensorOptions().dtype(at::kLong));
    all[rank()][0] = static_cast<int64_t>(mine.progress);
    all[rank()][1] = mine.line;
    all[rank()][2] = mine.count;
    world_.all_reduce(all);
    const auto at = all.accessor<int64_t, 2>();
    std::vector<Header> headers;
    for (int64_t r = 0; r < size(); ++r)
      headers.push_back({static_cast<Progress>(at[r][0]), at[r][1], at[r][2]});
    return headers;
  }

  void check_alike(const std::vector<Header>& headers, const std::string& place) {
    bool lines = true, counts = true;
    for (const Header& header : headers) {
      lines &= header.line == headers[0].line;
      counts &= header.count == headers[0].count;
    }
    if (lines && counts) return;
    // All ranks saw the same headers, so all of them reach this line.
    const std::vector<std::string> places = all_gather_strings(world_, place);
    for (size_t r = 1; r < headers.size(); ++r) {
      if (headers[r].line != headers[0].line)
        fail(ExitCode::kTopology,
             "[dist] rank 0 calls dist at {}, rank {} at {}: every rank must make the same calls", places[0],
             r, places[r]);
      if (headers[r].count != headers[0].count)
        fail(ExitCode::kTopology, "[dist] {}: rank 0 passes {} numbers, rank {} passes {}", place,
             headers[0].count, r, headers[r].count);
    }
  }

  std::vector<std::vector<double>> numbers(const std::vector<double>& values) {
    const auto count = static_cast<int64_t>(values.size());
    Tensor all = at::zeros({size(), count}, at::TensorOptions().dtype(at::kDouble));
    std::memcpy(all.data_ptr<double>() + rank() * count, values.data(), values.size() * sizeof(double));
    if (count > 0) world_.all_reduce(all);
    std::vector<std::vector<double>> by_rank;
    for (int64_t r = 0; r < size(); ++r) {
      const double* row = all.data_ptr<double>() + r * count;
      by_rank.emplace_back(row, row + count);
    }
    return by_rank;
  }

  Communicator& world_;
  bool told_of_failure_ = false;
};

}  // namespace

std::vector<std::string> all_gather_strings(Communicator& world, const std::string& mine) {
  if (world.size() == 1) return {mine};
  Tensor sizes = at::zeros({world.size()}, at::TensorOptions().dtype(at::kLong));
  sizes[world.rank()] = static_cast<int64_t>(mine.size());
  world.all_reduce(sizes);
  std::vector<std::string> texts(static_cast<size_t>(world.size()));
  for (int r = 0; r < world.size(); ++r) {
    const int64_t num_bytes = sizes.data_ptr<int64_t>()[r];
    if (num_bytes == 0) continue;
    Tensor bytes = at::zeros({num_bytes}, at::TensorOptions().dtype(at::kByte));
    if (r == world.rank()) std::memcpy(bytes.data_ptr(), mine.data(), mine.size());
    world.broadcast(bytes, r);
    texts[static_cast<size_t>(r)].assign(static_cast<const char*>(bytes.data_ptr()),
                                         static_cast<size_t>(num_bytes));
  }
  return texts;
}

int first_signal(Communicator& world, int mine) {
  for (const std::string& signal : all_gather_strings(world, mine == 0 ? "" : std::to_string(mine)))
    if (!signal.empty()) return std::stoi(signal);
  return 0;
}

void together(Communicator& world, const std::function<void()>& part) {
  std::string mine;
  std::exception_ptr own;
  try {
    part();
  } catch (const Error& error) {
    own = std::current_exception();
    mine = exit_reason(error);
  } catch (const std::exception& error) {
    own = std::current_exception();
    mine = exit_reason(Error(error.what()));
  }
  const std::vector<std::string> all = all_gather_strings(world, mine);
  const auto first =
      std::find_if(all.begin(), all.end(), [](const std::string& one) { return !one.empty(); });
  if (first == all.end()) return;
  if (own && mine == *first) std::rethrow_exception(own);
  const auto rank = static_cast<size_t>(first - all.begin());
  const Error cause = ended_by(rank, *first);
  if (!own) throw cause;
  throw Error(fmt::format("{}\nRank {} failed by itself, too: {}", cause.what(), world.rank(),
                          mine.substr(mine.find(' ') + 1)),
              cause.code());
}

std::unique_ptr<Dist> make_dist(Communicator& world) { return std::make_unique<WorldDist>(world); }

}  // namespace tycho
