"""Hands the numbers of a run to Weights & Biases or MLflow, by their own Python clients.

Standard input has lines of JSON: what to open, then {"step", "numbers"} for each line of metrics.jsonl, then {"code"},
the exit code of the run. Where the input ends without it, the run has died. Standard output tells the run one line of
JSON at a time: {"place"} where the tracked run is seen, {"warning"}. The id of the tracked run goes into track.json,
also where the run has ended meanwhile, so that a resumed run goes on there.
"""

import contextlib
import fcntl
import json
import os
import queue
import signal
import sys
import threading
import time


def tell(**message):
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        pass  # the run is gone


def keep_id(name, asked, id):
    asked["id"] = id  # where what follows fails, the next try goes on with this run
    path = os.path.join(asked["folder"], "track.json")
    lock = os.open(asked["folder"], os.O_RDONLY)  # another tracker of the run may keep its id now
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        ids = ids_in(path)
        if ids.get(name) == id:
            return
        with open(f"{path}.new", "w") as file:
            file.write(json.dumps({**ids, name: id}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
    except OSError as error:
        why = f"track.json cannot be written ({error.strerror})"
        tell(warning=f"{why}, so a resumed run would be tracked as another one")
    finally:
        os.close(lock)


def ids_in(path):
    if not os.path.isfile(path):
        return {}  # a new run has none
    try:
        with open(path) as file:
            ids = json.load(file)
    except (OSError, ValueError):
        return {}
    return ids if isinstance(ids, dict) else {}


def sentence(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


class WandB:
    name = "wandb"

    def __init__(self, asked):
        os.environ.setdefault("WANDB_SILENT", "true")
        import wandb

        folder = None if "WANDB_DIR" in os.environ else asked["folder"]
        self.run = wandb.init(
            project=asked["project"],
            name=asked["name"],
            id=asked["id"],
            resume="allow",
            config=asked["config"],
            mode=asked["to"],
            dir=folder,
            settings=wandb.Settings(console="off"),
        )
        keep_id(self.name, asked, self.run.id)
        tell(place=self.run.url if asked["to"] == "online" else f"wandb sync {os.path.dirname(self.run.dir)}")

    def log(self, lines):
        for line in lines:
            self.run.log(line["numbers"], step=line["step"])

    def finish(self, code):
        self.run.finish(exit_code=code)


class MLflow:
    name = "mlflow"

    def __init__(self, asked):
        to = asked["to"]
        if "://" not in to or to.startswith("file:"):
            # MLflow 3 refuses folders otherwise. The recipe has asked for one, or for auto, which may be one.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient

        self.client = MlflowClient(tracking_uri=None if to == "auto" else to)
        before = asked["id"] and self.found(asked["id"])
        if before:
            self.id = before.info.run_id
            self.client.update_run(self.id, status="RUNNING")
        else:
            self.id = self.client.create_run(self.experiment(asked["project"]), run_name=asked["name"]).info.run_id
            keep_id(self.name, asked, self.id)
        self.params(asked["config"], before.data.params if before else {})
        tell(place=f"run {self.id} of the experiment {asked['project']}")

    def found(self, id):
        from mlflow.exceptions import MlflowException

        try:
            return self.client.get_run(id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None  # it was removed there

    def experiment(self, name):
        found = self.client.get_experiment_by_name(name)
        return found.experiment_id if found else self.client.create_experiment(name)

    def params(self, config, before):
        """MLflow keeps a parameter as it was first: what a resumed run has changed is a tag."""
        from mlflow.entities import Param, RunTag

        flat = {key: text[:500] for key, text in leaves(config, [])}
        new = [Param(key, value) for key, value in flat.items() if key not in before]
        changed = [RunTag(f"resumed.{key}", value) for key, value in flat.items() if before.get(key, value) != value]
        for at in range(0, len(new), 100):
            self.client.log_batch(self.id, params=new[at : at + 100])
        for at in range(0, len(changed), 100):
            self.client.log_batch(self.id, tags=changed[at : at + 100])

    def log(self, lines):
        from mlflow.entities import Metric

        metrics = [
            Metric(mlflow_key(key), value, line["time"], line["step"])
            for line in lines
            for key, value in line["numbers"].items()
        ]
        for at in range(0, len(metrics), 1000):
            self.client.log_batch(self.id, metrics=metrics[at : at + 1000])

    def finish(self, code):
        status = "FINISHED" if code == 0 else "KILLED" if code > 128 else "FAILED"
        self.client.set_terminated(self.id, status)


def mlflow_key(key):
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in key)


def leaves(value, path):
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, [*path, key])
    else:
        yield ".".join(path), value if isinstance(value, str) else json.dumps(value)


most_lines = 20000  # that wait for a tracker that does not answer; then the oldest are lost


def track(asked, arrived):
    tracker, waiting, warned, ended = None, [], False, None
    while ended is None:
        batch = [arrived.get()]
        while not arrived.empty():
            batch.append(arrived.get())
        ended = next((each["code"] for each in batch if "code" in each), None)
        waiting = (waiting + [each for each in batch if "step" in each])[-most_lines:]
        try:
            tracker = tracker or open_tracker(asked)
            tracker.log(waiting)
            waiting = []
            if ended is not None:
                tracker.finish(ended)
        except ImportError as error:
            tell(warning=f"{sys.executable} has no {error.name}: pip install {error.name}")
            return
        except Exception as error:  # whatever it is, the run goes on
            if not warned:
                tell(warning=f"{sentence(error)}; tried again with the next numbers")
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            warned = True
    if waiting:
        tell(warning=f"{len(waiting)} lines of numbers could not be sent")


def open_tracker(asked):
    return {"wandb": WandB, "mlflow": MLflow}[asked["tracker"]](asked)


def main():
    # The run decides when it ends. A terminal's Ctrl-C reaches this process, too.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    os.nice(10)
    # Otherwise the clients report their use to their makers, also where all numbers go to files.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    asked = json.loads(sys.stdin.readline())
    arrived = queue.Queue()
    # Always read at once, so that the run never waits. The clients want the main thread for themselves.
    threading.Thread(target=read, args=(arrived,), daemon=True).start()
    track(asked, arrived)


def read(arrived):
    try:
        for text in sys.stdin:
            arrived.put({**json.loads(text), "time": int(1000 * time.time())})
    except ValueError:
        pass  # the run died within a line
    finally:
        arrived.put({"code": 1})


main()
