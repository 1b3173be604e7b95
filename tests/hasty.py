"""`fewnode serve` with little patience: a tenth of the usual seconds, so that tests need not wait."""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from fewnode.estimator import load_model
from fewnode.serve.app import Service
from fewnode.serve.auth import rules
from fewnode.serve.server import ClientLimits, bind, run
from fewnode.serve.session import Session
from fewnode.serve.store import Store
from fewnode.storage.io import load_dataset

torch.set_num_threads(1)
model = load_model(sys.argv[1])
data = load_dataset(Path(model.trained_["data"]["path"]))
listener = bind("127.0.0.1", 0)
port = listener.getsockname()[1]
service = Service(replace(rules(sys.argv[3], "127.0.0.1", port), body_seconds=1.0, request_seconds=6.0))
print(f"http://127.0.0.1:{port}/?token={sys.argv[3]}", flush=True)
store = Store(Path(sys.argv[2]), data.sha256)
run(
    service,
    listener,
    lambda: Session(model, data, store),
    lambda what: print(what, file=sys.stderr),
    ClientLimits(header_seconds=1.0, write_seconds=1.0, leaving_seconds=1.0, connections=50),
)
