// Passes the bytes of trainer/hub to a sink; that verifies them and tries again by itself.
#include "trainer/data/storage/hub_remote.h"

#include <mutex>
#include <optional>
#include <vector>

#include "trainer/hub/hub_files.h"

namespace tycho {
namespace {

class HubRemote final : public RemoteFiles {
 public:
  explicit HubRemote(const RemoteUri& place) : folder_(parse_hub_name(place.text)) {}

  std::string place_of(const std::string& name) const override { return folder_.below(name).text(); }

  FetchOutcome fetch(const std::string& name, const FetchOptions& options, FetchSink& sink) override {
    const HubSnapshot& files = snapshot(options.stop);
    const std::string path = folder_.below(name).path;
    if (files.find(path) == nullptr)
      return {FetchOutcome::State::kAbsent, "the repository has no such file at " + files.commit()};
    const auto stream = open_hub_stream(files, path, options.stop);
    sink.begin(0);
    std::vector<char> piece(1 << 20);
    while (const size_t num_bytes = stream->read(piece.data(), piece.size()))
      sink.write(piece.data(), num_bytes);
    FetchOutcome outcome;
    outcome.version = files.find(path)->hash();
    return outcome;
  }

 private:
  const HubSnapshot& snapshot(const std::stop_token& stop) {
    const std::lock_guard lock(mutex_);
    if (!snapshot_) snapshot_ = open_hub(folder_, stop);
    return *snapshot_;
  }

  HubName folder_;
  std::mutex mutex_;
  std::optional<HubSnapshot> snapshot_;
};

}  // namespace

std::unique_ptr<RemoteFiles> make_hub_files(const RemoteUri& place) {
  return std::make_unique<HubRemote>(place);
}

}  // namespace tycho
