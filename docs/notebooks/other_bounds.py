# %% [markdown]
# # Votes, coarse answers, and stopping whenever you like
#
# Answers need not be Gaussian, the number of questions need not be known, and a session may mix mechanisms. Each of these has its theorem, and
# each costs something. This chapter draws what.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 9, 10, 11, 13, 14, 16, 18, 19 and 20). Many votes together have a Gaussian profile up to a tiny term (9; 10 for any small steps),
# which gives them intervals (11), as do the information in a vote (13) and the posterior it leaves (16). Answers rounded to coarse cells, without noise, have few possible
# transcripts, so that a union bound holds (14). Epochs that double pay for stopping at any time (18). After private answers a p-value that is e^−I times smaller than usual is
# still a test (19). A ledger of levels covers any mixture of mechanisms (20).

# %%
import numpy as np

import holdfast as hf

rows, asked = 20_000, [2, 5, 10, 50, 200, 1000]


def widths(name, **options):
    return [hf.validity.width(name, rows=rows, queries=k, confidence=0.95, **options) for k in asked]


lines = {
    "plain votes, best published (Blanc 2023)": widths("blanc"),
    "votes by information (13)": widths("t3"),
    "votes by their posterior (16)": widths("t4v"),
    "votes by their profile (9, 11)": widths("votes"),
    "coarse cells, no noise (14)": widths("discretised"),
    "Gaussian noise (8), for comparison": widths("gaussian"),
}
for name, line in lines.items():
    print(f"{name:42}" + " ".join(f"{width:7.4f}" for width in line))
assert all(a <= b for a, b in zip(lines["votes by their profile (9, 11)"], widths("blanc"), strict=True))
few = lines["coarse cells, no noise (14)"]
assert (
    few[0] < lines["Gaussian noise (8), for comparison"][0] and few[-1] > 0.1
)  # for very few questions only

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
for name, line in lines.items():
    left.loglog(asked, np.minimum(line, 1), label=name)
left.set(xlabel="adaptive answers", ylabel="half-width, 20,000 rows")
left.legend(fontsize=6)

term, profile = hf.validity.mixture_term(0.05, budget=0.01, largest=1e-6, ratio=1e-3)
print(
    f"any small steps that together are like Gaussian answers of mu 0.1 (10): {term:.4f} from noise of their own"
)
assert profile.mu**2 >= 0.01 and term > hf.validity.sharp_term(0.05, 0.1)
known = [hf.validity.width("gaussian", rows=rows, queries=k, confidence=0.95) for k in asked]
open_end = [hf.validity.epoch_width(rows, 0.05, hf.validity.epoch(k)) for k in asked]
right.loglog(asked, known, label="the number was known (8)")
right.loglog(asked, open_end, label="stop whenever you like (18)")
right.set(xlabel="answer", ylabel="half-width")
right.legend(fontsize=8)
assert all(k < o < 1.8 * k for k, o in zip(known, open_end, strict=True))
figure.tight_layout()

# %% [markdown]
# **A test after a search** (Theorem 19). A thousand features that are coins are correlated with a label that is a coin; the best looking one is tested on the same rows. At the
# usual level it is "significant" nearly always. Private answers lead the search less far, and the corrected level is what such a p-value is compared with.

# %%
from math import erfc, sqrt

chance = np.random.default_rng(19)
n, epsilon, level = 2000, 0.02, 0.05
corrected = hf.validity.corrected_level(level, rows=n, epsilon=epsilon)
rejected = {"exact search, usual level": 0, "private search, corrected level": 0}
for _ in range(50):
    agree = chance.binomial(n, 0.5, 1000)  # how many rows each feature agrees with
    noisy = agree + chance.gumbel(scale=2 / epsilon, size=1000)  # the exponential mechanism
    for name, best, limit in (
        ("exact search, usual level", agree.max(), level),
        ("private search, corrected level", agree[np.argmax(noisy)], corrected),
    ):
        rejected[name] += erfc((best - n / 2) / sqrt(n / 4) / sqrt(2)) / 2 < limit
print(rejected, f"of 50; the corrected level is {corrected:.4f}")
assert rejected["exact search, usual level"] > 40 and rejected["private search, corrected level"] <= 8

# %% [markdown]
# **A mixture** (Theorem 20). One session asks plainly, then by Laplace noise, which the leave-out theorem does not cover. That answer and all after it are covered by levels, which are
# wider, and all intervals hold together.

# %%
data = {"x": chance.integers(0, 100, 100_000)}
table = hf.open(data, hf.Schema(x=hf.Integer(0, 99)), allow_uncovered=True)
session = table.session(epsilon=1.0, delta=1e-6)
plain = session.fraction("x < 30", rho=1e-4)
laplace = session.fraction("x < 40", epsilon=0.02, mechanism="laplace")
after = session.fraction("x < 50", rho=1e-4)
for answer, truth in ((plain, 0.3), (laplace, 0.4), (after, 0.5)):
    print(f"{answer.mechanism:10} {answer.value:.3f} in [{answer.low:.3f}, {answer.high:.3f}]")
    assert answer.low - 0.01 < truth < answer.high + 0.01
assert laplace.ends_theorem and after.width > 1.5 * plain.width

# %% [markdown]
# **Try it.** Ask the last question before the Laplace one. What did the order cost?
