# %% [markdown]
# # Many sessions on one table
#
# Colleagues ask the same table. What one is told widens what another can be promised, unless it was reserved; and nobody may choose, by what was told, how the others' intervals
# are proved. Both are theorems about who chooses what, and when.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 31, 41, 61, 90 and 91). Numbers of rows to leave out, m, and chances are fixed for every place of a session before its first answer; each place goes to one claim, whoever
# chooses which (31, 90, 91). If m itself were chosen by the answers, the inequality behind all widths would be false (90). Shares fix what each session may be told at most, so that
# nobody widens another's plan (41). Units that are set aside by a secret permutation carry releases that the theorem does not cover, and the rest keeps its widths (61).

# %%
from math import comb, exp

import numpy as np

import holdfast as hf
from holdfast.validity.leave_out_charges import comparison_charge

# Theorem 90's game, exactly: 20 coins, one check of their mean against 0.7. An alarm says that there are many heads, and the analyst
# asks for heads; after silence for tails. 8 rows are left out after an alarm and 19 after silence.
n, threshold, rate, b = 20, 0.7, 7.4, 5.4
law = [comb(n, h) / 2**n for h in range(n + 1)]


def mean_of(left_out):
    """E exp(b(q(S) - q(P)) - charge - b²/(8m)), m a function of the answer."""
    total = 0.0
    for h, chance in enumerate(law):
        odds = exp(rate * (h / n - threshold))
        for alarm, sign, p in ((True, 1, odds / (1 + odds)), (False, -1, 1 / (1 + odds))):
            m = left_out(alarm)
            charge = comparison_charge(n, m, rate) if alarm else 0.0
            total += chance * p * exp(sign * b * (h / n - 0.5) - charge - b * b / (8 * m))
    return total


fixed = [mean_of(lambda alarm, m=m: m) for m in range(1, n)]
chosen = mean_of(lambda alarm: 8 if alarm else 19)
print(f"m fixed beforehand: at most {max(fixed):.3f}; m chosen by the answer: {chosen:.3f}")
assert max(fixed) < 1 < chosen

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
left.plot(range(1, n), fixed, "o-", label="m fixed beforehand")
left.axhline(chosen, color="red", label="m chosen by the answer: false")
left.axhline(1, color="grey", linestyle=":")
left.set(xlabel="rows left out, m", ylabel="E exp(…), which must be at most 1", ylim=(0.7, 1.05))
left.legend(fontsize=8)

chance = np.random.default_rng(41)
schema = hf.Schema(x=hf.Integer(0, 99))


def table(**options):
    return hf.open({"x": chance.integers(0, 100, 20_000)}, schema, **options)


widths, planned = {"with a share of one half": [], "without a share": []}, {}
for name, share in (("with a share of one half", 0.5), ("without a share", None)):
    shared = table()
    session, other = (shared.session(epsilon=1.0, delta=1e-6, queries=40, share=share) for _ in range(2))
    planned[name] = float(str(session.plan).split("within ")[1].split()[0])
    for j in range(40):
        widths[name].append(session.fraction(f"x < {j + 1}").width)
        other.fraction(f"x >= {j + 1}")  # a colleague asks in between
for name, line in widths.items():
    (drawn,) = right.plot(range(1, 41), line, label=name)
    right.axhline(planned[name], color=drawn.get_color(), linestyle=":", label="its plan")
right.set(xlabel="answer", ylabel="half-width, a colleague asks in between")
right.legend(fontsize=8)
print({name: f"planned {planned[name]}, the last {line[-1]:.4f}" for name, line in widths.items()})
assert max(widths["with a share of one half"]) <= planned["with a share of one half"]
assert widths["without a share"][-1] > planned["without a share"]
figure.tight_layout()

# %% [markdown]
# **Units that are set aside** (Theorem 61). A tenth of the rows carries an answer by Laplace noise, which the theorem does not cover; the others stay as narrow as they were.

# %%
divided = table(set_aside=0.1)
first = divided.session(epsilon=1.0, delta=1e-6, queries=40).plan
aside = divided.aside.session(epsilon=0.2).fraction("x < 50", epsilon=0.1, mechanism="laplace")
second = divided.session(epsilon=1.0, delta=1e-6, queries=20).fraction("x < 50")
print(first)
print(f"aside ±{aside.width:.3f} from 2,000 rows; the rest ±{second.width:.4f} afterwards")
assert second.width < 0.05 < aside.width and not second.ends_theorem

# %% [markdown]
# **Try it.** Give the first session `share=0.9`. Whose intervals become narrower, whose wider?
