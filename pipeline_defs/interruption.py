"""End a run as canceled, soon, on SIGINT, SIGTERM and Terminate (which is a SIGINT).

Python raises a signal in the main thread, between two of its own instructions; Dagster takes that
for a failure, to be retried. Kernels and Polars listen to nothing, and a process waits for its
threads before it ends. A thread here is told of a signal at once, in whatever call the main thread
is, and stops what has not stopped by itself: child processes after CHILD_SECONDS, then this one.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg

from resources.engine.workers import end_workers

CHILD_SECONDS = 1.5  # of a step, or a process that compiles kernels or drives a Ray cluster
RUN_SECONDS = 4.0  # of the 5 that a user waits at most; the hook of a run takes 2 at most
STOPPED = "Stopped by a signal. Published parts are kept: run again to continue."
FINISHED = (dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS)
STOPPING = (*FINISHED, dg.DagsterRunStatus.CANCELING)


class Interruption:
    """The interruption of one run, if it comes."""

    def __init__(self, instance: dg.DagsterInstance, run_id: str, tidy: Callable[[], None]) -> None:
        self.instance = instance
        self.run_id = run_id
        self.tidy = tidy
        self.reader, self.writer = os.pipe()
        self.has_come = threading.Event()
        self.is_reported = threading.Event()

    def watch(self) -> None:
        """Wait for a signal, then for the end of the run; bring about what does not come."""
        while not {signal.SIGINT, signal.SIGTERM} & (received := set(os.read(self.reader, 64))):
            if END_OF_WATCH in received:
                return
        begun = time.monotonic()
        self.begin()
        time.sleep(max(0.0, begun + CHILD_SECONDS - time.monotonic()))
        kill_children()
        while time.monotonic() < begun + RUN_SECONDS and threading.main_thread().is_alive():
            time.sleep(0.05)
        self.end_process()

    def begin(self) -> None:
        """Tell Dagster that the run is being canceled; it would otherwise end as a failure."""
        self.has_come.set()
        atexit.register(leave)
        with shown_and_passed_over():
            run = self.instance.get_run_by_id(self.run_id)
            if run is not None and run.status not in STOPPING:
                self.instance.report_run_canceling(run, "Stopped by a signal.")
        self.is_reported.set()

    def end_process(self) -> None:
        """End this process, of which threads are still computing, with exit code 1."""
        with shown_and_passed_over():
            run = self.instance.get_run_by_id(self.run_id)
            if run is not None and run.status not in FINISHED:
                self.instance.report_run_canceled(run)
            kill_children()
            self.tidy()
        sys.stderr.write(f"{STOPPED}\n")
        leave()


def kill_children() -> None:
    """Kill steps and what else computes; wait until the workers have ended that they asked for."""
    for child in multiprocessing.active_children():
        child.kill()
    end_workers()


def leave() -> None:
    """End this process at once: Python takes seconds to end, on a busy machine ten of them."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


@contextmanager
def shown_and_passed_over() -> Iterator[None]:
    """Print an error and go on: the process ends even if Dagster's records cannot be written."""
    try:
        yield
    except Exception:  # noqa: BLE001 - whatever it is
        traceback.print_exc()


END_OF_WATCH = 0


def pass_on_interrupt(writer: int) -> None:
    """Tell the watch of a signal that Dagster held back before there was one, and raise it."""
    try:
        with dg.raise_execution_interrupts():
            return
    except dg.DagsterExecutionInterruptedError:
        os.write(writer, bytes([signal.SIGINT]))
        raise


@contextmanager
def ended_by_signals(
    instance: dg.DagsterInstance, run_id: str, tidy: Callable[[], None]
) -> Iterator[threading.Event]:
    """Watch over a run; the event is set when a signal has come. `tidy` is called at its end."""
    interruption = Interruption(instance, run_id, tidy)
    if threading.current_thread() is not threading.main_thread():
        yield interruption.has_come  # as in a test: signals are not ours
        return
    os.set_blocking(interruption.writer, False)
    before = signal.set_wakeup_fd(interruption.writer, warn_on_full_buffer=False)
    threading.Thread(target=interruption.watch, daemon=True, name="interruption").start()
    try:
        pass_on_interrupt(interruption.writer)
        yield interruption.has_come
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        if interruption.has_come.wait(CHILD_SECONDS):
            interruption.is_reported.wait(RUN_SECONDS)
            interruption.end_process()  # Dagster would print the frames of where it was
        raise
    finally:
        if interruption.has_come.is_set():
            interruption.is_reported.wait(RUN_SECONDS)
            tidy()
        else:
            signal.set_wakeup_fd(before)
            os.write(interruption.writer, bytes([END_OF_WATCH]))
