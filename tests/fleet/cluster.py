#!/usr/bin/env python3
"""A Slurm cluster for tests: munged, slurmctld and three slurmd of Debian's packages, on this machine alone.

    cluster.py COMMAND…    runs a command with such a cluster around it, and ends with its status

The test runs in namespaces of its own: its processes end with it whatever happens, kill -9 included; its network is a
loopback that nothing else sees; and its files are in memory, mounted where no other process sees them. So nothing has to be
cleaned up, and nothing can be left.
"""
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS  # noqa: E402

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
INSIDE = "WAYMARK_TEST_CLUSTER"
FOLDER = pathlib.Path("/mnt")


def why_not():
    """The reason why no cluster can be started here, or None."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        return f"no {', '.join(missing)}: install the Debian packages slurmctld, slurmd, slurm-client and munge"
    if subprocess.run([*namespaces(), "true"], capture_output=True).returncode:
        return "namespaces are forbidden here: unshare fails"
    # slurmctld drops its groups; in its namespace only a user with the right to do so can.
    if subprocess.run([*namespaces(), sys.executable, "-c", "import os; os.setgroups([])"], capture_output=True).returncode:
        return "slurmctld cannot run in a namespace of this user, who may not change groups: run it as root"
    return None


def namespaces():
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]


def enter():
    """Runs this script again in namespaces, and ends with its status. Returns only inside the namespaces."""
    if os.environ.get(INSIDE):
        loopback_up()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "waymark-test", str(FOLDER)], check=True)
        # A name that resolves, whatever this machine is called.
        socket.sethostname("cluster")
        hosts = FOLDER / "hosts"
        hosts.write_text("127.0.0.1 localhost cluster\n")
        subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
        return
    os.environ[INSIDE] = "1"
    sys.exit(subprocess.run([*namespaces(), sys.executable, *sys.argv]).returncode)


def loopback_up():
    """Brings the loopback up, with a second address: a host that has only 127.0.0.1 counts as one without network, and Slurm's
    getaddrinfo then finds nothing."""
    up, set_flags, set_address = 0x1, 0x8914, 0x8916
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", up))
        fcntl.ioctl(any_socket, set_address,
                    struct.pack("16sH2x4s8x", b"lo:1", socket.AF_INET, socket.inet_aton("127.0.0.2")))


def run(*words, check=True, timeout=HANGS, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **more)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(str(w) for w in words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def wait_for(what, condition, seconds=HANGS, pause=0.2):
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)


class Cluster:
    """Nodes n1, n2, n3 with two cores each. A node that does not answer is down after `patience` seconds: with faults few, for
    tests wait for that; else more than any machine takes, for what a node ran that is taken to be down runs again."""
    NODES = ("n1", "n2", "n3")

    def __init__(self, folder=FOLDER / "slurm", max_array=1001, patience=600):
        self.folder, self.processes = pathlib.Path(folder), {}
        for name in ("munge", "state", "spool", "run", "log"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        host = socket.gethostname()
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(f"""
ClusterName=waymark
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/socket
CredType=cred/munge
SlurmUser=root
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool/%n
SlurmctldPidFile={self.folder}/run/slurmctld.pid
SlurmdPidFile={self.folder}/run/%n.pid
SlurmctldLogFile={self.folder}/log/slurmctld.log
SlurmdLogFile={self.folder}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout={patience}
SlurmdTimeout={patience}
MessageTimeout={min(100, patience // 2)}
KillWait=2
MaxArraySize={max_array}
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=10000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=n[1-3] NodeAddr=127.0.0.1 NodeHostname={host} Port=[17001-17003] CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
""")
        os.environ["SLURM_CONF"] = str(self.conf)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.folder / "munge").chmod(0o755)

    def __enter__(self):
        try:
            self.start_munge()
            self.start_controller()
            for node in self.NODES:
                self.start_node(node)
            wait_for("all nodes idle", lambda: self.nodes("idle") == len(self.NODES))
        except BaseException:
            self.print_logs()
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def start(self, name, *words):
        with open(self.folder / "log" / f"{name}.out", "ab") as log:
            self.processes[name] = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=log, start_new_session=True)

    def start_munge(self):
        munge = self.folder / "munge"
        self.start("munged", "munged", "--foreground", "--force", f"--socket={munge}/socket", f"--key-file={munge}/key",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        wait_for("munged", lambda: (munge / "socket").exists() or self.check("munged"))

    def start_controller(self):
        self.start("slurmctld", "slurmctld", "-D")
        wait_for("slurmctld", lambda: run("scontrol", "ping", check=False).stdout.find(" UP") >= 0 or self.check("slurmctld"))

    def check(self, name):
        """A process that has ended is not waited for."""
        status = self.processes[name].poll()
        if status is not None:
            raise AssertionError(f"{name} ended with {status}; its output is in {self.folder / 'log'}")

    def start_node(self, node):
        (self.folder / "spool" / node).mkdir(exist_ok=True)
        self.start(node, "slurmd", "-D", "-N", node)

    def kill(self, name):
        """kill -9."""
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def nodes(self, state):
        out = run("sinfo", "--noheader", "--Node", "--format=%T", check=False).stdout.split()
        return sum(s.strip("*").lower() == state for s in out)

    def queue(self):
        """Lines of the queue, without finished jobs."""
        return run("squeue", "--noheader", "--array", "--format=%F|%K|%j|%T|%N|%r").stdout.splitlines()

    def wait_until_saved(self):
        """The controller writes its state every few seconds. After a crash it does not know tasks that began since
        then, and drains their nodes."""
        for job in run("squeue", "--noheader", "--states=RUNNING", "--format=%A").stdout.split():
            run("scontrol", "update", f"JobId={job}", "Comment=to be saved", check=False)
        changed = time.time()
        state = self.folder / "state/job_state"
        wait_for("the saved state", lambda: state.exists() and state.stat().st_mtime > changed)

    def wait_until_empty(self, seconds):
        wait_for("an empty queue", lambda: not self.queue(), seconds, 0.3)

    def print_logs(self):
        for log in sorted((self.folder / "log").iterdir()):
            lines = log.read_text(errors="replace").splitlines()
            print(f"---- {log.name}\n" + "\n".join(lines[-15:]), file=sys.stderr)


if __name__ == "__main__":
    reason = why_not()
    if not sys.argv[1:] or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:] else 2)
    if reason:
        print(f"cluster.py: {reason}", file=sys.stderr)
        sys.exit(1)
    enter()
    with Cluster():
        sys.exit(subprocess.run(sys.argv[1:]).returncode)
