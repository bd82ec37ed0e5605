// The report: complete for whatever state a sweep is in, safe for whatever text is in it.
#include "trainer/sweep/report.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "tests/trainer/sweep/sweep_fixture.h"
#include "trainer/report/svg.h"
#include "trainer/sweep/report_plots.h"

namespace tycho {
namespace {

class ReportTest : public SweepBoardTest {
 protected:
  SweepRuns runs;
};

TEST_F(ReportTest, OfASweepThatHasNotBegunIsAPage) {
  SweepFolder f = folder(define(2));
  const ReportPages pages = sweep_report(f, runs);
  EXPECT_NE(pages.html.find("0 of 2"), std::string::npos);
  EXPECT_NE(pages.html.find("</html>"), std::string::npos);
}

// --watch keeps what it has read, and its page is that of a reader who begins anew.
TEST_F(ReportTest, CurvesOfRunsThatGoOnAreThoseOfAWholeReading) {
  SweepFolder f = folder(define(2));
  for (const char* id : {"a1", "a2"}) do_trial(f, id, TrialState::kFinished, 1.0);
  const std::string run_dir = f.run_dir(f.board().trials()[0]);
  std::filesystem::create_directories(run_dir);
  std::ofstream(run_dir + "/events.jsonl")
      << R"({"time":1,"attempt":1,"step":0,"kind":"run_start","facts":{}})"
      << "\n";
  int step = 0;
  for (const int until : {10, 300, 301}) {
    std::ofstream metrics(run_dir + "/metrics.jsonl", std::ios::app);
    while (step < until) {
      ++step;
      metrics << Json({{"step", step},
                       {"attempt", 1},
                       {"time", 1 + step},
                       {"tokens", 8 * step},
                       {"loss", 1.0 / step}})
                     .dump()
              << "\n";
    }
    metrics.close();
    SweepRuns fresh;
    const std::string page = sweep_report(f, runs).html;
    EXPECT_EQ(page, sweep_report(f, fresh).html);
    EXPECT_NE(page.find("\"loss\""), std::string::npos);
    EXPECT_EQ(runs.read(run_dir, "loss")->curve("loss").num_points, until);
  }
  std::filesystem::remove_all(run_dir);
  EXPECT_FALSE(runs.read(run_dir, "loss")) << "removed by hand";
  EXPECT_NE(sweep_report(f, runs).html.find("</html>"), std::string::npos);
}

TEST_F(ReportTest, TextsAreEscaped) {
  SweepDefinition definition = define(2);
  definition.name = "<script>";
  definition.trials[0].values["optimizer.lr"] = "\"><b>";
  SweepFolder f = folder(definition);
  do_trial(f, "a1", TrialState::kFinished, 1.0);
  claim(f, "a2");
  end(f, "a2", TrialState::kFailed, {}, 0, "<img src=x>");
  const ReportPages pages = sweep_report(f, runs);
  EXPECT_EQ(pages.html.find("<script>"), std::string::npos);
  EXPECT_EQ(pages.html.find("<img"), std::string::npos);
  EXPECT_NE(pages.html.find("&lt;img src=x&gt;"), std::string::npos);
}

/// The elements of a drawing that begin with `head`, each up to its ">".
std::vector<std::string> elements(const std::string& svg, const std::string& head) {
  std::vector<std::string> found;
  for (size_t at = svg.find(head); at != std::string::npos; at = svg.find(head, at + 1))
    found.push_back(svg.substr(at, svg.find('>', at) - at));
  return found;
}

double attribute(const std::string& element, const std::string& name) {
  const size_t at = element.find(" " + name + "=\"");
  return at == std::string::npos ? NAN : std::stod(element.substr(at + name.size() + 3));
}

/// 30 trials whose learning rates span five decades; the last has a loss far off.
SweepFolder many_trials(SweepDefinition definition,
                        const std::function<SweepFolder(const SweepDefinition&)>& make,
                        const std::function<void(SweepFolder&, const std::string&, double)>& finish) {
  for (size_t i = 0; i < definition.trials.size(); ++i)
    definition.trials[i].values["optimizer.lr"] =
        std::to_string(std::pow(10, -6 + static_cast<double>(i) / 6));
  SweepFolder f = make(definition);
  for (size_t i = 0; i < definition.trials.size(); ++i)
    finish(f, definition.trials[i].id,
           i + 1 == definition.trials.size() ? 1e6 : 3.12345 + 1e-5 * static_cast<double>(i));
  return f;
}

TEST_F(ReportTest, MarksLieInsideTheFrameAndALegendSaysWhatTheyAre) {
  const SweepFolder f = many_trials(
      define(30), [&](const SweepDefinition& d) { return folder(d); },
      [&](SweepFolder& g, const std::string& id, double loss) {
        do_trial(g, id, TrialState::kFinished, loss);
      });
  const std::string svg = marginal_plots(f.board());
  const std::string frame = elements(svg, "<rect class=\"frame\"").at(0);
  const double left = attribute(frame, "x"), right = left + attribute(frame, "width");
  const double top = attribute(frame, "y"), bottom = top + attribute(frame, "height");
  const std::vector<std::string> dots = elements(svg, "<circle");
  EXPECT_GE(dots.size(), 25u);
  for (const std::string& dot : dots) {
    const double radius = attribute(dot, "r");
    EXPECT_GE(attribute(dot, "cx") - radius, left) << dot;
    EXPECT_LE(attribute(dot, "cx") + radius, right) << dot;
    EXPECT_GE(attribute(dot, "cy") - radius, top) << dot;
    EXPECT_LE(attribute(dot, "cy") + radius, bottom) << dot;
  }
  EXPECT_GE(elements(svg, "<polygon class=\"beyond\"").size(), 1u) << "the loss that is far off";
  EXPECT_EQ(dots.size() + elements(svg, "<polygon").size(), 30u);
  for (const char* words : {">best<", ">worst, ▲ beyond the scale<"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  for (const std::string& other : {parallel_plot(f.board()), svg})
    EXPECT_NE(other.find("class=\"legend\""), std::string::npos);
}

TEST_F(ReportTest, EveryClassOfThePageHasARule) {
  const SweepFolder f = many_trials(
      define(30), [&](const SweepDefinition& d) { return folder(d); },
      [&](SweepFolder& g, const std::string& id, double loss) {
        do_trial(g, id, TrialState::kFinished, loss);
      });
  const std::string page = sweep_report(f, runs).html;
  const std::string style = page.substr(0, page.find("</style>")), head = "class=\"";
  std::set<std::string> classes;
  for (size_t at = page.find(head); at != std::string::npos; at = page.find(head, at + 1)) {
    const size_t begin = at + head.size();
    classes.insert(page.substr(begin, page.find('"', begin) - begin));
  }
  EXPECT_TRUE(classes.contains("importance"));
  for (const std::string& name : classes) EXPECT_NE(style.find("." + name), std::string::npos) << name;
}

TEST_F(ReportTest, NoLineGoesThroughALabelOfAnAxis) {
  const SweepFolder f = many_trials(
      define(30), [&](const SweepDefinition& d) { return folder(d); },
      [&](SweepFolder& g, const std::string& id, double loss) {
        do_trial(g, id, TrialState::kFinished, loss);
      });
  const std::string svg = marginal_plots(f.board());
  constexpr double kLetter = 6, kHeight = 8;
  struct Box {
    double left, right, top, bottom;
  };
  std::vector<Box> labels;
  for (size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1)) {
    const size_t end = svg.find('>', at);
    const std::string element = svg.substr(at, end - at);
    EXPECT_EQ(element.find("rotate"), std::string::npos) << element;
    const double width = kLetter * static_cast<double>(svg.find('<', end) - end - 1),
                 x = attribute(element, "x");
    const bool to_left = element.find("\"end\"") != std::string::npos;
    const double left = to_left                                           ? x - width
                        : element.find("\"middle\"") != std::string::npos ? x - width / 2
                                                                          : x;
    labels.push_back({left, left + width, attribute(element, "y") - kHeight, attribute(element, "y")});
  }
  ASSERT_GE(labels.size(), 10u);
  const auto meet = [](const Box& a, const Box& b) {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  };
  for (size_t i = 0; i < labels.size(); ++i) {
    for (const std::string& line : elements(svg, "<line class=\"tick\""))
      EXPECT_FALSE(meet(labels[i], {attribute(line, "x1") - 0.5, attribute(line, "x2") + 0.5,
                                    attribute(line, "y1") - 0.5, attribute(line, "y2") + 0.5}))
          << line;
    for (size_t k = 0; k < i; ++k)
      EXPECT_FALSE(meet(labels[i], labels[k])) << i << " and " << k << "\n" << svg;
  }
}

TEST_F(ReportTest, WordsOfAnAxisStandAboveTheLinesThatMeetThere) {
  SweepDefinition definition = define(4);
  for (size_t i = 0; i < 4; ++i)
    definition.trials[i].values["scheduler.t_warmup"] = i % 2 == 0 ? "0.02dur" : "0.2dur";
  SweepFolder f = folder(definition);
  for (int i = 1; i <= 4; ++i) do_trial(f, "a" + std::to_string(i), TrialState::kFinished, 3.0 + i);
  const std::string svg = parallel_plot(f.board());
  const std::vector<std::string> labels = elements(svg, "<text class=\"inner\"");
  EXPECT_EQ(elements(svg, "<rect class=\"ground\"").size(), labels.size()) << "each on a ground of its own";
  const size_t word = svg.find(">0.02dur<");
  ASSERT_NE(word, std::string::npos);
  const std::string label = svg.substr(svg.rfind("<text", word), word - svg.rfind("<text", word));
  // The point of the word's axis that lines go through, as the first line has it: x,y of the second vertex.
  const std::string line = elements(svg, "<polyline").at(0);
  int through = 0;
  for (const std::string& one : elements(svg, "<polyline")) {
    const size_t at = one.find(' ', one.find("points"));
    const double y = std::stod(one.substr(one.find(',', at) + 1));
    if (y > attribute(label, "y") - 9 && y < attribute(label, "y") + 3) ++through;
  }
  EXPECT_EQ(through, 0) << label << "\n" << line;
}

TEST_F(ReportTest, ScalesAreChosenByTheirValues) {
  const Scale lr = Scale::of({"1e-4", "1e-3", "2e-3", "1e-2", "5e-3"});
  EXPECT_FALSE(lr.is_words());
  EXPECT_NEAR(lr.at("1e-3"), 0.5, 1e-9) << "by its logarithm";
  EXPECT_NEAR(Scale::of({"1", "2", "3", "4", "5"}).at("3"), 0.5, 1e-9);
  const Scale words = Scale::of({"50ba", "100ba", "50ba"});
  EXPECT_TRUE(words.is_words());
  EXPECT_EQ(words.at("nothing"), -1);
  EXPECT_EQ(Scale::linear(2, 2).at(2.0), 0.5);
}

TEST_F(ReportTest, ScalesOfTheLargestNumbersHaveFewTicks) {
  const double most = std::numeric_limits<double>::max();
  for (const double high : {1e308, most})
    for (const double low : {-high, 0.0, high * 0.5, std::nextafter(high, 0)})
      for (const Scale& scale : {Scale::linear(low, high), Scale::linear(low, high).padded(),
                                 Scale::linear(low - high, high * 1.06)}) {
        const auto ticks = scale.ticks();
        EXPECT_LE(ticks.size(), 20u);
        for (const auto& [at, label] : ticks) EXPECT_TRUE(at >= 0 && at <= 1) << label;
        EXPECT_TRUE(scale.at(high) >= 0.5 && scale.at(high) <= 1);
      }
  EXPECT_EQ(Scale::linear(-1e308, 1e308).at(0.0), 0.5);
  EXPECT_LE(Scale::of({"1e308", "-1e308", "1", "2", "3", "4"}).ticks().size(), 20u);
}

}  // namespace
}  // namespace tycho
