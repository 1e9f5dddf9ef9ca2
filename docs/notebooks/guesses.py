# %% [markdown]
# # Guesses that are checked
#
# Mostly you know what a holdout will say: about what cross-validation said. Then do not ask for the score, ask whether the guess is right. As long as it is, a silent *yes* tells almost nothing about the
# labels, and there can be very many of them. Only a wrong guess is paid for.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 30 and 55; the idea: Dwork et al. 2015, Thresholdout). Compare the distance of guess and score with a secret noisy threshold, by logistic noise. Silence is free, an alarm tells as much as one answer.
# With probability 1 − β every guess that passed is within one common width of the score on new data, and every alarm's answer within another, for all looks together.

# %%
import numpy as np

from holdfast.holdout import ReusableHoldout

chance = np.random.default_rng(23)
rows, looks = 50_000, 300
labels = chance.integers(0, 2, rows)
holdout = ReusableHoldout(labels, queries=2000, mode="guesses", alarms=10)
print(holdout.design)
passed, alarms, wrong = [], [], 0
for look in range(looks):
    skill = 0.5 + 0.3 * look / looks  # the models get better
    model = np.where(chance.random(rows) < skill, labels, 1 - labels)
    guess = skill + (
        0.15 if look in (60, 200) else 0.002 * chance.normal()
    )  # twice the training score is far too good
    answer = holdout.score(model, guess=guess)
    (alarms if abs(answer.value - guess) > 1e-12 else passed).append((look, answer, skill))
    wrong += not answer.low <= skill <= answer.high
print(
    f"{len(passed)} guesses passed, {len(alarms)} alarms, at looks {[look for look, *_ in alarms]}; {wrong} intervals miss"
)
assert {60, 200} <= {look for look, *_ in alarms} and wrong <= 3

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.2))
for found, colour, name in (
    (passed, "tab:blue", "the guess passed"),
    (alarms, "tab:red", "an alarm, and an answer"),
):
    axes.vlines(
        [f[0] for f in found],
        [f[1].low for f in found],
        [f[1].high for f in found],
        color=colour,
        alpha=0.5,
        label=name,
    )
axes.plot([0, looks], [0.5, 0.8], "k:", label="truth")
axes.set(xlabel="look", ylabel="accuracy")
axes.legend()

# %% [markdown]
# **Try it.** Guess 0.65 at every look. How many looks are answered before all alarms are spent?
