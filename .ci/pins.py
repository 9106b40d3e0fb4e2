"""Turn pip's report of what it would install, on standard input, into the lines of constraints.txt."""

import json
import sys

chosen = [item["metadata"] for item in json.load(sys.stdin)["install"]]
print("# Written by `make lock`: the versions that `make demo` and `make test` install.")
for name, version in sorted((entry["name"].lower(), entry["version"]) for entry in chosen):
    if name != "matrixdp":
        print(f"{name}=={version}")
