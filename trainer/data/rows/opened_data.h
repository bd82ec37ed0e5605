// Data sets that are held in memory, shared by everything that reads the data of one run.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tycho {

/// Holds data sets that are read as a whole, so that a run that counts, trains, evaluates and looks ahead
/// reads each of them once. May be used from any thread.
class OpenedData {
 public:
  /// Returns the data set of this identity, and the result of `make` at the first call. Two data sets have
  /// the same identity only if they have the same rows; it begins with their kind. Throws what `make` throws.
  template <class Dataset, class Make>
  std::shared_ptr<const Dataset> open(const std::string& identity, const Make& make) const {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const void>& data = opened_[identity];
    if (!data) data = make();
    return std::static_pointer_cast<const Dataset>(data);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const void>> opened_;
};

}  // namespace tycho
