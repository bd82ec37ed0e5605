// Ranks meet at boundaries: their threads write in between.
#include "trainer/saving/shard_collection.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "trainer/base/json.h"
#include "trainer/checkpoint/reshard.h"
#include "trainer/checkpoint/shard_json.h"
#include "trainer/comm/collective_strings.h"

namespace tycho {

ShardCollection::ShardCollection(std::vector<int> writers, bool joins, FileOps& files, Communicator& world)
    : writers_(std::move(writers)), joins_(joins), files_(files), world_(world) {}

bool ShardCollection::writes() const {
  return std::binary_search(writers_.begin(), writers_.end(), world_.rank());
}

int64_t ShardCollection::estimated_bytes(const Tensors& tensors) const {
  int64_t num_bytes = 0;
  for (const TensorBytes& tensor : tensors) num_bytes += tensor.num_bytes;
  return num_bytes * (joins_ ? 2 : 1) * std::ssize(writers_);
}

// A save that fails removes its folder. Nobody may write there any more: what came later would stay, and take
// the room that the next try needs.
std::vector<WrittenShard> ShardCollection::write_with_others(const std::string& folder,
                                                             const Tensors& tensors) {
  exchange_->open(folder);
  std::vector<WrittenShard> all;
  std::exception_ptr failure;
  try {
    all.push_back(write_shard(files_, folder, shard_name(), tensors));
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    for (WrittenShard& shard : exchange_->wait_for_others()) all.push_back(std::move(shard));
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
  if (joins_) all = {join_shards(files_, folder, std::move(all), rank_file_name(0))};
  return all;
}

void ShardCollection::close() {
  if (exchange_) exchange_->close();
}

void ShardCollection::open() { exchange_ = std::make_unique<ShardExchange>(); }

// The folder of a save has a new name, which rank 0 finds.
void ShardCollection::start_others(WriterThread& writer, Tensors tensors) {
  const std::string own = commits() ? exchange_->wait_for_folder() : "";
  const std::string folder = all_gather_strings(world_, own).front();
  if (folder.empty()) return;  // rank 0 knows why, and reports it
  is_collecting_ = true;
  if (!commits() && writes())
    writer.start(/*async=*/true,
                 [this, folder, tensors = std::move(tensors)] { write_own(folder, tensors); });
}

std::string ShardCollection::shard_name() const {
  const std::string name = rank_file_name(world_.rank());
  return joins_ ? "part-of-" + name : name;
}

// Runs on the writer's thread of a rank other than 0.
void ShardCollection::write_own(const std::string& folder, const Tensors& tensors) {
  try {
    own_shard_ = shard_json(write_shard(files_, folder, shard_name(), tensors)).dump();
  } catch (const std::exception& error) {
    own_shard_ = Json{{"failed", error.what()}}.dump();
  }
}

void ShardCollection::collect(WriterThread& writer, bool wait) {
  if (!is_collecting_) return;
  if (wait && commits()) exchange_->wait_until_waiting();
  if (wait && !commits()) writer.join();
  const bool is_done = commits() ? exchange_->is_waiting() : !writes() || writer.has_ended();
  for (const std::string& busy : all_gather_strings(world_, is_done ? "" : "busy"))
    if (!busy.empty()) return;
  is_collecting_ = false;
  if (!commits()) {
    writer.join();
    writer.take_end();
  }
  const std::vector<std::string> all = all_gather_strings(world_, std::exchange(own_shard_, {}));
  if (commits()) give(all);
}

void ShardCollection::give(const std::vector<std::string>& of_ranks) {
  std::vector<WrittenShard> others;
  for (const int rank : writers_) {
    if (rank == 0) continue;
    const std::string place = fmt::format("rank {}", rank);
    const Json shard = parse_json(of_ranks[static_cast<size_t>(rank)], place);
    if (shard.contains("failed")) {
      const std::string why = shard.at("failed").get<std::string>();
      return exchange_->give_up(Error(fmt::format("{}: {}", place, why), ExitCode::kStorage));
    }
    others.push_back(shard_from_json(shard, place));
  }
  exchange_->give(std::move(others));
}

void ShardCollection::give_up(const Error& why) {
  if (exchange_) exchange_->give_up(why);
}

}  // namespace tycho
