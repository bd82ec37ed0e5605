// Cuts long texts when it writes them, and refuses them when it reads them.
#include "trainer/rendezvous/meet/control_messages.h"

#include <algorithm>

namespace tycho {
namespace {

constexpr size_t kMaxNameBytes = 255, kMaxTextBytes = 16 << 10;
constexpr size_t kMaxSuspects = 1024;

std::string_view cut(std::string_view text, size_t max_bytes) { return text.substr(0, max_bytes); }

int read_int(WireReader& reader) { return static_cast<int>(reader.u32()); }

}  // namespace

std::string bytes_of(const Member& member) {
  WireWriter body;
  body.u32(static_cast<uint32_t>(member.rank)).u32(static_cast<uint32_t>(member.pid));
  body.text(cut(member.host, kMaxNameBytes)).text(cut(member.address, kMaxNameBytes));
  return body.u32(static_cast<uint32_t>(member.port)).bytes();
}

std::string bytes_of(const Cause& cause) {
  WireWriter body;
  body.u32(static_cast<uint32_t>(cause.rank)).u32(static_cast<uint32_t>(cause.code));
  return body.text(cut(cause.text, kMaxTextBytes)).bytes();
}

std::string bytes_of(const LossReport& report) {
  WireWriter body;
  const size_t count = std::min(report.ranks.size(), kMaxSuspects);
  body.u32(static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) body.u32(static_cast<uint32_t>(report.ranks[i]));
  return body.text(cut(report.what, kMaxTextBytes)).bytes();
}

std::string bytes_of(const ProgressReport& report) {
  WireWriter body;
  body.u64(static_cast<uint64_t>(report.step)).text(cut(report.phase, kMaxNameBytes)).f64(report.phase_s);
  return body.text(cut(report.collective, kMaxNameBytes)).f64(report.collective_s).bytes();
}

std::string bytes_of(const MarkQuestion& question) {
  WireWriter body;
  return body.u32(question.number).u8(question.sets ? 1 : 0).text(cut(question.name, kMaxNameBytes)).bytes();
}

std::string bytes_of(const MarkAnswer& answer) {
  WireWriter body;
  return body.u32(answer.number).u8(answer.is_marked ? 1 : 0).bytes();
}

std::string bytes_of_text(std::string_view text) {
  WireWriter body;
  return body.text(cut(text, kMaxTextBytes)).bytes();
}

Member read_member(std::string_view bytes) {
  WireReader reader(bytes);
  Member member;
  member.rank = read_int(reader);
  member.pid = read_int(reader);
  member.host = reader.text(kMaxNameBytes);
  member.address = reader.text(kMaxNameBytes);
  member.port = read_int(reader);
  reader.end();
  return member;
}

Cause read_cause(std::string_view bytes) {
  WireReader reader(bytes);
  Cause cause;
  cause.rank = read_int(reader);
  cause.code = static_cast<ExitCode>(reader.u32() & 0xff);
  cause.text = reader.text(kMaxTextBytes);
  reader.end();
  return cause;
}

LossReport read_loss_report(std::string_view bytes) {
  WireReader reader(bytes);
  LossReport report;
  const uint32_t count = reader.u32();
  TYCHO_CHECK(count <= kMaxSuspects, "[ranks] a message names {} ranks, at most {} are allowed", count,
              kMaxSuspects);
  for (uint32_t i = 0; i < count; ++i) report.ranks.push_back(read_int(reader));
  report.what = reader.text(kMaxTextBytes);
  reader.end();
  return report;
}

ProgressReport read_report(std::string_view bytes) {
  WireReader reader(bytes);
  ProgressReport report;
  report.step = static_cast<int64_t>(reader.u64());
  report.phase = reader.text(kMaxNameBytes);
  report.phase_s = reader.f64();
  report.collective = reader.text(kMaxNameBytes);
  report.collective_s = reader.f64();
  reader.end();
  return report;
}

MarkQuestion read_mark_question(std::string_view bytes) {
  WireReader reader(bytes);
  MarkQuestion question;
  question.number = reader.u32();
  question.sets = reader.u8() != 0;
  question.name = reader.text(kMaxNameBytes);
  reader.end();
  return question;
}

MarkAnswer read_mark_answer(std::string_view bytes) {
  WireReader reader(bytes);
  MarkAnswer answer;
  answer.number = reader.u32();
  answer.is_marked = reader.u8() != 0;
  reader.end();
  return answer;
}

std::string read_text(std::string_view bytes) {
  WireReader reader(bytes);
  std::string text = reader.text(kMaxTextBytes);
  reader.end();
  return text;
}

}  // namespace tycho
