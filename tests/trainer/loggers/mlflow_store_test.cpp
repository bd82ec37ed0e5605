// Names as MLflow takes them.
#include "trainer/loggers/mlflow_store.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

// Of what mlflow/utils/validation.py of MLflow 3.17 accepts.
TEST(MlflowKey, IsANameThatMlflowAccepts) {
  EXPECT_EQ(mlflow_key("eval.val.loss"), "eval.val.loss");
  EXPECT_EQ(mlflow_key("loss/train/total"), "loss/train/total");
  EXPECT_EQ(mlflow_key("mfu(%)"), "mfu___");
  EXPECT_EQ(mlflow_key("/a//b/"), "a/b");
  EXPECT_EQ(mlflow_key("../a/./b"), "__/a/_/b");
  EXPECT_EQ(mlflow_key("größe"), "gr____e");
  EXPECT_EQ(mlflow_key(""), "_");
  EXPECT_EQ(mlflow_key("//"), "_");
  EXPECT_EQ(mlflow_key(std::string(300, 'x')).size(), 250u);
  EXPECT_EQ(mlflow_key(std::string(249, 'x') + "/y"), std::string(249, 'x'));
}

}  // namespace
}  // namespace tycho
