"""Counts and times in the text format that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

from fewnode.machine.system import peak_memory

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Requests by route and status, and how long they took. Routes are templates: no name of a user's is in them."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        counts = self._times.setdefault(route, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        lines = ["# HELP fewnode_requests_total Requests answered.", "# TYPE fewnode_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            lines.append(f'fewnode_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines += ["# HELP fewnode_request_seconds Time to answer.", "# TYPE fewnode_request_seconds histogram"]
        for route, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f'fewnode_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'fewnode_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'fewnode_request_seconds_count{{route="{route}"}} {total}')
        peak = ("Most memory ever resident.", peak_memory())
        for name, (what, value) in {"peak_memory_bytes": peak, **gauges}.items():
            lines += [f"# HELP fewnode_{name} {what}", f"# TYPE fewnode_{name} gauge", f"fewnode_{name} {value}"]
        return "\n".join(lines) + "\n"
