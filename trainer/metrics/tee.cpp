// Several reporters as one; their failures do not stop the run, and secrets are masked before they see a
// text.
#include <functional>
#include <utility>

#include "trainer/base/secrets.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

class Tee : public Reporter {
 public:
  explicit Tee(std::vector<std::unique_ptr<Reporter>> reporters) {
    for (auto& reporter : reporters) branches_.push_back({std::move(reporter), false});
  }

  void run_start(const RunInfo& run) override {
    RunInfo shown = run;
    for (std::string& pin : shown.pins) pin = without_secrets(pin);
    for (Branch& branch : branches_) branch.reporter->run_start(shown);
  }
  void step(const StepMetrics& metrics, bool record) override {
    for_each([&](Reporter& reporter) { reporter.step(metrics, record); });
  }
  void metric(int64_t step, const std::string& name, double value) override {
    const std::string shown = without_secrets(name);
    for_each([&](Reporter& reporter) { reporter.metric(step, shown, value); });
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    const std::string shown = without_secrets(text);
    const Json shown_facts = json_without_secrets(facts);
    for_each([&](Reporter& reporter) { reporter.event(kind, shown, shown_facts); });
  }
  void table(int64_t step, const NamedTable& table) override {
    NamedTable shown = table;
    for (Json& row : shown.rows) row = json_without_secrets(std::move(row));
    for_each([&](Reporter& reporter) { reporter.table(step, shown); });
  }
  void screen_warning(const std::string& text) override {
    const std::string shown = without_secrets(text);
    for_each([&](Reporter& reporter) { reporter.screen_warning(shown); });
  }
  void finish(const std::string& reason) override {
    const std::string shown = without_secrets(reason);
    for_each([&](Reporter& reporter) { reporter.finish(shown); });
  }
  void run_end(const std::string& reason, std::optional<ExitCode> failure) override {
    finish(reason);
    const std::string shown = without_secrets(reason);
    for_each([&](Reporter& reporter) { reporter.run_end(shown, failure); });
  }

 private:
  struct Branch {
    std::unique_ptr<Reporter> reporter;
    bool failing;
  };

  void for_each(const std::function<void(Reporter&)>& call) {
    std::vector<std::string> new_failures;
    for (Branch& branch : branches_) {
      const std::string message = failure_of(branch, call);
      if (!message.empty() && !branch.failing) new_failures.push_back(message);
      branch.failing = !message.empty();
    }
    for (const std::string& message : new_failures) warn(message);
  }

  void warn(const std::string& message) {
    for (Branch& branch : branches_) {
      if (!branch.failing)
        failure_of(branch,
                   [&](Reporter& reporter) { reporter.event("warning", without_secrets(message), {}); });
    }
  }

  static std::string failure_of(Branch& branch, const std::function<void(Reporter&)>& call) {
    try {
      call(*branch.reporter);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::vector<Branch> branches_;
};

}  // namespace

std::unique_ptr<Reporter> make_tee(std::vector<std::unique_ptr<Reporter>> reporters) {
  return std::make_unique<Tee>(std::move(reporters));
}

}  // namespace tycho
