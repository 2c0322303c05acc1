#!/usr/bin/env python3
"""`waymark serve`: pages of windows equal a count of every instruction of `waymark flow --format tsv` and the page of
`waymark report --window`, also while the index is being made; and what the server refuses.

    serve_test.py WAYMARK SOURCE_DIR WEB [--long]

WEB: the folder in which the page was built, with what its tests need.

Windows are drawn by a fixed seed; WM_SEED is another. --long: more captures, and 100 windows of each in place of 6.
"""
import base64
import bisect
import collections
import concurrent.futures
import gzip
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import CHROMIUM, Folder, HANGS, wait_for  # noqa: E402


# Calls of several depths, in three threads.
PROGRAM = r"""
#include <pthread.h>
static __attribute__((noinline)) unsigned leaf(unsigned x) { unsigned sum = 0; for (volatile unsigned i = 0; i < x; ++i) sum += i; return sum; }
static __attribute__((noinline)) unsigned down(unsigned n, unsigned x) { return n == 0 ? leaf(x) : down(n - 1, x) + 1; }
static __attribute__((noinline)) unsigned parse(unsigned x) { return leaf(x) * 3 + down(x % 9, x); }
static __attribute__((noinline)) unsigned show(unsigned x) { return leaf(x + 2) * 5; }
static void* work(void* sum) { for (unsigned i = 0; i < ROUNDS; ++i) *(unsigned*)sum += parse(i % 31) + show(i % 7); return sum; }
int main(void) {
    pthread_t threads[2];
    unsigned sums[3] = {0, 0, 0};
    for (int i = 0; i < THREADS - 1; ++i) pthread_create(&threads[i], 0, work, &sums[i]);
    work(&sums[2]);
    for (int i = 0; i < THREADS - 1; ++i) pthread_join(threads[i], 0);
    return 0;
}
"""


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=HANGS, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr}"
    return done


