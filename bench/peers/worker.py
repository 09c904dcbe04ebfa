"""The worker for Python's contestant: filelock around json. The same jobs, keys and page as worker.go."""

import json
import mmap
import os
import sys
import time

import filelock

GATE = 0
job = sys.argv[1]
key = dict(arg.split("=", 1) for arg in sys.argv[3:])
path, n, worker = key["path"], int(key["n"]), int(key["id"])
lock = filelock.FileLock(path + ".lock")


def gate():
    with open(key["page"], "r+b") as f:
        page = mmap.mmap(f.fileno(), 4096)
    word = lambda i: int.from_bytes(page[8 * i : 8 * i + 8], "little", signed=True)
    print("ready", flush=True)
    while word(GATE) == 0:
        time.sleep(0.0001)
    while time.monotonic_ns() < word(GATE):
        pass


def append(done):
    """Add one record; False when the document is complete."""
    # Its own pause between tries is 50 ms.
    with lock.acquire(poll_interval=0.001):
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


if job == "doc":
    gate()
else:
    print("ready", flush=True)
start, done = time.monotonic_ns(), 0
while not (job == "doc-once" and done == n) and append(done):
    done += 1
print(f"done {done}\nns {time.monotonic_ns() - start}\nended {time.monotonic_ns()}")
