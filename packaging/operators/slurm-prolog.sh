#!/bin/bash
# slurm.conf:  Prolog=/etc/slurm/slurm-prolog.sh   PrologFlags=Alloc
# Refuses a node on which a card that jobs are given cannot be used, or is absent where PROBE_EXPECT or a saved baseline
# says how many there should be: a Prolog that fails drains the node and requeues the job. What blocks no job drains no
# node: a processor's own graphics beside cards, a card for a guest, a hot card, a job without a GPU. slurmd runs it as
# root without a PATH. It calls no Slurm command, which Slurm's guide forbids here.
set -u
export PATH=/opt/probe/bin:/usr/local/bin:/usr/bin:/bin
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0 # the job has no GPU

facts=$(timeout --kill-after=5 45 probe export env 2>/dev/null)
status=$?
if [ "$status" -ne 0 ]; then
  # A node of which nothing is known is not refused: a broken installation must not drain a cluster.
  echo "probe ended with $status, the node was not checked" >&2
  exit 0
fi
blocking=$(sed -n "s/^NODE_BLOCKING='\([0-9]*\)'\$/\1/p" <<<"$facts")
causes=$(sed -n "s/^NODE_BLOCKING_CAUSES='\(.*\)'\$/\1/p" <<<"$facts")
absent=$(sed -n "s/^NODE_ABSENT='\([0-9]*\)'\$/\1/p" <<<"$facts")
if [ "${absent:-0}" -ne 0 ]; then
  echo "$absent of this node's accelerators are absent" >&2
  exit 1
fi
if [ "${blocking:-0}" -ne 0 ]; then
  echo "$blocking of this node's accelerators cannot be used: ${causes:-unknown}" >&2
  exit 1
fi
exit 0
