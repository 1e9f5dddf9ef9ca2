# %% [markdown]
# # People, not rows
#
# If each person has two hundred visits, protecting one visit protects nobody, and two hundred visits of one person are not two hundred independent
# draws. Declare the *unit*: privacy, sampling and intervals are then about people.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 46, 47, 48, 70, 120 and 185). Keep at most m rows of each unit, by coins that depend on that unit alone. A total over kept rows, each in
# [0, 1], changes by at most m when one unit is replaced, and the totals of units are independent draws. So noise for m rows protects the unit, and every theorem
# about rows holds for units (46, 47), also what the events of a unit say of it (48), what it looks up in a public table (70), its keys (120), and a holdout of units (185).

# %%
import numpy as np

import holdfast as hf

chance = np.random.default_rng(18)
people, each, truth = 400, 200, 0.3
schema = hf.Schema(ill=hf.Boolean())
intervals = {"rows": [], "people": []}
for _ in range(30):
    ill = np.repeat(chance.random(people) < truth, each)  # whoever is ill is ill at every visit
    person = np.repeat(np.arange(people), each)
    as_rows = hf.open({"ill": ill.copy()}, schema).session(epsilon=4.0, delta=1e-6, queries=5)
    answer = as_rows.fraction("ill = true")
    intervals["rows"].append((answer.low, answer.high))
    as_people = hf.open({"person": person, "ill": ill}, schema, unit="person", rows_per_unit=each).session(
        epsilon=4.0, delta=1e-6, queries=5
    )
    answer = as_people.fraction("exists(rows, ill = true)")
    intervals["people"].append((answer.low, answer.high))
missed = {name: sum(not low <= truth <= high for low, high in found) for name, found in intervals.items()}
print("samples in which the interval misses the truth, of 30:", missed)
assert missed["people"] <= 5 < missed["rows"]  # one in a hundred may miss, of five planned answers

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
for place, (name, found) in zip(axes, intervals.items(), strict=True):
    for at, (low, high) in enumerate(found):
        place.plot([at, at], [low, high], color="tab:red" if not low <= truth <= high else "tab:blue")
    place.axhline(truth, color="grey", linestyle=":")
    place.set(xlabel="sample of 400 people", title=f"declared as independent {name}")
axes[0].set_ylabel("share of the ill")
figure.tight_layout()

# %% [markdown]
# The narrow intervals on the left take 80,000 visits for 80,000 independent draws. They are only as true as that assumption, and they protect a visit, not a person.

# %% [markdown]
# **Events, public tables, keys and holdouts of people** (Theorems 47, 48, 70, 120 and 185). One heavy visitor has five thousand visits; the bound keeps twenty of them. Each ward's floor is looked up, a key
# needs many *people*, and a model's accuracy is that for a new person.

# %%
from holdfast.holdout import ReusableHoldout

number = 20_000
person = np.r_[chance.integers(0, number, 60_000), np.full(5000, 7)]  # the heavy visitor is number 7
ward = np.r_[chance.choice(["heart", "eyes"], 60_000), np.full(5000, "only one goes here")]
visits = hf.open(
    {"person": person, "ward": ward},
    hf.Schema(ward=hf.Text(max_length=20)),
    unit="person",
    rows_per_unit=20,
    lookups={"wards": hf.Lookup({"ward": ["heart", "eyes"], "floor": [3, 1]}, key="ward")},
)
session = visits.session(epsilon=2.0, delta=1e-6, target="table", queries=50)
keys = session.keys("ward").labels
upstairs = session.fraction("exists(rows, wards.floor > 2)")
true = np.unique(person[ward == "heart"]).size / np.unique(person).size
print("keys that many people have:", sorted(keys), f"; upstairs {upstairs.value:.3f}, true {true:.3f}")
assert sorted(keys) == ["eyes", "heart"] and upstairs.low <= true <= upstairs.high

easy = chance.random(2000) < 0.5  # a model is right on all rows of half of the people, on none of the others
owners = np.repeat(np.arange(2000), np.where(easy, 40, 2))  # and the easy ones have most rows
labels = chance.integers(0, 2, owners.size)
guesses = np.where(easy[owners], labels, 1 - labels)
by_people = ReusableHoldout(labels, units=owners, rows_per_unit=40, queries=20).score(guesses)
print(
    f"right on {np.mean(guesses == labels):.2f} of the rows; for a new person {by_people.low:.2f} to {by_people.high:.2f}"
)
assert by_people.low <= 0.5 <= by_people.high < 0.9

# %% [markdown]
# **Try it.** Set `each = 1`. The two ways then mean the same: what is left of the difference in width?
