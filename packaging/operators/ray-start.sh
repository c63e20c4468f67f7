#!/bin/bash
# Starts a Ray node with the GPUs that work here: ray-start.sh --head, or ray-start.sh --address=HEAD:6379
# Ray counts what the vendor's library lists, lost and forbidden GPUs alike, and tasks that it places there fail.
set -euo pipefail
line=$(probe export ray) # in an assignment, so that a failure ends the script
read -ra options <<<"$line"
exec ray start "${options[@]}" "$@"
