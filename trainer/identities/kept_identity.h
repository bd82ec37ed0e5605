// A proof of who this job is, kept until shortly before it expires.
#pragma once
#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "trainer/base/error.h"

namespace tycho {

/// Returns the seconds since 1970 by this machine's clock.
inline double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <class Value>
struct Identity {
  Value value = {};
  double expires_s = std::numeric_limits<double>::infinity();  // since 1970
};

/// Keeps an identity and renews it. One thread renews; the others go on with the present one while it is
/// good, and so does that thread when renewing fails.
template <class Value>
class KeptIdentity {
 public:
  /// `early_s`: how long before it expires an identity is renewed; for a short one, half of its life.
  explicit KeptIdentity(double early_s) : early_s_(early_s) {}

  /// Returns the identity of `owner`, which changes when another one is set up. `fetch()` returns an
  /// Identity<Value>, or throws Error.
  template <class Fetch>
  Value get(const std::string& owner, const Fetch& fetch) {
    if (auto value = present(owner, false)) return *value;
    std::unique_lock renewing(renewing_, std::try_to_lock);
    if (!renewing.owns_lock()) {
      if (auto value = present(owner, true)) return *value;
      renewing.lock();
    }
    if (auto value = present(owner, false)) return *value;
    try {
      const Identity<Value> fetched = fetch();
      const std::lock_guard lock(mutex_);
      owner_ = owner, kept_ = fetched;
      renew_s_ = fetched.expires_s - std::min(early_s_, std::max(0.0, fetched.expires_s - unix_time_s()) / 2);
      return fetched.value;
    } catch (const Error& error) {
      const auto value = present(owner, true);
      if (!value || error.code() == ExitCode::kTerminated) throw;
      const std::lock_guard lock(mutex_);
      renew_s_ = unix_time_s() + kBetweenRenewals_s;
      return *value;
    }
  }

 private:
  static constexpr double kBetweenRenewals_s = 30;

  std::optional<Value> present(const std::string& owner, bool may_be_due) {
    const std::lock_guard lock(mutex_);
    const double now = unix_time_s();
    if (!kept_ || owner != owner_ || now + 1 > kept_->expires_s) return {};
    if (!may_be_due && now >= renew_s_) return {};
    return kept_->value;
  }

  const double early_s_;
  std::mutex renewing_, mutex_;  // in this order
  std::string owner_;
  std::optional<Identity<Value>> kept_;
  double renew_s_ = 0;
};

}  // namespace tycho
