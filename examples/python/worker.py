#!/usr/bin/env python3
"""A pull worker for Pointsman. Needs only Python 3.9; README.md explains how to try it.

It claims a task, renews its lease in a thread while it works, and reports the outcome. If a worker dies, its lease
expires, and another worker gets the task. To run more tasks at a time, start more workers."""

import argparse, http.client, json, os, random, signal, sys, threading, time
import urllib.error, urllib.parse, urllib.request


def convert(task):
    """Converts a document. A task of a handler has an event."""
    event, document = task["event"], task["event"]["value"]
    if document.get("uploading") and task["attempt"] == 1:
        raise Snooze(1)
    if document.get("pages", 0) < 1:
        raise PermanentError("a document without pages")
    for page in range(1, document["pages"] + 1):
        task.log(f"page {page} of {document['pages']}")
        task.wait(0.2)
    task.emit("document.converted", key=event.get("key"), value={"pages": document["pages"]})
    return {"pages": document["pages"]}


def archive(task):
    """Archives a collection. A task of a source has a collection and no event."""
    task.log(f"reading {task['collection']} of {task['source']}")
    return {"collection": task["collection"]}


HANDLERS = {"convert": convert, "archive": archive}


class Snooze(Exception): pass             # Run the task again after this many seconds, without using a retry.
class PermanentError(Exception): pass     # Retrying would not help. Any other exception is retried.
class TaskLost(Exception):                # The task was cancelled, or its lease expired.
    repeated = False                      # The request was sent before, and may have been processed.
class ServerUnavailable(Exception): pass  # The server cannot be reached, or is overloaded.
class RequestRefused(Exception): pass     # The server refuses the request, and would refuse it again.


class Server:
    def __init__(self, url, token):
        self.url, self.headers = url, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path, body, timeout=20):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.loads(response.read() or b"{}")
        except urllib.error.HTTPError as error:
            unavailable = dict.fromkeys((429, 502, 503, 504), ServerUnavailable)
            error_class = {404: TaskLost, 409: TaskLost, **unavailable}.get(error.code, RequestRefused)
            raise error_class(f"HTTP {error.code}: {error.read().decode(errors='replace')}") from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerUnavailable(error) from None

    def post_until_response(self, path, body, timeout=20):
        """Posts until there is a response. Repeats are safe: the fence lets an attempt end only once."""
        pause, repeated = 0.2, False
        while True:
            try:
                return self.post(path, body, timeout)
            except ServerUnavailable as error:
                print(f"the server is unavailable: {error}", file=sys.stderr, flush=True)
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause, repeated = min(pause * 2, 30), True
            except TaskLost as error:
                error.repeated = repeated
                raise


class Task:
    def __init__(self, server, claimed, lease):
        self.server, self.claimed, self.lease, self.emitted_events = server, claimed, lease, []
        self.path = f"/api/v1/worker/{urllib.parse.quote(claimed['id'], safe='')}/"
        self.lost, self.ended = threading.Event(), threading.Event()

    def __getitem__(self, name):
        return self.claimed[name]

    def post(self, action, **body):
        return self.server.post_until_response(self.path + action, {"fence": self["fence"], **body})

    def log(self, message, level="info"):
        self.post("logs", logs=[{"level": level, "message": message}])

    def emit(self, event_type, **members):
        """Emits an event together with the end of the task: both are committed, or neither."""
        given = {name: value for name, value in members.items() if value is not None}
        self.emitted_events.append({"type": event_type, **given})

    def wait(self, seconds):
        """Sleeps, and raises TaskLost if the task is lost. Long work calls this, or checks `lost`, regularly."""
        if self.lost.wait(seconds):
            raise TaskLost("it was cancelled, or its lease expired")

    def renew_lease(self):
        while not self.ended.wait(self.lease / 4):
            try:
                self.server.post(self.path + "heartbeat", {"fence": self["fence"]}, timeout=self.lease / 12)
            except ServerUnavailable:
                pass  # A lease survives two failed heartbeats: 3 waits and 2 timeouts are shorter than it.
            except (TaskLost, RequestRefused):
                return self.lost.set()

    def run(self, handle):
        threading.Thread(target=self.renew_lease, daemon=True).start()
        try:
            self.run_attempt(handle)
        except (TaskLost, RequestRefused) as error:
            print(f"lost {self['id']}: {error}", flush=True)
        finally:
            self.ended.set()

    def run_attempt(self, handle):
        try:
            self.report_outcome("done", result=handle(self), emit=self.emitted_events)
        except TaskLost:
            raise
        except Snooze as snooze:
            self.report_outcome("snooze", **{"for": f"{snooze.args[0]}s"})
        except Exception as error:
            retry = not isinstance(error, (PermanentError, RequestRefused))
            self.report_outcome("fail", error=f"{type(error).__name__}: {error}", retry=retry)

    def report_outcome(self, outcome, **body):
        """Reports the outcome. If the response is lost, it is sent again, and the refusal shows the task's state."""
        try:
            self.post(outcome, **body)
        except TaskLost as error:
            if not error.repeated:
                raise
            print(f"reported {self['id']} {outcome}; the response was lost; repeating it: {error}", flush=True)


def main():
    options = argparse.ArgumentParser(description="Runs the tasks of pulled handlers.")
    options.add_argument("--handler", action="append", choices=HANDLERS, required=True)
    options.add_argument("--lease", type=float, default=60, help="seconds until a silent worker loses its task")
    options = options.parse_args()
    token = os.environ.get("POINTSMAN_TOKEN")
    if not token:
        sys.exit("POINTSMAN_TOKEN is not set; README.md explains how to create a token for a worker")
    server = Server(os.environ.get("POINTSMAN_URL", "http://127.0.0.1:7646"), token)
    claim = {"handlers": options.handler, "max": 1, "wait": "30s", "lease": f"{options.lease}s"}
    state = {"working": False, "stopping": False}

    def stop(*_):
        if state["stopping"] or not state["working"]:
            sys.exit()
        state["stopping"] = True  # The running task may end first; a second signal ends the worker at once.

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, stop)
    while not state["stopping"]:
        for task in server.post_until_response("/api/v1/worker/claim", claim, timeout=60)["tasks"]:
            state["working"] = True
            print(f"working on {task['id']}, attempt {task['attempt']}", flush=True)
            Task(server, task, options.lease).run(HANDLERS[task["handler"]])
        state["working"] = False


if __name__ == "__main__":
    try:
        main()
    except (TaskLost, RequestRefused) as error:
        sys.exit(f"cannot claim: {error}")
