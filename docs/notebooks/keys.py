# %% [markdown]
# # Keys that nobody listed
#
# Which destinations occur in the table? The list itself is secret: a destination that one person alone went to gives that person away.
# Noise is added to the count of every key, and only keys above a threshold are shown.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 49 and 50; after Korolova, Kenthapadi, Mishra, Ntoulas 2009). Add Gaussian noise of variance σ² to the count of every key that occurs,
# and show the keys whose noisy count is above 1 + σz. A key of one person is shown with probability at most Q(z), which
# is the δ of the discovery; everything else about it is 1/σ²-zero-concentrated, since one replaced row changes two counts.
# By logistic noise (50) a discovery also has a charge in the leave-out theorem, so that later answers about the population stay valid.

# %%
import numpy as np

import holdfast as hf

chance, rows = np.random.default_rng(17), 200_000
share = 1 / np.arange(1, 1001) ** 1.3
places = chance.choice(1000, rows, p=share / share.sum())
names = np.array([f"K{place:04d}" for place in places], dtype="U12")
names[:500] = [f"only {i}" for i in range(500)]  # five hundred people, each with a key of their own
counts = dict(zip(*np.unique(names, return_counts=True), strict=True))
schema = hf.Schema(dest=hf.Text(max_length=12))

shown = {}
for rho in (1e-4, 1e-3, 1e-2):
    table = hf.open({"dest": names.copy()}, schema)
    session = table.session(rho=0.5, delta=1e-6, target="table")
    shown[rho] = session.keys("dest", rho=rho, delta=1e-7).labels
    least = min(counts[key] for key in shown[rho])
    print(f"rho {rho:<6}: {len(shown[rho]):4} of {len(counts)} keys shown, the rarest has {least} rows")
    assert not any(key.startswith("only") for key in shown[rho])
assert len(shown[1e-4]) < len(shown[1e-3]) < len(shown[1e-2])

# %% [markdown]
# Frequent keys are found for certain, rare ones hardly ever. Ten times the budget moves the threshold down by about √10.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
ranked = sorted((key for key in counts if key.startswith("K")), key=lambda key: -counts[key])
for place, (rho, found) in enumerate(shown.items()):
    found = set(found)
    height = np.array([key in found for key in ranked]) * 0.25 + 0.3 * place
    axes.semilogx([counts[key] for key in ranked], height, ".", label=f"rho {rho}: {len(found)} keys")
axes.axvline(1, color="red", linestyle=":", label="keys of one person: never")
axes.set(xlabel="rows with the key", yticks=[], ylabel="hidden / shown")
axes.legend(fontsize=8)

# %% [markdown]
# **For the population** (Theorem 50) the noise is logistic. What a discovery tells is counted like an answer, so it takes a small part of the budget and finds large groups only; what is asked later stays covered.

# %%
session = hf.open({"dest": names.copy()}, schema).session(epsilon=1.0, delta=1e-6, queries=50)
before = session.estimate.fraction("dest = 'K0000'").width
found = session.keys("dest")
after = session.fraction("dest = 'K0000'").width
print(f"{len(found.labels)} keys shown by logistic noise; half-width before {before:.4f}, after {after:.4f}")
assert len(found.labels) >= 2 and after < 3 * before
assert not any(key.startswith("only") for key in found.labels)

# %% [markdown]
# **Try it.** Set `delta=1e-3`. The threshold falls a little: how many of the keys of one person would you expect to see in a thousand discoveries?
