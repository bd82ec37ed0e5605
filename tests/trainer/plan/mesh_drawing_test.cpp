// Pictures of meshes, compared whole.
#include "trainer/plan/mesh_drawing.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tycho {
namespace {

MeshShape mesh(int pp, int replicate, int shard, int cp, int tp) { return {{pp, replicate, shard, cp, tp}}; }

TEST(MeshDrawing, IsNothingForOneRank) { EXPECT_EQ(draw_mesh({}, 8), ""); }

TEST(MeshDrawing, ShowsWhichAxisCrossesMachines) {
  EXPECT_EQ(draw_mesh(mesh(1, 2, 2, 1, 2), 4),
            "  machine 0  0=1  2=3\n"
            "  machine 1  4=5  6=7\n"
            "  between ranks: dp_replicate \" | \", dp_shard \"  \", tp \"=\"\n"
            "  dp_replicate crosses machines; dp_shard, tp stay within one\n");
  EXPECT_EQ(draw_mesh(mesh(1, 2, 2, 1, 1), 4),
            "  machine 0  0  1 | 2  3\n"
            "  between ranks: dp_replicate \" | \", dp_shard \"  \"\n"
            "  all ranks are on one machine\n");
}

TEST(MeshDrawing, ShowsStagesAndContext) {
  EXPECT_EQ(draw_mesh(mesh(2, 1, 1, 2, 1), 4),
            "  machine 0  0~1 || 2~3\n"
            "  between ranks: pp \" || \", cp \"~\"\n"
            "  all ranks are on one machine\n");
}

TEST(MeshDrawing, CountsMachinesInsteadOfDrawingHundreds) {
  const std::string text = draw_mesh(mesh(1, 32, 8, 1, 1), 8);
  EXPECT_NE(text.find("  machine 0    0    1    2    3    4    5    6    7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  ... 28 more machines\n  machine 31 248  249"), std::string::npos) << text;
  EXPECT_NE(text.find("dp_replicate crosses machines; dp_shard stays within one"), std::string::npos) << text;
}

TEST(MeshDrawing, FoldsTheFastestAxesUntilARowFits) {
  const std::string text = draw_mesh(mesh(1, 2, 4, 1, 8), 32);
  EXPECT_NE(text.find("  machine 0   0..7    8..15  16..23  24..31\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tp \"..\""), std::string::npos) << text;
  for (const MeshShape& one : {mesh(1, 1, 512, 1, 1), mesh(2, 4, 8, 1, 8), mesh(4, 16, 1, 1, 8)})
    for (const int64_t machine : {4, 8, 72, 512}) {
      std::istringstream lines(draw_mesh(one, machine));
      for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    }
}

TEST(MeshDrawing, SeesAnAxisThatCrossesBetweenSomeRanksOnly) {
  EXPECT_NE(draw_mesh(mesh(1, 1, 2, 1, 3), 4).find("dp_shard, tp cross machines"), std::string::npos);
}

}  // namespace
}  // namespace tycho
