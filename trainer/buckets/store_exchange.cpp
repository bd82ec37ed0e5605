// Tells what may pass from what will not, by status and by the codes of S3 and Azure.
#include "trainer/buckets/store_exchange.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/data/storage/server_text.h"
#include "trainer/http/retry_wait.h"
#include "trainer/http/xml_text.h"

namespace tycho {
namespace {

bool may_pass(const HttpAnswer& answer) {
  static const std::set<std::string> kPassing = {"SlowDown",
                                                 "RequestTimeout",
                                                 "InternalError",
                                                 "OperationAborted",
                                                 "ConditionalRequestConflict",
                                                 "ServerBusy",
                                                 "BadDigest",
                                                 "Md5Mismatch",
                                                 "XAmzContentSHA256Mismatch",
                                                 "OperationTimedOut"};
  return answer.may_pass() || (answer.status >= 400 && kPassing.contains(store_code(answer)));
}

std::string said(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.problem;
  std::string text = fmt::format("the store answers {}", answer.status);
  if (const std::string shown = shown_server_text(answer.body); !shown.empty()) text += " (" + shown + ")";
  return text;
}

std::string advice(const HttpAnswer& answer, const StoreAsk& ask) {
  if (answer.is_untrusted) return ", or in AWS_CA_BUNDLE for S3";
  const std::string code = store_code(answer);
  std::string region = answer.header("x-amz-bucket-region");
  if (region.empty()) region = xml_value(answer.body, "Region");
  if (!region.empty() && (answer.status / 100 == 3 || answer.status == 400))
    return fmt::format("; the bucket is in the region {0}: set AWS_REGION={0}", region);
  if (answer.status / 100 == 3) return "; redirects are not followed: is the bucket in another region?";
  if (code == "RequestTimeTooSkewed") return "; is this machine's clock right?";
  if (code == "NoSuchBucket" || code == "ContainerNotFound") return "; create it first, or correct its name";
  if (answer.status == 401 || answer.status == 403)
    return std::string(
               "; are the credentials right, and do they allow reading, writing and listing here? See "
               "docs/data.md, Remote data") +
           (ask.hint ? ask.hint() : "");
  if (answer.status == 501) return "; this store lacks what is needed here";
  return "";
}

}  // namespace

std::string store_code(const HttpAnswer& answer) {
  const std::string code = answer.header("x-ms-error-code");
  return code.empty() ? xml_value(answer.body, "Code") : code;
}

StoreAnswer ask_store(const StoreAsk& ask, const RequestTries& tries, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  double wait_s = tries.first_wait_s;
  for (int number = 1;; ++number) {
    HttpCall call = ask.make();
    call.timeout_s = 0;
    call.stall_s = tries.stall_s;
    HttpAnswer answer = http_exchange(call, stop);
    if (stop.stop_requested()) fail(ExitCode::kTerminated, "[bucket] stopped at {}", ask.place);
    const int status = answer.status;
    // Some answers of S3 begin with 200 and turn out to be errors.
    const bool failed_late = status == 200 && answer.body.find("<Error>") != std::string::npos &&
                             answer.body.find("<DeleteResult") == std::string::npos && call.method == "POST";
    const std::string code = status == 404 ? store_code(answer) : "";
    const bool is_absent_store = code == "NoSuchBucket" || code == "ContainerNotFound";
    const bool is_answer = std::find(ask.also.begin(), ask.also.end(), status) != ask.also.end();
    if (!failed_late && !is_absent_store && (status / 100 == 2 || is_answer)) return {answer, number};
    if (!failed_late && !may_pass(answer))
      fail(ExitCode::kUnusable, "[bucket] {}: {}{}", ask.place, said(answer), advice(answer, ask));
    if (number > tries.retries) {
      const double took_s = seconds_since(start);
      fail(ExitCode::kStorage, "[bucket] {}: {} ({} tries in {:.0f} s)", ask.place, said(answer), number,
           took_s);
    }
    if (!wait_to_retry(std::max(with_jitter(wait_s), std::min(answer.wait_s, 2 * tries.longest_wait_s)),
                       stop))
      fail(ExitCode::kTerminated, "[bucket] stopped at {}", ask.place);
    wait_s = std::min(2 * wait_s, tries.longest_wait_s);
  }
}

}  // namespace tycho
