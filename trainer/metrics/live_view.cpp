// Lays the numbers of a run out in lines.
#include "trainer/metrics/live_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/bytes.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"

namespace tycho {
namespace {

enum class Colour { kNone, kBold, kDim, kCyan, kGreen, kYellow };

const char* escape(Colour colour) {
  switch (colour) {
    case Colour::kBold: return "\x1b[1m";
    case Colour::kDim: return "\x1b[2m";
    case Colour::kCyan: return "\x1b[36m";
    case Colour::kGreen: return "\x1b[32m";
    case Colour::kYellow: return "\x1b[33m";
    case Colour::kNone: break;
  }
  return "";
}

struct Span {
  std::string text;
  Colour colour = Colour::kNone;
};

/// A line that is filled from the left and rejects fields that do not fit.
class Line {
 public:
  explicit Line(const ViewStyle& style) : style_(style) {}

  int room() const { return style_.width - columns_; }
  void add(const Span& span) {
    const std::string text = cut_to_width(span.text, room(), style_.unicode);
    const bool coloured = style_.colour && span.colour != Colour::kNone && !text.empty();
    text_ += coloured ? escape(span.colour) + text + "\x1b[0m" : text;
    columns_ += display_width(text);
  }
  void add_right(const Span& span) {
    const int gap = room() - display_width(span.text);
    if (gap < 2) return;
    add({std::string(static_cast<size_t>(gap), ' ')});
    add(span);
  }
  void widen(int width) { style_.width = width; }
  ViewLine view_line() const { return {text_, columns_}; }

 private:
  ViewStyle style_;
  int columns_ = 0;
  std::string text_;
};

/// Lays out fields side by side on as many lines as needed.
class Flow {
 public:
  explicit Flow(const ViewStyle& style) : style_(style) {}

  void add(const std::vector<Span>& field) {
    int columns = 0;
    for (const Span& span : field) columns += display_width(span.text);
    if (lines_.empty() || lines_.back().room() < columns + 2) {
      lines_.emplace_back(style_);
      lines_.back().add({" "});
    } else {
      lines_.back().add({"  "});
    }
    for (const Span& span : field) lines_.back().add(span);
  }
  void append_to(std::vector<ViewLine>& out) const {
    for (const Line& line : lines_) out.push_back(line.view_line());
  }

