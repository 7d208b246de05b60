"""Build and mix the corpus of $TOKENMILL_CONFIG in one process; says when the work begins."""

import sys

import dagster as dg

from pipeline_defs.definitions import defs

if __name__ == "__main__":
    with dg.DagsterInstance.ephemeral() as instance:
        sys.stdout.write("working\n")
        sys.stdout.flush()
        for name in ("build_corpus", "mix_corpus"):
            defs.resolve_job_def(name).execute_in_process(instance=instance)
