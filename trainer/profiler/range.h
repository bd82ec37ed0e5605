// A span of work with a name, as traces and tables of a profile show it.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace tycho {

/// Records its lifetime, on one thread: Range range("block ", 3, " forward"). Costs some nanoseconds while no
/// profile is recorded; the name is formatted only then.
class Range {
 public:
  template <class... Parts>
  explicit Range(const Parts&... parts) : record_(record_if_wanted()) {
    if (record_) begin({text_of(parts)...});
  }

 private:
  struct Record;  // LibTorch's record, whose header includes half a megabyte of others, while all training
                  // code includes this one
  struct End {
    void operator()(Record* record) const;
  };

  /// Returns null while no profile is recorded.
  static std::unique_ptr<Record, End> record_if_wanted();
  // Not fmt's templates: every source that marks a range would compile them.
  static std::string text_of(std::string_view part);
  static std::string text_of(int64_t part);
  void begin(std::initializer_list<std::string> parts);

  std::unique_ptr<Record, End> record_;
};

}  // namespace tycho
