"""`corpus slurm`: write the batch script of a Slurm job that builds on a Ray cluster of its own."""

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
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --output=tokenmill-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --signal=B:USR1@120
# A lost node takes its parts only, unless it is the first. Two minutes before the time is up, the
# job goes back to the queue; what is published by then stays.
set -euo pipefail
export PATH={programs}:$PATH TOKENMILL_CONFIG={config}
run={folder}/.slurm-$SLURM_JOB_ID      # on the disk that all nodes share
local=/tmp/tokenmill-$SLURM_JOB_ID
port=$((20000 + SLURM_JOB_ID % 10000))
rm -rf "$local"
mkdir -p "$run"
trap 'trap "" TERM; kill 0; wait; rm -rf "$run" "$local"' EXIT  # without cgroups, Slurm leaves them
trap 'scontrol requeue "$SLURM_JOB_ID"' USR1
(umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \\n' >"$run/token")
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$run/token RAY_worker_niceness=0
node=(bash -c 'until "$@" --num-cpus="$SLURM_CPUS_ON_NODE"; do sleep 5; done' node
  ray start --block --object-store-memory=80000000 --disable-usage-stats)

# The first node's address, as the last one sees it.
last=$((SLURM_JOB_NUM_NODES - 1))
head=$(srun --nodes=1 --ntasks=1 --relative=$last printenv SLURM_LAUNCH_NODE_IPADDR)
echo "$head:$port" >"$run/address"
"${{node[@]}}" --head --node-ip-address="$head" --port=$port --temp-dir="$local" \\
  --include-dashboard=false &
until [[ -s $local/ray_current_cluster ]] || ((SECONDS > 600)); do sleep 1; done
if ((last)); then
  srun --nodes=$last --ntasks=$last --relative=1 --no-kill --kill-on-bad-exit=0 --wait=0 \\
    "${{node[@]}}" --address="$head:$port" &
fi
{variable}=$head:$port corpus build &
wait $!
"""


def slurm(
    *,
    nodes: Annotated[int, Parameter(help="Machines of the job.", validator=Number(gte=1))] = 2,
) -> int:
    """Print a batch script: the first node builds, all of them compute, a requeue goes on."""
    programs, config = Path(sys.executable).parent, load_corpus().config.absolute()
    if not (programs / "ray").exists():
        raise UsageError(f"{programs} has no ray. Install it: pip install 'tokenmill[ray]'")
    text = SCRIPT.format(
        nodes=nodes,
        programs=shlex.quote(str(programs)),
        config=shlex.quote(str(config)),
        folder=shlex.quote(str(config.parent)),
        variable=RAY_VARIABLE,
    )
    say(*text.splitlines())
    return 0
