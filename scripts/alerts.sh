#!/usr/bin/env bash
# Lets promtool judge what is in deploy/monitoring: the rules, their cases, and the queries of the dashboard. Without promtool it says so,
# and nothing was checked.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../deploy/monitoring"

if ! command -v promtool >/dev/null; then
  echo 'alerts: promtool is not installed, nothing was checked (Debian: apt-get install prometheus)'
  exit 0
fi

promtool check rules --lint-fatal rules.yaml
promtool test rules rules_test.yaml

# A query of the dashboard is a query of Prometheus once Grafana has put its variables in.
queries=$(mktemp --suffix=.json)
trap 'rm "$queries"' EXIT
python3 - >"$queries" <<'PYTHON'
import json

panels = json.load(open("dashboard.json"))["panels"]
texts = [target["expr"] for panel in panels for target in panel.get("targets", [])]
rules = [
    {"record": f"query:{number}", "expr": text.replace("$__rate_interval", "5m").replace("$cluster", ".*").replace("$job", ".+").replace("$instance", ".+")}
    for number, text in enumerate(texts)
]
assert rules, "the dashboard asks for nothing"
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
PYTHON
promtool check rules "$queries" | sed "s#$queries#dashboard.json#"
