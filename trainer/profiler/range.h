// A span of work with a name, as traces and tables of a profile show it.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>

namespace tycho {

/// Records its lifetime, on one thread: Range range("block ", 3, " forward"). Costs some nanoseconds while no
/// profile is recorded; the name is formatted only then.
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
  struct Record;  // LibTorch's record, whose header includes half a megabyte of others, while all training
                  // code includes this one
  struct End {
    void operator()(Record* record) const;
  };

  /// Returns null while no profile is recorded.
  static std::unique_ptr<Record, End> record_if_wanted();
  void begin(std::string name);

  std::unique_ptr<Record, End> record_;
};

}  // namespace tycho
