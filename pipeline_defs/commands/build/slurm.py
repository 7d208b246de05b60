"""`corpus slurm`: write the script of a Slurm array that builds on a Ray cluster of its own."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from pipeline_defs.commands.terminal import say
from pipeline_defs.load_corpus import RAY_VARIABLE, load_corpus
from resources.errors import UsageError

SCRIPT = """\
#!/bin/bash
# corpus slurm > job.sh; sbatch --partition=NAME --time=HOURS:00:00 job.sh
# Options of sbatch, as these, take the place of the lines below.
#SBATCH --job-name=tokenmill
#SBATCH --array=1-{nodes}
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --output=tokenmill-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# Of the elements that run, the oldest is the head and builds; the others are nodes of its cluster.
# Two minutes before its time is up, an element goes back to the queue; what is published stays.
set -euo pipefail
export PATH={programs}:$PATH RAY_AUTH_MODE=token RAY_worker_niceness=0
export RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0  # for 30 s it would ask a head that has ended
run={folder}/.slurm-$SLURM_ARRAY_JOB_ID  # on the disk that all nodes share
local=/tmp/tokenmill-$SLURM_JOB_ID
inside=({inside} TOKENMILL_CONFIG={config})
node=("${{inside[@]}}" ray start --block --num-cpus="$SLURM_CPUS_ON_NODE" --temp-dir="$local"
  --object-store-memory=80000000 --disable-usage-stats)
rm -rf "$local" "$run-$SLURM_JOB_ID"
# Slurm ends processes only where it has cgroups, and this script KillWait (30 s) after its notice.
trap 'trap "" TERM; rm -rf "$run-$SLURM_JOB_ID"; kill 0; wait; rm -rf "$local"' EXIT
trap 'scontrol requeue "$SLURM_JOB_ID"; exit 1' USR1

# Slurm says who is the head, so that a node that died is none. After five seconds it knows of every
# element that began in the same second.
while sleep 5; do
  read -r head < <(squeue --noheader --job="$SLURM_ARRAY_JOB_ID" --sort=S,i --format=%A \\
    --states=RUNNING,SUSPENDED,COMPLETING) || continue
  [[ $head != "$SLURM_JOB_ID" ]] || break
  address=$(cat "$run-$head/address" 2>/dev/null) || continue
  # `ray start` would try an address without a head for ten minutes.
  timeout 5 bash -c ": <>/dev/tcp/${{address/://}}" 2>/dev/null || continue
  RAY_AUTH_TOKEN_PATH=$run-$head/token "${{node[@]}}" --address="$address" &
  wait $! || true  # it ends a minute after the head
  rm -rf "$local"
done

mkdir "$run-$SLURM_JOB_ID"
export RAY_AUTH_TOKEN_PATH=$run-$SLURM_JOB_ID/token
(umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \\n' >"$RAY_AUTH_TOKEN_PATH")
head=$(srun --ntasks=1 printenv SLURM_LAUNCH_NODE_IPADDR) port=$((20000 + SLURM_JOB_ID % 10000))
(until "${{node[@]}}" --head --node-ip-address="$head" --port=$port --include-dashboard=false; do
  sleep 5
done) &
for ((seconds = 0; seconds < 600; seconds++)); do
  [[ ! -s $local/ray_current_cluster ]] || break
  sleep 1
done
echo "$head:$port" >"$run-$SLURM_JOB_ID/address"
{variable}=$head:$port "${{inside[@]}}" corpus build &
wait $! && code=0 || code=$?
squeue --noheader --array --job="$SLURM_ARRAY_JOB_ID" --format=%i |
  grep -v "_$SLURM_ARRAY_TASK_ID\\$" | xargs --no-run-if-empty scancel || true
rm -rf "$run"-*
exit $code
"""


def slurm(
    *,
    nodes: Annotated[
        int, Parameter(help="Machines at most: elements of the array.", validator=Number(gte=1))
    ] = 2,
    container: Annotated[
        str, Parameter(help="Command that runs another in a container: `apptainer exec FILE.sif`.")
    ] = "",
) -> int:
    """Print a batch script: the first free node builds, others join it, a requeue goes on."""
    programs, config = Path(sys.executable).parent, load_corpus().config.absolute()
    if not container and not (programs / "ray").exists():
        raise UsageError(f"{programs} has no ray. Install it: pip install 'tokenmill[ray]'")
    text = SCRIPT.format(
        nodes=nodes,
        inside=f"{container} env".strip(),
        programs=shlex.quote(str(programs)),
        config=shlex.quote(str(config)),
        folder=shlex.quote(str(config.parent)),
        variable=RAY_VARIABLE,
    )
    say(*text.splitlines())
    return 0
