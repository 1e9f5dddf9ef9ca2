# %% [markdown]
# # From privacy to a population
#
# Before the leave-out theorem there was one way to an interval that survives an adaptive analyst: bound how much the answers can depend on
# one row, and conclude how far a question that is chosen from them can be from the population. This chapter plays the smallest game exactly, and then
# puts every theorem of that kind beside the others.

# %% [markdown]
# **Theorem** (docs/theorems.md, Lemmas 1 and 2, Theorems 3, 4, 5, 6, 8, 12 and 15). Let w be the chance that a row satisfies the chosen question
# in the population, and u the chance given the answers and all other rows. It is enough to bound u − w for one row (Lemma 1); under ε-differential privacy the odds
# of u are at most e^ε times those of w (Lemma 2). So a question that pure ε-private answers chose is within **tanh(ε/4)** of the population on average,
# given any event of the answers. Theorems 3 to 6 do the same for every privacy profile, Theorem 8 adds the noise of the answers without loss, and Theorems 12 and 15 measure
# the information in the answers instead.

# %%
import numpy as np

import holdfast as hf

w = np.linspace(0.001, 0.999, 999)
gaps, worst = {}, {}
for epsilon in (0.5, 1.0, 2.0):
    told = (
        np.exp(epsilon) * w / (np.exp(epsilon) * w + 1 - w)
    )  # a coin told truthfully with odds e^epsilon: given "1"
    gaps[epsilon] = told - w
    worst[epsilon] = float(gaps[epsilon].max())
    print(f"epsilon {epsilon}: largest gap {worst[epsilon]:.5f}, tanh(epsilon/4) {np.tanh(epsilon / 4):.5f}")
    assert 0.999 < worst[epsilon] / np.tanh(epsilon / 4) <= 1  # the theorem holds, and nothing smaller would

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
for epsilon, gap in gaps.items():
    (line,) = axes.plot(w, gap, label=f"ε = {epsilon}")
    axes.axhline(np.tanh(epsilon / 4), color=line.get_color(), linestyle=":")
axes.set(xlabel="share in the population, w", ylabel="how far one told bit moves it, u − w")
axes.legend()

# %% [markdown]
# The dotted lines are tanh(ε/4): one bit reaches them. Now k answers with Gaussian noise from 100,000 rows, by each theorem. All of them are valid for every adaptive
# analyst but the first, which holds for questions that were fixed beforehand.

# %%
names = {
    "hoeffding": "not adaptive",
    "splitting": "fresh rows for each question",
    "jlnrss": "best of 2020 (Jung et al.)",
    "t1": "Theorem 6",
    "t2": "Theorem 12",
    "t4": "Theorem 15",
    "transfer": "Theorems 3 and 4",
    "gaussian": "Theorems 5 and 8",
    "leave-out": "leave-out (Theorem 23)",
}
asked = [10, 100, 1000, 10_000]
widths = {
    name: [hf.validity.width(name, rows=100_000, queries=k, confidence=0.95) for k in asked] for name in names
}
figure, axes = plt.subplots(figsize=(7, 4))
for name, line in widths.items():
    axes.loglog(asked, line, "--" if name == "hoeffding" else "-", label=names[name])
axes.set(xlabel="adaptive answers", ylabel="half-width of each, 100,000 rows", ylim=(None, 1))
axes.legend(fontsize=8)
for k, (*_, gaussian, leave_out) in zip(asked, zip(*widths.values(), strict=True), strict=True):
    print(f"{k:6} answers: {gaussian:.4f} by privacy, {leave_out:.4f} by leaving rows out")
    assert (
        leave_out < gaussian <= min(widths[name][asked.index(k)] for name in ("t1", "t2", "t4", "transfer"))
    )

# %% [markdown]
# **Try it.** Set `confidence=0.5`. Which of the theorems gains most, and why is it the one with β under a root?