 private:
  ViewStyle style_;
  std::vector<Line> lines_;
};

ViewLine header(const ViewState& state, const ViewStyle& style) {
  const RunInfo& run = state.run;
  const auto safe = [&](const std::string& text) { return printable(text, style.unicode); };
  // The hint stays where the rest does not fit.
  const std::string hint = state.end_reason.empty() ? "^C saves and stops" : "";
  ViewStyle rest = style;
  if (style.width >= 3 * display_width(hint)) rest.width -= display_width(hint) + (hint.empty() ? 0 : 2);
  Line line(rest);
  line.add({" "});
  line.add({safe(run.run_name), Colour::kBold});
  line.add({"  " + safe(run.run_dir)});
  const std::string ranks = run.num_ranks > 1 ? fmt::format("{} ranks  ", run.num_ranks) : "";
  line.add({fmt::format("  {}{}  {}", ranks, safe(run.device), safe(run.precision)), Colour::kDim});
  line.add({"  recipe " + safe(run.recipe_hash.substr(0, 8)), Colour::kDim});
  if (!run.pins.empty()) line.add({"  pins: " + safe(fmt::format("{}", fmt::join(run.pins, " ")))});
  line.widen(style.width);
  if (!hint.empty()) line.add_right({hint, Colour::kDim});
  return line.view_line();
}

/// Draws a bar of `columns` columns: a heavy line for the part done, a light one for the rest.
std::vector<Span> bar(double done, int columns, bool unicode) {
  const int half_cells = static_cast<int>(std::floor(std::clamp(done, 0.0, 1.0) * columns * 2));
  const int full = half_cells / 2;
  const bool half = half_cells % 2 == 1;
  const auto repeat = [](const char* text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const int rest = columns - full - (half ? 1 : 0);
  if (!unicode)
    return {{repeat("=", full) + (half ? ">" : ""), Colour::kCyan}, {repeat("-", rest), Colour::kDim}};
  return {{repeat("━", full) + (half ? "╸" : ""), Colour::kCyan}, {repeat("─", rest), Colour::kDim}};
}

ViewLine progress(const ViewState& state, const ViewStyle& style) {
  const int64_t total = state.run.total_steps;
  const int64_t step = state.now.step > 0 ? state.now.step : state.run.first_step;
  const double done = total > 0 ? static_cast<double>(step) / static_cast<double>(total) : 0;
  std::string right = "  " + percent_text(done);
  if (!state.end_reason.empty()) {
    right += "  took " + clock_text(state.elapsed_s);
  } else if (state.now.step > 0) {
    right += "  eta " + clock_text(state.now.eta_s);
    if (!state.ends_at.empty()) right += "  ends " + state.ends_at;
  } else {
    right += "  starting";
  }
  Line line(style);
  line.add({fmt::format(" {:>{}}/{} ba ", step, std::to_string(total).size(), total)});
  const int columns = std::min(60, line.room() - display_width(right));
  if (columns >= 8) {
    for (const Span& span : bar(done, columns, style.unicode)) line.add(span);
  }
  line.add({right});
  return line.view_line();
}

std::string memory_text(const ViewState& state) {
  const auto used = static_cast<double>(state.now.memory_bytes);
  if (state.run.device_memory_bytes <= 0) return "mem " + human_bytes(used);
  return fmt::format("mem {} of {}", human_bytes(used),
                     human_bytes(static_cast<double>(state.run.device_memory_bytes)));
}

/// Returns "407 TFLOP/s (361 causal)", or GFLOP/s for small values.
std::string work_text(const StepMetrics& metrics) {
  const bool small = metrics.tflops < 1;
  const double scale = small ? 1e3 : 1;
  return fmt::format("{:.3g} {} ({:.3g} causal)", metrics.tflops * scale, small ? "GFLOP/s" : "TFLOP/s",
                     metrics.tflops_causal * scale);
}

void add_metrics(const ViewState& state, const ViewStyle& style, std::vector<ViewLine>& out) {
  const StepMetrics& m = state.now;
  Flow flow(style);
  const std::string line = sparkline(state.losses.values(), style.width >= 100 ? 24 : 16, style.unicode);
  std::vector<Span> loss = {{"loss "}, {metric_text(m.loss), Colour::kBold}};
  if (!line.empty()) {
    loss.push_back({" "});
    loss.push_back({line, Colour::kCyan});
  }
  flow.add(loss);
  if (state.eval_loss) flow.add({{"eval " + metric_text(*state.eval_loss)}});
  flow.add({{"lr " + short_text(m.lr)}});
  flow.add({{"grad " + short_text(m.grad_norm)}});
  flow.add({{human_count(m.tokens_per_s) + " tok/s"}});
  flow.add({{work_text(m)}});
  if (m.mfu && m.mfu_causal)
    flow.add({{fmt::format("mfu {} ({} causal)", percent_text(*m.mfu), percent_text(*m.mfu_causal))}});
  flow.add({{"data wait " + percent_text(state.data_wait_share)}});
  flow.add({{memory_text(state)}});
  for (const ShownMetric& one : state.shown)
    flow.add({{printable(one.name, style.unicode) + " "},
              {one.value ? metric_text(*one.value) : "none yet", one.value ? Colour::kBold : Colour::kDim}});
  flow.append_to(out);
}

/// Returns "12 s ago"; "" for less than two seconds.
std::string age_text(double age_s) {
  if (age_s < 2) return "";
  if (age_s < 90) return fmt::format("{:.0f} s ago", age_s);
  if (age_s < 5400) return fmt::format("{:.0f} min ago", age_s / 60);
  return fmt::format("{:.0f} h ago", age_s / 3600);
}

/// Adds a notice on as many lines as its text needs, at most `most`, with its age after the last one where it
/// fits.
void add_notice(const Notice& notice, const Span& mark, size_t most, const ViewStyle& style,
                std::vector<ViewLine>& out) {
  if (notice.text.empty()) return;
  const int indent = 2 + display_width(mark.text), width = std::max(8, style.width - indent);
  std::vector<std::string> lines = wrap_to_width(printable(notice.text, style.unicode), width);
  if (lines.size() > most) {
    const std::string cut = lines[most - 1] + " " + lines[most];
    lines.resize(most);
    lines.back() = cut_to_width(cut, width, style.unicode);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    Line line(style);
    line.add({i == 0 ? " " : std::string(static_cast<size_t>(indent), ' ')});
    if (i == 0) line.add(mark), line.add({" "});
    line.add({lines[i]});
    const std::string age = i + 1 == lines.size() ? age_text(notice.age_s) : "";
    if (!age.empty()) line.add_right({age, Colour::kDim});
    out.push_back(line.view_line());
  }
}

}  // namespace

void History::add(double value) {
  if (!std::isfinite(value)) return;
  pending_sum_ += value;
  if (++num_pending_ < stride_) return;
  values_.push_back(pending_sum_ / static_cast<double>(num_pending_));
  num_pending_ = 0;
  pending_sum_ = 0;
  if (values_.size() < kCapacity) return;
  for (size_t i = 0; i < kCapacity / 2; ++i) values_[i] = (values_[2 * i] + values_[2 * i + 1]) / 2;
  values_.resize(kCapacity / 2);
  stride_ *= 2;
}

std::vector<ViewLine> draw_view(const ViewState& state, const ViewStyle& style) {
  std::vector<ViewLine> lines = {header(state, style), progress(state, style)};
  if (state.now.step > 0) add_metrics(state, style, lines);
  add_notice(state.checkpoint, {"ckpt", Colour::kGreen}, 1, style, lines);
  add_notice(state.evaluation, {"eval", Colour::kGreen}, 1, style, lines);
  add_notice(state.event, {style.unicode ? "·" : "-", Colour::kDim}, 2, style, lines);
  add_notice(state.warning, {"!", Colour::kYellow}, 3, style, lines);
  // Nothing is drawn after it: it may be as long as it is.
  if (!state.end_reason.empty())
    add_notice({state.end_reason, 0}, {style.unicode ? "■" : "=", Colour::kBold}, SIZE_MAX, style, lines);
  return lines;
}

}  // namespace tycho
