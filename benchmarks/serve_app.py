"""The service as a plain ASGI application, for servers other than its own: `benchmarks/serve.py` compares them."""

import os
from pathlib import Path
from typing import Any

import torch

from fewnode.cli.predict import open_run
from fewnode.serve.app import Service
from fewnode.serve.auth import rules
from fewnode.serve.session import Session
from fewnode.serve.store import Store


def app() -> Any:
    torch.set_num_threads(1)
    model, data = open_run(Path(os.environ["RUN"]), os.environ.get("DATA"), None, True)
    service = Service(rules(os.environ["TOKEN"], "127.0.0.1", int(os.environ["PORT"])))
    service.open(Session(model, data, Store(Path(os.environ["STATE"]), data.sha256)))
    return service.app
