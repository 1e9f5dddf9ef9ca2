"""What a gateway counts for its owner: requests by route and status. Nothing in it comes from rows."""

from __future__ import annotations

import time
from collections import Counter
from threading import Lock

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Counts since the start of this worker, in Prometheus' text format."""

    def __init__(self) -> None:
        self._lock, self._start = Lock(), time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[float] = Counter()
        self._sum = 0.0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request. `route` is the pattern, not the path, which could hold anything."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds[next((edge for edge in _EDGES if seconds <= edge), float("inf"))] += 1
            self._sum += seconds

    def text(self) -> str:
        """All counts."""
        with self._lock:
            lines = [
                "# TYPE holdfast_requests_total counter",
                *(
                    f'holdfast_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                    for (method, route, status), count in sorted(self._requests.items())
                ),
                "# TYPE holdfast_request_seconds histogram",
            ]
            total = 0
            for edge in (*_EDGES, float("inf")):
                total += self._seconds[edge]
                name = "+Inf" if edge == float("inf") else f"{edge:g}"
                lines.append(f'holdfast_request_seconds_bucket{{le="{name}"}} {total}')
            lines += [
                f"holdfast_request_seconds_sum {self._sum:.6f}",
                f"holdfast_request_seconds_count {total}",
                "# TYPE holdfast_start_time_seconds gauge",
                f"holdfast_start_time_seconds {self._start:.3f}",
            ]
        return "\n".join(lines) + "\n"
