# %% [markdown]
# # Losses add up
#
# One noisy answer tells little. A thousand tell more, and the analyst chooses each after seeing those before it. How much more is
# the question of composition. It decides how far a budget reaches.

# %% [markdown]
# **Theorem** (basic: Dwork et al. 2006; advanced: Dwork, Rothblum, Vadhan 2010; optimal: Kairouz, Oh, Viswanath 2015; concentrated: Bun,
# Steinke 2016). k adaptive answers that are each ε-differentially private are together kε-differentially private; they are also
# (√(2k ln(1/δ))·ε + kε(e^ε − 1), δ)-differentially private. In zero-concentrated privacy, losses ρ add up, and kρ is worth
# kρ + 2√(kρ ln(1/δ)) in epsilon.

# %%
import numpy as np

import holdfast as hf
from holdfast import privacy
from holdfast.privacy import events

epsilon, delta = 0.05, 1e-6
answers = np.unique(np.geomspace(1, 3000, 40).astype(int))
curves = {
    "basic": [privacy.basic_composition(epsilon, int(k)) for k in answers],
    "as it is taught": [privacy.lecture_composition(epsilon, int(k), delta) for k in answers],
    "advanced, sharper": [privacy.advanced_composition(epsilon, int(k), delta) for k in answers],
    "optimal": [privacy.optimal_composition(epsilon, int(k), delta) for k in answers],
}
# Gaussian answers with the same standard deviation as the Laplace answers of the other curves
variance = round(2 / epsilon**2)
curves["Gaussian noise, same size"] = [
    privacy.approx(events.Repeat(events.Gaussian(1, variance), int(k)), delta).epsilon for k in answers
]
for name, values in curves.items():
    print(f"{name:26} {values[-1]:8.2f} after {answers[-1]} answers")
assert curves["optimal"][-1] <= curves["advanced, sharper"][-1] <= curves["as it is taught"][-1]
assert curves["Gaussian noise, same size"][-1] < curves["optimal"][-1] < curves["basic"][-1] / 3

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3.5))
for name, values in curves.items():
    axes.loglog(answers, values, label=name)
axes.set(xlabel="answers", ylabel="epsilon of all together", title="each answer 0.05, delta 1e-6")
axes.legend()

# %% [markdown]
# **Filters.** The theorems above fix every ε beforehand. An analyst who may also choose *how much to spend next* after seeing the
# answers is stopped by a filter: refuse whatever would pass the limit. For zero-concentrated privacy the filter costs nothing
# (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers, Wu 2023): the adaptive sum has the same guarantee. A ledger of this
# package is such a filter, in whole billionths.

# %%
budget = privacy.Filter.zcdp(0.1)
chance, spent = np.random.default_rng(5), []
while True:
    wish = events.Gaussian(1, int(chance.integers(50, 500)))  # chosen on the way
    try:
        budget = budget.charge(wish)
    except hf.BudgetError:
        break
    spent.append(privacy.zcdp(wish).rho)
print(f"{len(spent)} answers, rho {sum(spent):.4f} of 0.1; the next one is refused")
assert sum(spent) <= 0.1 and len(spent) > 10

# %% [markdown]
# **Noise of every kind under one exact profile** (Theorem 290). Gaussian noise hides a little more than its ρ says: under (1, 10⁻⁶)
# the exact profile allows it 1.15 times as much. A plan that the budget keeps wide therefore counts μ², the square of how far two
# Gaussians are apart, and everything else as the Gaussian noise that tells as much. A coin whose odds move by η is the worst that a
# mechanism of bounded range can show; here it is, beside Gaussian noise of μ² = (π/2)(η/2)².

# %%
eta = 0.4
mu_squared = float(privacy.gdp(events.BoundedRange(eta)).mu_squared)
one = 1 / (1 + np.exp(-eta / 2))  # heads in one table, tails in the other
told = [max(0.0, one - np.exp(e) * (1 - one)) for e in (0.0, 0.05, 0.1, 0.15)]
hidden = [privacy.gdp_delta(e, mu_squared**0.5) for e in (0.0, 0.05, 0.1, 0.15)]
print(
    f"mu squared {mu_squared:.4f} for a range of {eta}; two Gaussians would show {hidden[0]:.4f}, the coin shows {told[0]:.4f}"
)
assert all(shown <= bound for shown, bound in zip(told, hidden, strict=True))
assert told[0] > privacy.gdp_delta(0.0, eta / 2), "what rho charges for the same would be too little"
both = privacy.approx_to_gdp(1.0, 1e-6) ** 2, 2 * privacy.approx_to_zcdp(1.0, 1e-6)
print(f"under (1, 1e-6): mu squared {both[0]:.4f} by the profile, {both[1]:.4f} by rho")
assert both[0] > 1.14 * both[1]

# %% [markdown]
# **Try it.** Set `epsilon` to 1. Advanced composition is then worse than the basic one for a while: up to how many answers?
