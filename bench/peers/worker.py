"""The worker for Python's contestants: filelock, alone and around json. The same jobs, keys and page as worker.go."""

import json
import mmap
import os
import struct
import subprocess
import sys
import time

import filelock

GATE, COUNTER, TURN, SLOTS = 0, 2, 3, 64
job = sys.argv[1]
key = dict(arg.split("=", 1) for arg in sys.argv[3:])
path, n, worker = key["path"], int(key["n"]), int(key["id"])
lock = filelock.FileLock(path + ".lock")
slot = SLOTS + 2 * worker
fd = os.open(key["page"], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 4096)
page = mmap.mmap(fd, 4096)


def load(i):
    return struct.unpack_from("<q", page, 8 * i)[0]


def store(i, v):
    struct.pack_into("<q", page, 8 * i, v)


def ready():
    print("ready", flush=True)


def held():
    """Its own pause between tries is 50 ms."""
    return lock.acquire(poll_interval=0.001)


def put(text):
    temp = f"{path}.new-{os.getpid()}"
    with open(temp, "w") as f:
        f.write(text)
    os.replace(temp, path)


def append(done):
    """Add one record; False when the document is complete."""
    with held():
        with open(path) as f:
            records = json.load(f)
        if job == "doc" and len(records) >= n:
            return False
        records.append({"worker": worker, "seq": done, "at": "2026-01-02T03:04:05.678Z",
                        "task": "a record of two hundred bytes, the size of a line in the other workload: what somebody was asked to do, in plain words", "status": "open"})
        temp = f"{path}.new-{os.getpid()}"
        with open(temp, "w") as f:
            json.dump(records, f, separators=(",", ":"))
        os.replace(temp, path)
    return True


def doc():
    ready()
    if job == "doc":
        while load(GATE) == 0:
            time.sleep(0.0001)
        while time.monotonic_ns() < load(GATE):
            pass
    start, done = time.monotonic_ns(), 0
    while not (job == "doc-once" and done == n) and append(done):
        done += 1
    print(f"done {done}\nns {time.monotonic_ns() - start}\nended {time.monotonic_ns()}")


def enter():
    ready()
    store(slot, time.monotonic_ns())
    with held():
        store(slot + 1, time.monotonic_ns())
        time.sleep(180)


def queue():
    ready()
    ask = time.monotonic_ns()
    with held():
        entered = time.monotonic_ns()
        store(COUNTER, load(COUNTER) + 1)
        with open(key["log"], "wb") as f:
            f.write(struct.pack("<4q", 1, ask, entered, time.monotonic_ns()))


def pause():
    ready()
    store(slot, time.monotonic_ns())
    with held():
        store(slot + 1, time.monotonic_ns())
        while load(TURN) == 0:
            time.sleep(0.001)
        put("late\n")


def second():
    ready()
    store(slot, time.monotonic_ns())
    with held():
        put("second\n")
        store(slot + 1, time.monotonic_ns())


def wrap():
    with held():
        ready()
        subprocess.run(["sh", "-c", key["command"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


{"doc": doc, "doc-once": doc, "enter": enter, "queue": queue, "pause": pause, "second": second, "wrap": wrap}[job]()
