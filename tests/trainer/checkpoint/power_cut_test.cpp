// Power cuts: whatever an allowed file system keeps of the unsynced past, the last acknowledged checkpoint
// loads.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

/// A file or folder as memory has it and as the disk has it for sure.
struct Node {
  bool is_dir = false;
  std::string written, synced;
};
using NodePtr = std::shared_ptr<Node>;

/// The names of one folder likewise. A name without a node is gone.
struct Names {
  std::map<std::string, NodePtr> volatile_names, durable_names;
};
using Disk = std::map<std::string, Names>;  // by path of the folder

/// Does every call for real and keeps a model of what of it is durable: contents after sync, names after
/// sync_dir. Before each call `cut` may look at the model.
class ModelFiles : public FileOps {
 public:
  ModelFiles(std::string root, std::function<void(const Disk&)> cut)
      : root_(std::move(root)), cut_(std::move(cut)) {}

  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    cut_(disk_);
    return std::make_unique<File>(*this, add(path, false), FileOps::create(path, direct, readers));
  }
  void make_dir(const std::string& path) override {
    cut_(disk_);
    add(path, true);
    FileOps::make_dir(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    cut_(disk_);
    slot(to) = slot(from);
    slot(from) = nullptr;
    FileOps::rename(from, to);
  }
  void remove_file(const std::string& path) override {
    cut_(disk_);
    slot(path) = nullptr;
    FileOps::remove_file(path);
  }
  void remove_dir(const std::string& path) override {
    cut_(disk_);
    slot(path) = nullptr;
    FileOps::remove_dir(path);
  }
  void sync_dir(const std::string& path) override {
    cut_(disk_);
    Names& names = disk_[relative(path)];
    names.durable_names = names.volatile_names;
  }

 private:
  class File : public OutputFile {
   public:
    File(ModelFiles& files, NodePtr node, std::unique_ptr<OutputFile> file)
        : files_(files), node_(std::move(node)), file_(std::move(file)) {}
    void write(const void* data, size_t num_bytes) override {
      files_.cut_(files_.disk_);
      node_->written.append(static_cast<const char*>(data), num_bytes);
      file_->write(data, num_bytes);
    }
    void sync() override {
      files_.cut_(files_.disk_);
      node_->synced = node_->written;
    }
    void close() override { file_->close(); }

   private:
    ModelFiles& files_;
    NodePtr node_;
    std::unique_ptr<OutputFile> file_;
  };

  std::string relative(const std::string& path) const {
    return path == root_ ? "" : path.substr(root_.size() + 1);
  }
  NodePtr& slot(const std::string& path) {
    const fs::path parts(path);
    return disk_[relative(parts.parent_path().string())].volatile_names[parts.filename().string()];
  }
  NodePtr add(const std::string& path, bool is_dir) {
    return slot(path) = std::make_shared<Node>(Node{.is_dir = is_dir});
  }

  std::string root_;
  std::function<void(const Disk&)> cut_;
  Disk disk_;
};

/// Which of the unsynced names and bytes survive.
struct Survival {
  std::function<bool()> name_changes;
  std::function<std::string(const Node&)> content;
};

void materialise(const Disk& disk, const std::string& folder, const std::string& to,
                 const Survival& survival) {
  const auto found = disk.find(folder);
  if (found == disk.end()) return;
  const auto& [volatile_names, durable_names] = found->second;
  for (const auto& [name, node] : volatile_names) {
    const auto durable = durable_names.find(name);
    const NodePtr before = durable == durable_names.end() ? nullptr : durable->second;
    const NodePtr kept = before != node && survival.name_changes() ? node : before;
    if (!kept) continue;
    if (!kept->is_dir) {
      std::ofstream(to + "/" + name, std::ios::binary) << survival.content(*kept);
      continue;
    }
    fs::create_directory(to + "/" + name);
    materialise(disk, folder.empty() ? name : folder + "/" + name, to + "/" + name, survival);
  }
}

TEST(PowerCut, NeverLosesAnAcknowledgedCheckpoint) {
  const TempDir root;
  int64_t acknowledged = 0, num_cuts = 0;
  std::mt19937 random(11);
  const auto coin = [&] { return random() % 2 == 0; };
  const auto synced = [](const Node& node) { return node.synced; };
  const std::vector<Survival> survivals = {
      {[] { return false; }, synced},                                        // only what was synced
      {[] { return true; }, synced},                                         // names hurry ahead of contents
      {[] { return true; }, [](const Node& node) { return node.written; }},  // all, as after SIGKILL
      {coin, synced},
      {coin, [&](const Node& node) { return coin() ? node.written : node.synced; }},
      {coin,
       [&](const Node& node) {
         return node.written == node.synced ? node.synced : std::string(node.written.size(), '\0');
       }},
  };
  const auto cut = [&](const Disk& disk) {
    for (const Survival& survival : survivals) {
      const TempDir after;
      materialise(disk, "", after.path(), survival);
      ++num_cuts;
      if (acknowledged == 0 && steps_in(after / "c").empty()) continue;
      const CheckpointInfo found = find_checkpoint(after / "c");
      ASSERT_TRUE(found.step == acknowledged || found.step == acknowledged + 1) << found.step;
      CheckpointReader(found).verify();
      ASSERT_EQ(differences(found), "");
    }
  };
  for (const int64_t keep : {1, 2}) {
    const std::string folder = root / std::to_string(keep);
    fs::create_directory(folder);
    acknowledged = 0;
    ModelFiles files(folder, cut);
    CheckpointStore store(files, folder + "/c", keep, 1);
    for (int64_t step = 1; step <= 4 && !HasFatalFailure(); ++step) {
      save_step(store, step);
      acknowledged = step;
    }
  }
  EXPECT_GT(num_cuts, 700);
}

}  // namespace
}  // namespace tycho
