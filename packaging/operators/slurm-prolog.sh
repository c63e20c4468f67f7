#!/bin/bash
# slurm.conf:  Prolog=/etc/slurm/slurm-prolog.sh   PrologFlags=Alloc
# Refuses a node on which an accelerator is missing, or absent where PROBE_EXPECT or a saved baseline says how many
# there should be: a Prolog that fails drains the node and requeues the job. slurmd runs it as root without a PATH. It
# calls no Slurm command, which Slurm's guide forbids here.
set -u
PATH=/opt/probe/bin:/usr/local/bin:/usr/bin:/bin
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0 # the job has no GPU

facts=$(timeout --kill-after=5 45 probe export env 2>/dev/null)
status=$?
if [ "$status" -ne 0 ]; then
  # A node of which nothing is known is not refused: a broken installation must not drain a cluster.
  echo "probe ended with $status, the node was not checked" >&2
  exit 0
fi
missing=$(sed -n "s/^NODE_MISSING='\([0-9]*\)'\$/\1/p" <<<"$facts")
causes=$(sed -n "s/^NODE_MISSING_CAUSES='\(.*\)'\$/\1/p" <<<"$facts")
absent=$(sed -n "s/^NODE_ABSENT='\([0-9]*\)'\$/\1/p" <<<"$facts")
if [ "${absent:-0}" -ne 0 ]; then
  echo "$absent of this node's accelerators are absent" >&2
  exit 1
fi
if [ "${missing:-0}" -ne 0 ]; then
  echo "$missing of this node's accelerators cannot be used: ${causes:-unknown}" >&2
  exit 1
fi
exit 0
