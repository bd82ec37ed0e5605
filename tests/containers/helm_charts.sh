#!/usr/bin/env bash
# The charts of containers/helm, rendered by Helm: every --set of LLM Foundry's walk-through on Kubernetes is accepted and arrives,
# both forms of a training job agree, wrong values are refused, and the commands that pods would run are those of a plan.
# Needs helm, or Python with helm-python-sdk (Helm's engine); skipped where there is neither. With kubernetes-validate in that Python,
# what is rendered is also held to the schemas of Kubernetes.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=${TYCHO_HELM_PYTHON:-python3}
if command -v helm >/dev/null; then
  helm() { command helm "$@"; }
elif "$python" -c 'import helm_python' 2>/dev/null; then
  helm() { "$python" "$root/tests/containers/helm_stand_in.py" "$@"; }
else
  echo "skipped: there is no helm, and no helm-python-sdk for $python"
  exit 77
fi
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
charts=$root/containers/helm
export PATH=$root/containers:${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH TYCHO_RECIPES=$root/recipes

has_schemas=0
if "$python" -c 'import kubernetes_validate' 2>/dev/null; then has_schemas=1; fi
# accepted: whether Kubernetes, from a version of 2023 to the newest that is known, accepts the rendered objects.
accepted() { "$python" "$root/tests/containers/kubernetes_schemas.py" 1.29 1.31 1.37 <"$scratch/rendered" 2>&1; }
# render CHART ARGUMENT...: a template, kept in the file "rendered", and accepted.
render() {
  local chart=$1 status=0; shift
  helm template llm "$charts/$chart" "$@" >"$scratch/rendered" 2>"$scratch/error" || status=$?
  cat "$scratch/rendered" "$scratch/error"
  ((status == 0 && has_schemas)) || return "$status"
  accepted
}
count() { grep -cF -- "$1" "$scratch/rendered"; }
# arguments_of_pod: the command of the first pod, a word a line.
arguments_of_pod() {
  awk '/^ *args:/ { inside = 1; next } inside && /^ *- / { sub(/^ *- /, ""); gsub(/^"|"$/, ""); print; next } inside { exit }' "$scratch/rendered"
}

for chart in shared-storage dataset-download llm-training; do
  check "helm lint $chart" 0 "0 chart(s) failed" helm lint "$charts/$chart"
done

# ---- the walk-through's commands ----
check "shared storage" 0 "name: shared-blob-storage
storage: 10Ti
skuName: \"Standard_LRS\"
- ReadWriteMany
reclaimPolicy: Retain
helm.sh/resource-policy: keep
--block-cache" render shared-storage --set 'storage.pvcName=shared-blob-storage'
check "its other options" 0 "name: mine
storage: 100Ti
skuName: \"Premium_LRS\"
reclaimPolicy: Delete
- -o ro" render shared-storage --set storage.pvcName=mine --set storage.size=100Ti --set storage.skuName=Premium_LRS \
  --set storage.reclaimPolicy=Delete --set 'storage.mountOptions={-o ro}' --set 'storage.accessModes={ReadOnlyMany}'
check "the whole data set" 0 "command: [tycho, data, convert]
\"allenai/c4\"
\"EleutherAI/gpt-neox-20b\"
{name: HF_HOME, value: \"/data/huggingface\"}
\"train,val\"
\"/data/my-copy-c4\"
claimName: \"shared-blob-storage\"" render dataset-download --set storage.pvcName=shared-blob-storage --set dataset.outputPath=my-copy-c4
check "the small data set" 0 "\"train_small,val_small\"" render dataset-download --set storage.pvcName=shared-blob-storage \
  --set dataset.outputPath=my-copy-c4 --set 'dataset.splits={train_small,val_small}'
# The walk-through shows the pod's line, and hub_walkthroughs_test runs it.
check "its pod runs the line of the page" 0 "" grep -qxF -- "$(arguments_of_pod | tr '\n' ' ' | sed 's/ $//')" \
  <(tr -s '\\\n ' ' ' <"$root/docs/walkthroughs/foundry-kubernetes.md" | tr -d "'" | grep -oE -- '--dataset allenai/c4 .*--num_workers 8')
check "no token without a Secret" 1 "" grep -q HF_TOKEN "$scratch/rendered"
check "a token of the hub" 0 "{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: \"hub\", key: token}}}" render dataset-download --set hub.tokenSecret=hub
check "files on the volume" 0 "\"/data/c4/en\"" render dataset-download --set dataset.name=/data/c4/en --set dataset.subset= --set dataset.tokenizer=/data/tokenizer.json

small=(--set image.tag=latest --set model.config=mpt-125m --set storage.pvcName=shared-blob-storage
  --set 'yamlUpdates.train_loader\.dataset\.split=train_small' --set 'yamlUpdates.eval_loader\.dataset\.split=val_small'
  --set "yamlUpdates.variables\\.data_remote=$scratch/data/my-copy-c4" --set 'yamlUpdates.variables\.data_local=/tmp/my-copy-c4')
large=(--set image.tag=latest --set model.config=mpt-30b --set training.nodes=16 --set storage.pvcName=shared-blob-storage
  --set "yamlUpdates.variables\\.data_remote=$scratch/data/my-copy-c4" --set 'yamlUpdates.variables\.data_local=/tmp/my-copy-c4'
  --set 'yamlUpdates.save_folder=/data/checkpoints' --set 'yamlUpdates.save_interval=1000ba'
  --set 'yamlUpdates.save_num_checkpoints_to_keep=10' --set 'yamlUpdates.fsdp_config\.state_dict_type=sharded')
for split in train_small val_small train val; do
  mkdir -p "data/my-copy-c4/$split"
  echo "{}" >"data/my-copy-c4/$split/index.json"
done

# pod [VARIABLE=VALUE...]: the first pod's command as its process would run it, and its plan.
pod() {
  local words=() word
  while IFS= read -r word; do words+=("$word"); done < <(arguments_of_pod)
  env TYCHO_TOKEN=0123456789abcdef "$@" tycho-job --print "${words[@]}"
}
plan() {
  local words=() word
  while IFS= read -r word; do words+=("$word"); done < <(arguments_of_pod)
  tycho-job --plan "$1" "${words[@]:2}"
}
check "the small training run" 0 "image: \"tycho:latest\"
kind: PyTorchJob
replicas: 1
restartPolicy: OnFailure
nvidia.com/gpu: 8
rdma/ib: 1
sizeLimit: 64Gi
terminationGracePeriodSeconds: 300
capabilities: {drop: [ALL], add: [IPC_LOCK]}
kind: NetworkPolicy" render llm-training "${small[@]}"
check "its first pod" 0 "tycho launch -n 8 --nodes 2 --node 0 run $root/recipes/mpt-125m.lua
eval_data.val.split=val_small train_data.split=train_small" pod RANK=0 WORLD_SIZE=2 MASTER_ADDR=llm-master-0 MASTER_PORT=23456
check "its second pod" 0 "--node 1 run" pod RANK=1 WORLD_SIZE=2 MASTER_ADDR=llm-master-0 MASTER_PORT=23456
check "its plan" 0 "in 16 ranks" plan 16
check "the large training run" 0 "replicas: 15
save_num_checkpoints_to_keep=10
fsdp_config.state_dict_type=sharded" render llm-training "${large[@]}"
check "its pods" 0 "run_dir=/data/checkpoints/\\{run_name\\} ckpt.every=1000ba ckpt.keep=10
--nodes 16 --node 15" pod RANK=15 WORLD_SIZE=16 MASTER_ADDR=llm-master-0 MASTER_PORT=23456
check "its plan" 0 "29,975,214,080
in 128 ranks" plan 128

# ---- without an operator ----
check "an indexed Job" 0 "completionMode: Indexed
completions: 16
parallelism: 16
restartPolicy: Never
publishNotReadyAddresses: true
subdomain: llm
{name: MASTER_ADDR, value: \"llm-0.llm\"}
values: [1, 2, 10, 11, 12, 13, 14, 15, 93, 126, 127]" render llm-training "${large[@]}" --set training.kind=Job
check "is no PyTorchJob" 1 "" grep -q PyTorchJob "$scratch/rendered"
check "its pods number themselves" 0 "tycho launch -n 8 --nodes 16 --node 7 run" pod JOB_COMPLETION_INDEX=7 TYCHO_NODES=16 MASTER_ADDR=llm-0.llm MASTER_PORT=23456
check "one node needs no others" 0 "tycho launch -n 8 run" pod JOB_COMPLETION_INDEX=0 TYCHO_NODES=1
check "a PyTorchJob of one node has no workers" 0 "kind: PyTorchJob" render llm-training --set training.nodes=1
check "but its master" 1 "" grep -q Worker: "$scratch/rendered"

# ---- other values ----
echo 'return require "mpt-125m"' >mine.lua
check "a recipe of one's own" 0 "mpt-125m
- /recipe/llm.lua
{name: recipe, mountPath: /recipe}" render llm-training --set-file model.recipe=mine.lua
check "copies on the node's disk" 0 "- --copy
sizeLimit: 2Ti" render llm-training "${large[@]}" --set cache.copy=true --set cache.sizeLimit=2Ti
check "no RDMA" 0 "nvidia.com/gpu: 4" render llm-training --set resources.rdmaResource= --set training.gpusPerNode=4
check "asks for none" 1 "" grep -q rdma "$scratch/rendered"
check "SHARP and NCCL" 0 "{name: NCCL_COLLNET_ENABLE, value: \"1\"}
{name: NCCL_IB_HCA, value: \"mlx5\"}" render llm-training --set env.sharp.enabled=true --set env.nccl.NCCL_IB_HCA=mlx5
check "a queue" 0 "kueue.x-k8s.io/queue-name: night" render llm-training --set kueue.queueName=night
check "a long name of a release" 0 "" render llm-training --set fullnameOverride=a-name-that-is-much-longer-than-what-kubernetes-allows-for-pods
check "is cut" 0 "name: a-name-that-is-much-longer-than-what-kubernet" grep -m1 "name: a-name" "$scratch/rendered"
check "no pod runs a shell" 1 "" grep -rqE '(sh|bash)", "-c|sh -c' "$charts"
check "secrets are in no argument" 1 "" grep -i token <(arguments_of_pod)

check "where pods run, and with what" 0 "disktype: nvme
team: research
cpu: \"8\"
memory: 64Gi
@sha256:0000" render llm-training --set nodeSelector.disktype=nvme --set labels.team=research \
  --set-file model.recipe=mine.lua --set training.kind=Job --set resources.cpu=8 --set resources.memory=64Gi --set "image.digest=sha256:$(printf '%064d' 0)"

# ---- Kubernetes' schemas ----
if ((has_schemas)); then
  # wrong EDIT: what was rendered last, with one mistake.
  wrong() { sed -i "$1" "$scratch/rendered"; accepted; }
  render llm-training --set training.kind=Job >/dev/null
  check "a key that Kubernetes does not know" 1 "'completionsMode' was unexpected" wrong 's/completionMode/completionsMode/'
  render llm-training --set training.kind=Job >/dev/null
  check "a number as a text" 1 "is not of type" wrong 's/parallelism: 2/parallelism: "two"/'
  render llm-training >/dev/null
  check "a mistake in a pod of a PyTorchJob" 1 "PyTorchJob llm" wrong 's/terminationGracePeriodSeconds/gracePeriodSeconds/'
fi

# ---- wrong values ----
check "nodes that are no number" 1 "nodes" render llm-training --set training.nodes=many
check "no nodes" 1 "nodes" render llm-training --set training.nodes=0
check "a key that is none" 1 "gpusPerPod" render llm-training --set training.gpusPerPod=8
check "a kind that is none" 1 "kind" render llm-training --set training.kind=MPIJob
check "updates whose dots are not escaped" 1 "optimizer" render llm-training --set yamlUpdates.optimizer.lr=1
check "a split that is none" 1 "splits" render dataset-download --set 'dataset.splits={test}'
check "a size that is none" 1 "size" render shared-storage --set storage.size=big
# wrong_types CHART: each of its values, and one of another type: PATH=VALUE.
wrong_types() {
  "$python" - "$charts/$1/values.yaml" <<'PYTHON'
import sys, yaml
def walk(values, path):
    for key, value in values.items():
        at = f"{path}{key}"
        if isinstance(value, dict) and value:
            walk(value, at + ".")
        elif isinstance(value, (dict, list)):
            print(f"{at}=word")
        else:
            print(f"{at}.wrong=1")
            if isinstance(value, (int, bool)):
                print(f"{at}=word")
walk(yaml.safe_load(open(sys.argv[1])), "")
PYTHON
}
if "$python" -c 'import yaml' 2>/dev/null; then
  for chart in shared-storage dataset-download llm-training; do
    while IFS= read -r wrong; do
      key=${wrong%%=*}; key=${key%.wrong}
      check "another type in $chart: $wrong" 1 "${key##*.}" helm template llm "$charts/$chart" --set "$wrong"
    done < <(wrong_types "$chart")
  done
fi
check "a policy that is none" 1 "reclaimPolicy" render shared-storage --set storage.reclaimPolicy=Recycle
finish