class Server:
    """`waymark serve` while it runs; `url`: the address that it prints."""

    def __init__(self, waymark, *arguments, **environment):
        self.process = subprocess.Popen([str(waymark), "serve", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, **environment})
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"serve {arguments}: {self.process.wait()}: {self.process.stderr.read()}")
        self.url = line.strip()
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.base = parts.hostname, parts.port, parts.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        _, self.said = self.process.communicate(timeout=HANGS)
        return self.process.returncode

    def get(self, path="", method="GET", headers=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=HANGS)
        try:
            connection.request(method, self.base + path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer
        finally:
            connection.close()

    def page(self, path=""):
        status, body, _ = self.get(path)
        assert status == 200, (path, status, body[:500])
        return parts(body.decode())

    def status(self):
        return json.loads(self.get("status")[1])

    def indexed(self):
        return wait_for(lambda: (now := self.status())["indexed"] and now, "the index is complete")

    def raw(self, data):
        """The reply to these bytes, up to the end of the connection."""
        with socket.create_connection((self.host, self.port), timeout=HANGS) as connection:
            connection.sendall(data)
            out = b""
            while piece := connection.recv(1 << 16):
                out += piece
            return out


def parts(page):
    found = re.findall(r'id="waymark-(\w+)">([^<]*)<', page)
    return {name: json.loads(zlib.decompress(base64.b64decode(packed), -15)) for name, packed in found}


def decoded(waymark, capture):
    """By source: its ranges as (first instruction's number, address, instructions), in order."""
    out, at = collections.defaultdict(list), collections.Counter()
    head, *lines = run(waymark, "flow", capture, "--format", "tsv").stdout.splitlines()
    column = {name: i for i, name in enumerate(head.split("\t"))}
    for line in lines:
        row = line.split("\t")
        if row[column["element"]] == "range":
            source, count = row[column["source"]], int(row[column["instructions"]])
            out[source].append((at[source], int(row[column["start"]], 16), count))
            at[source] += count
    return out


def functions_of(nm, program):
    out = []
    for line in run(nm, "-S", "--defined-only", program).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwW" and int(fields[1], 16) > 0:
            out.append((int(fields[0], 16) & ~1, int(fields[1], 16), fields[3]))
    return sorted(out)


def shown(page):
    """The timeline and the steps of a page, with names in place of numbers."""
    names, line, steps = page["head"]["functions"]["name"], page["timeline"], page["steps"]
    s = line["slices"]
    slices = [(line["tracks"]["name"][t], b, l, d, names[f], m) for t, b, l, d, f, m in
              zip(s["track"], itertools.accumulate(s["begin"]), s["length"], s["depth"], s["function"], s["merged"])]
    axis = {k: line["axis"][k] for k in ("unit", "ticksPerSecond", "begin", "length")}
    streams = []
    for stream in steps["streams"]:
        frames = stream["frames"]
        called = [names[f] if what == 0 else "" for what, f in zip(frames["what"], frames["function"])]
        # Their numbers differ: only their names are compared.
        events = [(kind, steps["texts"][text]) for kind, text in zip(stream["events"]["kind"], stream["events"]["text"])]
        streams.append({**stream, "frames": {**frames, "function": called}, "events": {**stream["events"], "text": events}})
    return axis, sorted(slices), line["marks"], streams


def counts(page):
    """Instructions by function, where functions are known by their addresses."""
    functions = page["head"]["functions"]
    at = itertools.accumulate(functions["address"]) if isinstance(functions["address"], list) else functions["address"]
    return {name: own for name, own in zip(functions["name"], functions["self"][0]) if own != 0}


def check_window(waymark, work, server, capture, names, ran, functions, begin, end, compare):
    page = server.page(f"window?from={begin}&to={end}")
    assert page["timeline"]["window"] and (page["head"]["served"]["begin"], page["head"]["served"]["end"]) == (begin, end)
    # Figures of the ranges that began in the window.
    wanted, starts = collections.Counter(), [f[0] for f in functions]
    for ranges in ran.values():
        for first, address, count in ranges[bisect.bisect_left(ranges, (begin,)):]:
            if first >= end:
                break
            i = bisect.bisect_right(starts, address) - 1
            inside = i >= 0 and address < functions[i][0] + functions[i][1]
            wanted[functions[i][2] if inside else hex(address)] += count
    got = counts(page)
    assert sum(got.values()) == sum(wanted.values()), (begin, end, sum(got.values()), sum(wanted.values()))
    # Several names may belong to one address; the program's page shows one of them.
    for name, count in got.items():
        if name in wanted:
            assert wanted[name] == count, (begin, end, name, count, wanted[name])
    # Steps: every address.
    for stream in page["steps"]["streams"]:
        order, edges = stream["order"], stream["edges"]
        address = list(itertools.accumulate(edges["address"]))
        walked = [(address[e], edges["instructions"][e]) for e in order]
        source = next(s for s in ran if stream["source"].startswith(s))
        ranges = ran[source]
        at = bisect.bisect_right(ranges, (begin, 1 << 64)) - 1
        assert stream["first"] == ranges[at][0], (begin, stream["first"], ranges[at])
        there = [(a, n) for _, a, n in ranges[at:at + len(walked)]]
        assert walked == there, (begin, end, stream["source"])
        last = ranges[at + len(walked) - 1]
        assert last[0] + last[2] >= min(end, ranges[-1][0] + ranges[-1][2]), "all of the window"
    if compare:
        report = work / "window.html"
        run(waymark, "report", capture, *names, "--no-sources", "--window", f"{begin}..{end}", "-o", report)
        expected, got = shown(parts(report.read_text())), shown(page)
        for one, other, what in zip(expected, got, ("axis", "slices", "marks", "steps")):
            assert one == other, (begin, end, what, str(one)[:2000], str(other)[:2000])


def check_windows(waymark, work, chance, rounds, name, program, nm, *how, reuse=False, every=4096):
    capture, names = work / name, ["--symbols", program]
    run(waymark, "record", "-q", *how, "-o", capture, "--", program)
    ran, functions = decoded(waymark, capture), functions_of(nm, program)
    index = work / f"{name}.index"
    with Server(waymark, capture, *names, "--no-sources", "--index", index, "--index-every", every) as server:
        server.page()
        early = []
        # While the index grows, the known part is right.
        while not (now := server.status())["indexed"]:
            if now["instructions"] > 2000:
                begin = chance.randrange(1, now["instructions"] - 1000)
                early.append((begin, server.page(f"window?from={begin}&to={begin + 700}")))
        now = server.indexed()
        longest = max(r[-1][0] + r[-1][2] for r in ran.values())
        assert now["instructions"] == longest, (now, longest)
        assert now["places"] > 3, (name, now)
        for begin, page in early:
            assert shown(page) == shown(server.page(f"window?from={begin}&to={begin + 700}")), begin
        for i in range(rounds):
            begin = chance.randrange(longest - 10)
            check_window(waymark, work, server, capture, names, ran, functions, begin, min(longest, begin + chance.randrange(1, 4000)),
                         i < 3)
        assert server.end() == 0
    trace = sum(f.stat().st_size for f in capture.glob("trace*.bin"))
    assert index.stat().st_size <= trace // 100 + 200, (index.stat().st_size, trace)
    # The same index, and the same page from it.
    begin = longest * 2 // 3
    time_before, page = index.stat().st_mtime_ns, None
    for damage in (None, "byte", "cut", "empty") if reuse else ():
        raw = bytearray(index.read_bytes())
        if damage == "byte":
            raw[len(raw) // 2] ^= 0x41
        if damage == "cut":
            raw = raw[:len(raw) // 3]
        if damage == "empty":
            raw = bytearray()
        if damage:
            index.write_bytes(raw)
        with Server(waymark, capture, *names, "--no-sources", "--index", index, "--index-every", every) as server:
            server.indexed()
            now = shown(server.page(f"window?from={begin}&to={begin + 900}"))
            page = page or now
            assert now == page, damage
            assert server.end() == 0
            assert ("made anew" in server.said) == (damage in ("byte", "cut")), (damage, server.said)
        if damage is None:
            assert index.stat().st_mtime_ns == time_before, "an index that fits is not written again"
        assert index.read_bytes().startswith(b"waymark index"), damage
    if reuse:
        # Another place gets another index.
        with Server(waymark, capture, *names, "--no-sources", "--index", index, "--index-every", every * 2) as server:
            server.indexed()
            assert server.end() == 0 and "made anew" in server.said, server.said
    print(f"{name}: {len(ran)} sources, {longest} instructions, {index.stat().st_size} bytes of index, {len(early)} early windows", flush=True)


def check_refusals(waymark, work, capture, names):
    changing = work / "changing"
    shutil.copytree(capture, changing)
    with Server(waymark, changing, *names, "--index", work / "changing.index", "--index-every", 4096) as server:
        page = server.get()
        assert page[0] == 200 and b"waymark-head" in page[1]
        for header, value in (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")):
            assert page[2].getheader(header) == value, header
        assert b"connect-src 'self'" in page[1] and b"default-src 'none'" in page[1]
        server.indexed()
        good = "window?from=100&to=200"
        assert server.get(good)[0] == 200
        assert server.get(good, "HEAD")[:2] == (200, b"")
        host = f"{server.host}:{server.port}"
        # Other methods, other paths, other tokens.
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            assert server.get("", method)[0] == 405, method
        token = server.base.strip("/")
        for path in ("/", f"/{'0' * len(token)}/", f"/{token[:-1]}/", f"/{token}x/", f"/{token}", "/etc/passwd", f"/{token}/../../etc/passwd",
                     f"/{token}/%2e%2e/%2e%2e/etc/passwd", f"/{token}//etc/passwd", f"/{token}/window/", "/status", "/window?from=1&to=2"):
            data = server.raw(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert data.startswith(b"HTTP/1.1 404"), (path, data[:200])
            assert b"root:" not in data and token.encode() not in data, path
        # Names of other hosts that lead to this machine.
        for given in ("Host: example.org", f"Host: example.org:{server.port}", f"Host: 127.0.0.1:{server.port + 1}", "Host: 127.0.0.1", "Host:",
                      "X: y", f"Host: {host}\r\nHost: example.org", f"Host: {host}.example.org"):
            data = server.raw(f"GET {server.base} HTTP/1.1\r\n{given}\r\nConnection: close\r\n\r\n".encode())
            assert data.startswith(b"HTTP/1.1 421"), (given, data[:200])
        assert server.raw(f"GET {server.base}status HTTP/1.1\r\nHost: localhost:{server.port}\r\nConnection: close\r\n\r\n".encode()).startswith(b"HTTP/1.1 200")
        assert server.raw(f"GET {server.base}status HTTP/1.1\r\nHost: LocalHost:{server.port}\r\nConnection: close\r\n\r\n".encode()).startswith(b"HTTP/1.1 200")
        # Numbers.
        for query, status in (("", 400), ("?from=1", 400), ("?from=1&to=", 400), ("?from=1&to=x", 400), ("?from=-1&to=5", 400), ("?from=5&to=5", 400),
                              ("?from=9&to=5", 400), ("?from=1&to=99999999999999999999999999", 400), ("?from=0&to=18446744073709551615", 413),
                              ("?from=1&to=2&from=3", 400), ("?from=1e3&to=2e3", 400), ("?from=+1&to=2", 400), ("?from=1&to=50000000", 413),
                              ("?from=18446744073709551614&to=18446744073709551615", 404), ("?from=1&to=9&unit=years", 400),
                              ("?from=1&to=9&unit=cycles", 400), ("?from=1&to=9&unit=ticks", 400)):
            got, body, _ = server.get("window" + query)
            assert got == status and len(body) < 1000, (query, got, status, body[:200])
        # Requests that are too large, and bytes that are no requests.
        for data in (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"GET " + server.base.encode() + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\nX: " + b"a" * 100_000,
                     b"GET " + server.base.encode() + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
                     b"\0" * 5000, b"\r\n" * 5000, b"GET\r\n\r\n", bytes(range(256)) * 40):
            try:
                answer = server.raw(data)
                assert not answer.startswith(b"HTTP/1.1 200"), data[:40]
            except (ConnectionResetError, BrokenPipeError):
                pass
        # Incomplete requests end after some seconds, and others are answered meanwhile.
        halves = []
        for i in range(3):
            half = socket.create_connection((server.host, server.port), timeout=HANGS)
            half.sendall(f"GET {server.base}".encode()[:5 + i])
            halves.append(half)
        assert server.get("status")[0] == 200
        for half in halves:
            try:
                while half.recv(1000):
                    pass
            except ConnectionResetError:
                pass
            half.close()
        assert server.get("status")[0] == 200

        def many(number):
            answers = collections.Counter()
            connection = http.client.HTTPConnection(server.host, server.port, timeout=HANGS)
            for i in range(1250):
                path = server.base + "status" if i % 2 else f"/{number}/{i}"
                for attempt in range(20):
                    try:
                        connection.request("GET", path)
                        answer = connection.getresponse()
                        break
                    except (http.client.HTTPException, ConnectionError):
                        # The server ended a connection that exceeded its limit.
                        connection.close()
                        if attempt == 19:
                            raise
                answer.read()
                answers[answer.status] += 1
                if answer.getheader("Connection") == "close":
                    connection.close()
            return answers

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = sum(pool.map(many, range(8)), collections.Counter())
        assert answers == {200: 5000, 404: 5000}, answers
        # A capture that was changed.
        trace = next(changing.glob("trace*.bin"))
        old = trace.read_bytes()
        trace.write_bytes(old + b"\0" * 16)
        for path in ("", good):
            status, body, _ = server.get(path)
            assert status == 409 and b"has changed" in body, (path, status, body[:200])
        trace.unlink()
        status, body, _ = server.get(good)
        assert status == 409 and b"does not exist any more" in body, (status, body)
        assert server.end(signal.SIGTERM) == 0
        assert not list(changing.glob("*.index*")), "nothing is written beside the capture"
    # A port that is in use; invalid arguments.
    with Server(waymark, capture, *names, "--index", work / "a.index") as server:
        done = subprocess.run([waymark, "serve", capture, *names, "--port", str(server.port)], capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 3 and "cannot be listened at" in done.stderr, done
    for wrong, status, says in ((["--listen", "example.org"], 2, "--listen takes an address"), (["--max-size", "0.1"], 2, "--max-size"), (["--port", "70000"], 2, "port")):
        done = subprocess.run([waymark, "serve", capture, *names, *wrong], capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == status and says in done.stderr, (wrong, done)
    done = subprocess.run([waymark, "serve", work / "missing"], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 3, done


def check_other_files(waymark, work, capture, names):
    """A file that is not an index is not replaced by one."""
    folder = work / "folder"
    folder.mkdir()
    for name, content in (("letter", b"something else"), ("short", b"w"), ("folder", None)):
        file = work / name
        if content is not None:
            file.write_bytes(content)
        done = subprocess.run([waymark, "serve", capture, *names, "--index", file], capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 2 and "is not an index" in done.stderr and done.stdout == "", (name, done)
        assert file.is_dir() if content is None else file.read_bytes() == content, name


def check_slow(waymark, work, capture, names):
    """Requests that come a few bytes at a time end, and delay neither other requests nor the end of the server."""
    def trickle(connections):
        """Each with another header. Returns the connections that the server has not ended."""
        there = []
        for connection in connections:
            try:
                connection.sendall(b"X: y\r\n")
                connection.setblocking(False)
                try:
                    if connection.recv(1) == b"":
                        continue
                except BlockingIOError:
                    pass
                finally:
                    connection.setblocking(True)
                there.append(connection)
            except OSError:
                pass
        return there

    def begun(server, number):
        connections = [socket.create_connection((server.host, server.port), timeout=HANGS) for _ in range(number)]
        for connection in connections:
            connection.sendall(f"GET {server.base}status HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n".encode())
        return connections

    with Server(waymark, capture, *names, "--index", work / "slow.index") as server:
        # A report that is put together is finished first.
        wait_for(lambda: server.status()["complete"], "all is read")
        all_of_them = left = begun(server, 8)
        began = time.monotonic()
        while left:
            assert time.monotonic() - began < 30, "a request has five seconds"
            left = trickle(left)
            time.sleep(0.25)
        assert time.monotonic() - began > 3, "it has some seconds"
        assert server.get("status")[0] == 200
        # More requests than may wait; and the end.
        many = begun(server, 40)
        trickle(many)
        began = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - began < 20, "nobody holds up the end"
        for connection in all_of_them + many:
            connection.close()
    # Stops at any time; the second time without waiting.
    with Server(waymark, capture, *names, "--index", work / "none.index") as server:
        began = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert server.end() in (0, 128 + signal.SIGINT), server.process.returncode
        assert time.monotonic() - began < 20


def check_without_windows(waymark, work, capture, names):
    """A capture without windows is also read to its end, and its page states when that is done."""
    packed = work / "packed"
    shutil.copytree(capture, packed)
    for trace in packed.glob("trace*.bin"):
        trace.write_bytes(gzip.compress(trace.read_bytes()))
    with Server(waymark, packed, *names) as server:
        served = server.page()["head"]["served"]
        assert served["part"] != served["complete"], served
        now = wait_for(lambda: (now := server.status())["complete"] and now, "all is read")
        assert (now["instructions"], now["whole"], now["indexed"], now["failed"]) == (0, True, False, ""), now
        served = server.page()["head"]["served"]
        assert served["complete"] and not served["part"] and served["instructions"] == 0, served
        status, body, _ = server.get("window?from=1&to=2")
        assert status == 404 and b"compressed" in body, (status, body)
        assert server.end() == 0 and "windows of single calls cannot be requested" in server.said


def check_findings(waymark, work, capture, names):
    """The page of a window states which findings belong to the whole run."""
    with Server(waymark, capture, *names, "--index", work / "findings.index") as server:
        wait_for(lambda: (now := server.status())["complete"] and now["whole"], "all is read")
        run_says, window_says = ([f["what"] for f in server.page(path)["head"]["health"]] for path in ("", "window?from=1000&to=2000"))
        assert len(set(window_says)) == len(window_says), window_says
        assert not any("beginning of the run" in what for what in run_says + window_says), (run_says, window_says)
        assert window_says[0].startswith("This page is of a window"), window_says
        runs = [server.page(path)["head"]["run"] for path in ("", "window?from=1000&to=2000")]
        assert all(run.startswith("observed ") for run in runs) and runs[0] != runs[1], runs
        assert any("Of the whole run: " + what in window_says for what in run_says), (run_says, window_says)
        assert not any(what in window_says for what in run_says if "Of the whole run: " + what in window_says), window_says


def check_listening_elsewhere(waymark, work, capture, names):
    for address, warns in (("127.0.0.2", False), ("0.0.0.0", True)):
        with Server(waymark, capture, *names, "--index", work / "elsewhere.index", "--listen", address) as server:
            assert server.get("status")[0] == 200
            assert server.end() == 0 and ("other machines can read" in server.said) == warns, (address, server.said)


def check_browser(waymark, source, web, work, capture, names):
    """The page in a browser, if there is one."""
    node, chromium = shutil.which("node") or shutil.which("nodejs"), next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not node or not chromium or not (web / "node_modules/playwright-core").is_dir():
        print("the page is not tried: node, Chromium or the page's tests are missing", flush=True)
        return
    with Server(waymark, capture, *names, "--index", work / "browser.index", "--index-every", 4096) as server:
        last = server.indexed()["instructions"]
        done = subprocess.run([node, source / "tests/serve/serve.mjs", web, chromium, server.url, str(last)], timeout=HANGS, stdout=subprocess.PIPE, text=True)
        print(done.stdout, end="", flush=True)
        assert done.returncode == 0


def check_usual_place(waymark, work, capture, names):
    """The index is below XDG_CACHE_HOME. A small capture has no index: reading it takes as little time."""
    cache = work / "cache"
    with Server(waymark, capture, *names, XDG_CACHE_HOME=str(cache)) as server:
        server.indexed()
        assert server.end() == 0
    assert not cache.exists(), list(cache.rglob("*"))


def check_without_library(waymark, work, capture, names):
    """The program alone, without the files installed beside it."""
    alone = work / "alone/bin/waymark"
    alone.parent.mkdir(parents=True)
    shutil.copy(waymark, alone)
    done = subprocess.run([alone, "serve", capture, *names], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 3, done
    assert "libwaymark-serve.so was not found" in done.stderr, done.stderr


def main():
    waymark, source, web = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    if subprocess.run([waymark, "serve", source / "examples/sort/capture", "--port", "1", "--listen", "x"], capture_output=True, text=True,
                      timeout=HANGS).stderr.find("built without") >= 0:
        print("built without the report page")
        sys.exit(77)
    for what in ("aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "qemu-aarch64", "qemu-arm"):
        if not shutil.which(what):
            print(f"{what} is missing")
            sys.exit(77)
    seed = int(os.environ.get("WM_SEED", 1))
    print(f"seed {seed}", flush=True)
    long = "--long" in sys.argv
    chance, rounds = random.Random(seed), 100 if long else 6
    with Folder() as temporary:
        work = pathlib.Path(temporary)
        (work / "program.c").write_text(PROGRAM)
        built = {}
        for bits, gcc in ((64, "aarch64-linux-gnu-gcc"), (32, "arm-linux-gnueabihf-gcc")):
            for threads, rounds_of_it in ((1, 4500), (3, 5000)):
                built[bits, threads] = program = work / f"program{bits}_{threads}"
                run(gcc, "-O1", "-g", "-static", f"-DTHREADS={threads}", f"-DROUNDS={rounds_of_it}", "-o", program, work / "program.c", "-lpthread")
        nm = {64: "aarch64-linux-gnu-nm", 32: "arm-linux-gnueabihf-nm"}
        for name, bits, threads, how, more in (
                ("ete", 64, 1, (), {"reuse": True}), ("ete_threads", 64, 3, ("--timestamps", "--return-stack"), {}),
                ("ete_cycles", 64, 1, ("--cycle-accurate", "--timestamps"), {}),
                ("ptm", 32, 1, ("--return-stack",), {}), ("ptm_threads", 32, 3, ("--timestamps", "--context-id", "4"), {"reuse": True}),
                ("ptm_cycles", 32, 1, ("--cycle-accurate",), {}), ("etmv3", 32, 1, ("--unit", "etmv3"), {})):
            # One recording for each protocol, with one thread and with several.
            if long or name in ("ete", "ptm_threads", "etmv3"):
                check_windows(waymark, work, chance, rounds, name, built[bits, threads], nm[bits], *how, **more)
        names = ["--symbols", built[64, 1]]
        for check in (check_usual_place, check_other_files, check_slow, check_without_windows, check_findings, check_listening_elsewhere, check_without_library):
            check(waymark, work, work / "ete", names)
        check_browser(waymark, source, web, work, work / "ete", names)
        check_refusals(waymark, work, work / "ete", names)
    print("ok")


if __name__ == "__main__":
    main()
