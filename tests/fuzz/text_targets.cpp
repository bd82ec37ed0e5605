// Fuzz targets: short texts, patterns, expressions, and what ranks send each other.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tests/trainer/expression/reference.h"
#include "trainer/base/bytes.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/regex.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/expression/derivative.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/expression_text.h"
#include "trainer/expression/program.h"
#include "trainer/expression/simplify.h"
#include "trainer/rendezvous/handshake.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/slurm_lists.h"

namespace tycho {
namespace {

/// A pattern, and from the second line on the text that it is looked for in.
void regex(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const Regex pattern{std::string(bytes.substr(0, end))};
  const std::string text(bytes.substr(end));
  pattern.is_found_in(text);
  pattern.matches_all_of(text);
  pattern.replaced_in(text, "<\\1>");
}

/// Lengths, sizes and command lines: their text reads back the same.
void quantities(std::string_view bytes) {
  refused_or_taken([&] {
    const Duration duration = Duration::parse(bytes);
    must(Duration::parse(duration.str()) == duration, "a duration reads back as another");
  });
  refused_or_taken([&] {
    const Bytes size = Bytes::parse(bytes);
    must(Bytes::parse(size.str()) == size, "a size reads back as another");
  });
  refused_or_taken([&] {
    const std::vector<std::string> words = split_shell_line(std::string(bytes));
    must(split_shell_line(shell_line(words)) == words, "words read back as others");
  });
}

void slurm_lists(std::string_view bytes) {
  refused_or_taken([&] { expand_slurm_hosts(bytes); });
  refused_or_taken([&] { expand_slurm_counts(bytes); });
}

/// Hands every frame to `take`, in the pieces in which a socket gives them.
template <class Take>
void each_frame(std::string_view bytes, size_t max_frame, Take&& take) {
  FrameReader reader(max_frame);
  while (!bytes.empty()) {
    const size_t n = std::min(reader.wanted(), bytes.size());
    if (const auto frame = reader.add(bytes.substr(0, n))) take(*frame);
    bytes.remove_prefix(n);
  }
}

/// As the monitors of ranks read it, by its kind; kinds that have no body are read as another's.
void read_message(const Frame& frame) {
  switch (static_cast<ControlMessage>(frame.kind)) {
    case ControlMessage::kIntroduction:
    case ControlMessage::kMember: read_member(frame.body); return;
    case ControlMessage::kBeat: progress_text(read_report(frame.body)); return;
    case ControlMessage::kAbort:
    case ControlMessage::kBroken: bytes_of(read_cause(frame.body)); return;
    case ControlMessage::kSuspect: bytes_of(read_loss_report(frame.body)); return;
    case ControlMessage::kAsk: read_mark_question(frame.body); return;
    case ControlMessage::kTold: read_mark_answer(frame.body); return;
    case ControlMessage::kAllHere:
    case ControlMessage::kTurnedAway:
    case ControlMessage::kAnswerRequest: read_text(frame.body); return;
    default: read_claim(frame.body); return;
  }
}

/// Bytes from the network, as a listener, a client and a rank that has been let in get them.
void rank_messages(std::string_view bytes) {
  constexpr const char* kToken = "0123456789abcdef";
  refused_or_taken([&] {
    HandshakeServer server(kToken);
    each_frame(bytes, kMaxCallerFrame, [&](const Frame& frame) { server.take(frame); });
  });
  refused_or_taken([&] {
    HandshakeClient client(kToken, {.purpose = "join"});
    each_frame(bytes, kMaxCallerFrame, [&](const Frame& frame) {
      refused_or_taken([&] { client.verdict(frame); });
      client.claim(frame);
    });
  });
  refused_or_taken([&] {
    each_frame(bytes, kMaxFrame, [](const Frame& frame) { refused_or_taken([&] { read_message(frame); }); });
  });
}

/// Returns values for the inputs of an expression; shapes that are too large for a test are refused.
std::vector<NodeValues> values_for(const Expression& expression) {
  std::vector<NodeValues> values;
  for (const ExpressionInput& input : expression.inputs) {
    const MatrixShape shape = input.scalar            ? MatrixShape{1, 1}
                              : input.shape.is_flat() ? MatrixShape{1, 3}
                                                      : input.shape;
    TYCHO_CHECK(shape.rows < 100 && shape.columns < 100, "[fuzz] too large");
    NodeValues& added = values.emplace_back(NodeValues{shape, {}});
    for (int64_t i = 0; i < shape.rows * shape.columns; ++i)
      added.numbers.push_back(static_cast<double>(i % 7) - 3.0);
  }
  return values;
}

/// An expression as a recipe's resolved form has it. Simplified, it has the same numbers.
void expression(std::string_view bytes) {
  refused_or_taken([&] {
    const Expression read = read_expression(parse_json(bytes, "fuzz"));
    must(read_expression(write_expression(read)) == read, "an expression reads back as another");
    check_expression(read);
    text_of(read);
    const Expression simpler = simplify(read);
    check_expression(simpler);
    must(simpler.nodes.size() <= read.nodes.size(), "an expression grew");
    for (const ExpressionInput& input : read.inputs)
      refused_or_taken([&] { check_expression(derivative(read, read.outputs[0].name, {input.name})); });
    refused_or_taken([&] {
      const Program program(read);
      program.constants(program.scalars(std::vector<double>(program.scalar_inputs().size(), 0.5)));
    });
    const std::vector<NodeValues> values = values_for(read);
    const auto before = evaluate(read, values, Arithmetic::kFp32);
    const auto after = evaluate(simpler, values, Arithmetic::kFp32);
    for (size_t i = 0; i < before.size(); ++i)
      for (size_t k = 0; k < before[i].numbers.size(); ++k) {
        const double a = before[i].numbers[k], b = after[i].numbers[k];
        must(a == b || (a != a && b != b), "an expression has other numbers when it is simplified");
      }
  });
}

}  // namespace

std::vector<FuzzTarget> text_fuzz_targets() {
  return {{"expression", expression, 512},
          {"regex", regex, 256},
          {"quantities", quantities, 64},
          {"slurm_lists", slurm_lists, 64},
          {"rank_messages", rank_messages, 512}};
}

}  // namespace tycho
