// A stretch of work with a name, as traces and tables of a profile show it.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>

namespace tycho {

/// From construction to destruction, on one thread: Range range("block ", 3, " forward"). Costs some
/// nanoseconds while no profile is recorded; its name is put together only then.
class Range {
 public:
  template <class... Parts>
  explicit Range(const Parts&... parts) : record_(record_if_wanted()) {
    if (!record_) return;
    std::string name;
    ((name += fmt::format("{}", parts)), ...);
    begin(std::move(name));
  }

 private:
  struct Record;  // LibTorch's: its header brings half a megabyte of others, and all that trains has this one
  struct End {
    void operator()(Record* record) const;
  };

  /// None while nobody records.
  static std::unique_ptr<Record, End> record_if_wanted();
  void begin(std::string name);

  std::unique_ptr<Record, End> record_;
};

}  // namespace tycho
