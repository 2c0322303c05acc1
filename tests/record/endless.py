"""Starts programs that never end by themselves, so that none outlives its test, however the test ends."""
import ctypes
import signal
import subprocess

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def start(case, command, preexec_fn=None, **more):
    """The program is killed at the end of the test, or when the process that runs the tests ends."""
    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if preexec_fn:
            preexec_fn()

    child = subprocess.Popen([str(a) for a in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             preexec_fn=prepare, **more)

    def end():
        if child.poll() is None:
            child.kill()
            child.communicate()
    case.addCleanup(end)
    return child
