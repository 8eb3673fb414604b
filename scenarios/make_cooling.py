"""Writes the cooling table of cooling-blast.toml, solar-cooling.zarr, from sutherland-dopita.csv in the same folder.

Above 10^4.2 K the rates are those of Sutherland & Dopita (1993, ApJS 88, 253) for collisional ionisation equilibrium. Below, they are those of
Koyama & Inutsuka (2002, ApJ 564, L97, eq. 4 as corrected by Vázquez-Semadeni et al. 2007, ApJ 657, 870). Kim & Ostriker (2015, ApJ 802, 99) use
the same combination. The carbon term of the latter and the heating, 2e-26 erg/s per hydrogen nucleus, scale with metallicity. The mean molecular
weight decreases from 1.295 to 0.62 with ionisation. Needs numpy and zarr (version 3).
"""

from pathlib import Path

import numpy as np
import zarr

HEATING = 2e-26  # erg/s
JOIN = 4.2  # log10 of the temperature in K at which the two sets of rates join
IONS = 1.1  # number of nuclei per hydrogen nucleus
MASS = 1.427  # gas mass per hydrogen nucleus, in hydrogen masses

folder = Path(__file__).parent
logs, electrons, zero, solar = np.loadtxt(folder / "sutherland-dopita.csv", delimiter=",", skiprows=6).T
# He/H is 0.064 in gas without metals and 0.098 at solar metallicity
electrons = np.where(electrons > 1, 1 + (electrons - 1) * 0.098 / 0.064, electrons)

log_temperature = np.arange(20, 171) / 20
temperature = 10**log_temperature
lyman_alpha = HEATING * 1e7 * np.exp(-1.184e5 / (temperature + 1000))
carbon = HEATING * 1.4e-2 * np.sqrt(temperature) * np.exp(-92 / temperature)
hot = log_temperature > JOIN + 1e-6
ionised = np.interp(log_temperature, logs, electrons, left=0)
without = np.where(hot, 10 ** np.interp(log_temperature, logs, zero), lyman_alpha)
all_metals = np.where(hot, IONS * ionised * 10 ** np.interp(log_temperature, logs, solar), lyman_alpha + carbon)

arrays = {
    "cooling_primordial": without,
    "cooling_metal": all_metals - without,
    "heating_metal": np.full(temperature.shape, HEATING),
    "mean_molecular_weight": MASS / (IONS + ionised),
}
zarr.config.set({"array.write_empty_chunks": True})
group = zarr.open_group(folder / "solar-cooling.zarr", mode="w")
group.create_array("log_density", data=np.zeros(1))
group.create_array("log_temperature", data=log_temperature)
for name, values in arrays.items():
    group.create_array(name, data=values[None, :], dimension_names=["log_density", "log_temperature"])
