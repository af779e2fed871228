#!/usr/bin/env bash
# Copies into the chart what it has from the kustomize trees: rules with their reasons, CRDs, policies, alerts and the dashboard. Copies, because
# a packed chart is all that its user has, and because links out of a chart are refused by Argo CD. tests/deploy compares them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../deploy"
readonly INTO=chart/allclear/files

rm -rf "$INTO"
mkdir -p "$INTO"/{rules,crds,policies}
while read -r name source; do
  cp "$source" "$INTO/rules/$name.yaml"
done <<'RULES'
cluster base/cluster-role.yaml
namespaced overlays/namespaced/role.yaml
ledger base/ledger-role.yaml
pipelines components/pipelines/role.yaml
pipelines-weave overlays/weave/role.yaml
gitopsclusters components/gitopsclusters/role.yaml
apps components/apps/role.yaml
repos components/repo/role.yaml
repo-destroy components/repo-destroy/role.yaml
hooks components/hooks/role.yaml
approver components/approvals-by-hand/role.yaml
repo-approver components/repo-approvals/role.yaml
reader components/reader/role.yaml
ledger-reader components/ledger-reader/role.yaml
RULES
cp crds/histories.yaml crds/pipelines.yaml crds/pipelines-weave.yaml crds/promotionfreezes.yaml crds/repos.yaml "$INTO/crds/"
cp policies/approvals.yaml policies/manual.yaml "$INTO/policies/"
if [[ -d monitoring ]]; then
  mkdir "$INTO/monitoring"
  for file in rules.yaml dashboard.json; do
    [[ ! -f monitoring/$file ]] || cp "monitoring/$file" "$INTO/monitoring/"
  done
fi
