"""For a test: what Weights & Biases' files or MLflow's store have of a run, read by their own Python, as JSON."""

import json
import struct
import sys


def wandb_records(path):
    """Its log: 7 bytes of header, then blocks of 32 KiB with records (crc, length, type) in the form of LevelDB's."""
    from wandb.proto import wandb_internal_pb2

    data = open(path, "rb").read()
    assert data[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def wandb_run(paths):
    run, config, history, exits = None, {}, [], []
    for path in paths:
        for record in wandb_records(path):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                run = record.run
                config = {update.key: json.loads(update.value_json) for update in run.config.update}
            if kind == "history":
                items = {(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in record.history.item}
                history.append(items)
            if kind == "exit":
                exits.append(record.exit.exit_code)
    return {
        "id": run.run_id,
        "project": run.project,
        "name": run.display_name,
        "config": config,
        "history": history,
        "exits": exits,
    }


def mlflow_run(folder, experiment):
    import os

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=folder)
    runs = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    (run,) = runs
    history = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
    return {
        "id": run.info.run_id,
        "name": run.info.run_name,
        "status": run.info.status,
        "params": run.data.params,
        "tags": run.data.tags,
        "metrics": {key: [[each.step, each.value] for each in values] for key, values in history.items()},
    }


what, *args = sys.argv[1:]
print(json.dumps(wandb_run(args) if what == "wandb" else mlflow_run(*args)))
