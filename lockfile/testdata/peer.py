"""A writer of the lock file in another language, made from the specification alone.

peer.py PATH ID N: adds the records ID.0 … ID.N-1 to PATH, one line each, under PATH.lock. Its locks
have the four members of the specification and no others.
"""
import datetime
import errno
import hashlib
import json
import os
import random
import secrets
import socket
import sys
import time

HOST = socket.gethostname()
TAG = hashlib.sha256(HOST.encode()).hexdigest()[:8]


def name(base, kind):
    return f"{base}.{kind}-{TAG}-{os.getpid()}-{secrets.token_hex(12)}"


def dead(holder):
    if holder.get("hostname") not in (None, HOST):
        return False
    try:
        os.kill(holder["pid"], 0)
    except OSError as e:
        return e.errno != errno.EPERM
    return False


def create(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as f:
        f.write(data)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


def settle(lock, moved, want):
    if read(moved) != want:
        try:
            os.link(moved, lock)
        except FileExistsError:
            pass
    os.unlink(moved)


def break_lock(lock, data):
    key = hashlib.sha256(data).hexdigest()[:16]
    claim = name(lock, f"claim-{key}")
    create(claim, json.dumps({"at": time.time()}).encode())
    try:
        folder, base = os.path.split(lock)
        for other in os.listdir(folder):
            if other.startswith(f"{base}.claim-{key}-") and os.path.join(folder, other) != claim:
                tag, pid = other.split("-")[2:4]
                if tag != TAG or not dead({"pid": int(pid)}):
                    return
                os.unlink(os.path.join(folder, other))
        if read(lock) != data or not dead(json.loads(data)):
            return
        moved = name(lock, "broken")
        try:
            os.rename(lock, moved)
        except FileNotFoundError:
            return
        settle(lock, moved, data)
    finally:
        os.unlink(claim)


def acquire(lock):
    mine = json.dumps({
        "pid": os.getpid(), "hostname": HOST, "token": secrets.token_hex(12),
        "acquiredAt": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }).encode()
    pending = name(lock, "pending")
    create(pending, mine)
    try:
        while True:
            try:
                os.link(pending, lock)
                return mine
            except FileExistsError:
                pass
            data = read(lock)
            try:
                holder = json.loads(data or b"")
            except ValueError:
                holder = None
            if holder and dead(holder):
                break_lock(lock, data)
            time.sleep(random.random() * 0.004)
    finally:
        os.unlink(pending)


def main():
    path, ident, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    lock = path + ".lock"
    for i in range(n):
        done = False
        while not done:
            mine = acquire(lock)
            temp = name(path, "tmp")
            create(temp, (read(path) or b"") + f"{ident}.{i}\n".encode())
            if read(lock) == mine:
                os.rename(temp, path)
                done = True
            else:
                os.unlink(temp)
            moved = name(lock, "broken")
            try:
                os.rename(lock, moved)
            except FileNotFoundError:
                continue
            settle(lock, moved, mine)


main()
