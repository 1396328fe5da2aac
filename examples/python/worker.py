#!/usr/bin/env python3
"""A pull worker for Pointsman. Needs Python 3.9 and nothing else; README.md tells how to try it.

It claims a task, keeps its lease alive in a thread while it works, and tells how it ended. One that dies tells
nothing: its lease runs out, and the task goes to another worker. To do more at a time, start more."""

import argparse, http.client, json, os, random, signal, sys, threading, time
import urllib.error, urllib.parse, urllib.request


def convert(task):
    """What a handler's task is: something about an event."""
    event, document = task["event"], task["event"]["value"]
    if document.get("uploading") and task["attempt"] == 1:
        raise Snooze(1)
    if document.get("pages", 0) < 1:
        raise GiveUp("a document without pages")
    for page in range(1, document["pages"] + 1):
        task.log(f"page {page} of {document['pages']}")
        task.wait(0.2)
    task.emit("document.converted", key=event.get("key"), value={"pages": document["pages"]})
    return {"pages": document["pages"]}


def archive(task):
    """What a source's task is: something about a collection, without any event."""
    task.log(f"reading {task['collection']} of {task['source']}")
    return {"collection": task["collection"]}


HANDLERS = {"convert": convert, "archive": archive}


class Snooze(Exception): pass   # Not now: once more after so many seconds, at no cost.
class GiveUp(Exception): pass   # It will never work. Any other exception is a failure that is tried again.
class Lost(Exception):          # The task is no longer ours: it was cancelled, or its lease ran out.
    repeated = False            # We have said it before, and may have been heard.
class Away(Exception): pass     # The server is not there, or has no time.
class Refused(Exception): pass  # The server says no, and would say so again.


class Server:
    def __init__(self, url, token):
        self.url, self.headers = url, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path, body, timeout=20):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            kinds = {404: Lost, 409: Lost, 429: Away, 502: Away, 503: Away, 504: Away}
            raise kinds.get(error.code, Refused)(f"HTTP {error.code}: {error.read().decode(errors='replace')}") from None
        except (OSError, http.client.HTTPException) as error:
            raise Away(error) from None

    def patiently(self, path, body, timeout=20):
        """Posts until there is an answer. A repeat does no harm: the fence lets an attempt end only once."""
        pause, repeated = 0.2, False
        while True:
            try:
                return self.post(path, body, timeout)
            except Away as why:
                print(f"the server is away: {why}", file=sys.stderr, flush=True)
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause, repeated = min(pause * 2, 30), True
            except Lost as why:
                why.repeated = repeated
                raise


class Task:
    def __init__(self, server, claimed, lease):
        self.server, self.claimed, self.lease, self.emits = server, claimed, lease, []
        self.path = f"/api/v1/worker/{urllib.parse.quote(claimed['id'], safe='')}/"
        self.lost, self.ended = threading.Event(), threading.Event()

    def __getitem__(self, name):
        return self.claimed[name]

    def tell(self, what, **body):
        return self.server.patiently(self.path + what, {"fence": self["fence"], **body})

    def log(self, message, level="info"):
        self.tell("logs", logs=[{"level": level, "message": message}])

    def emit(self, kind, **members):
        """Emits an event when the task is done: both happen, or neither."""
        self.emits.append({"type": kind, **{name: value for name, value in members.items() if value is not None}})

    def wait(self, seconds):
        """Sleeps, but only while the task is ours. Long work calls this, or looks at `lost`, now and then."""
        if self.lost.wait(seconds):
            raise Lost("it was cancelled, or its lease ran out")

    def keep_alive(self):
        while not self.ended.wait(self.lease / 4):
            try:
                self.server.post(self.path + "heartbeat", {"fence": self["fence"]}, timeout=self.lease / 12)
            except Away:
                pass  # A lease outlives two heartbeats that are not heard: 3 waits and 2 timeouts are less.
            except (Lost, Refused):
                return self.lost.set()

    def run(self, handle):
        threading.Thread(target=self.keep_alive, daemon=True).start()
        try:
            self.attempt(handle)
        except (Lost, Refused) as why:
            print(f"lost {self['id']}: {why}", flush=True)
        finally:
            self.ended.set()

    def attempt(self, handle):
        try:
            self.end("done", result=handle(self), emit=self.emits)
        except Lost:
            raise
        except Snooze as snooze:
            self.end("snooze", **{"for": f"{snooze.args[0]}s"})
        except Exception as error:
            self.end("fail", error=f"{type(error).__name__}: {error}", retry=not isinstance(error, (GiveUp, Refused)))

    def end(self, how, **body):
        """Tells how it ended. If an answer gets lost we ask again, and the refusal says where the task stands."""
        try:
            self.tell(how, **body)
        except Lost as why:
            if not why.repeated:
                raise
            print(f"told {self['id']} {how}; the answer was lost, and now: {why}", flush=True)


def main():
    options = argparse.ArgumentParser(description="Works on the tasks of pulled handlers.")
    options.add_argument("--handler", action="append", choices=HANDLERS, required=True)
    options.add_argument("--lease", type=float, default=60, help="seconds until a silent worker is given up")
    options = options.parse_args()
    token = os.environ.get("POINTSMAN_TOKEN")
    if not token:
        sys.exit("POINTSMAN_TOKEN is not set; README.md tells how to make a token for a worker")
    server = Server(os.environ.get("POINTSMAN_URL", "http://127.0.0.1:7646"), token)
    wanted = {"handlers": options.handler, "max": 1, "wait": "30s", "lease": f"{options.lease}s"}
    state = {"working": False, "stopping": False}

    def stop(*_):
        if state["stopping"] or not state["working"]:
            sys.exit()
        state["stopping"] = True  # The task may end first, unless we are told twice.

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, stop)
    while not state["stopping"]:
        for task in server.patiently("/api/v1/worker/claim", wanted, timeout=60)["tasks"]:
            state["working"] = True
            print(f"working on {task['id']}, attempt {task['attempt']}", flush=True)
            Task(server, task, options.lease).run(HANDLERS[task["handler"]])
        state["working"] = False


if __name__ == "__main__":
    try:
        main()
    except (Lost, Refused) as why:
        sys.exit(f"cannot claim: {why}")
