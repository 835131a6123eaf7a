"""Medians and ratios of lines such as `name: 123 events …`."""

import re
import statistics
import sys

seen = {}
for line in sys.stdin:
    name, rate = re.match(r"([^:]+): (\d+)", line).groups()
    seen.setdefault(name, []).append(float(rate))
rates = {name: statistics.median(values) for name, values in seen.items()}
print()
for name, rate in rates.items():
    ratios = ", ".join(f"{rate / rates[peer]:.1f}x {peer}" for peer in ("nexosim", "SimPy"))
    print(f"{name}: {rate / 1e6:.3f} million events per processor second, {ratios}")
