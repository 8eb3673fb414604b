"""Writes the table of cooling that cooling-blast.toml reads: make_cooling.py makes solar-cooling.zarr of sutherland-dopita.csv beside itself.

Above 10^4.2 K gas cools as in R. S. Sutherland & M. A. Dopita (ApJS 88, 253, 1993), in equilibrium of ionisation by collisions, below as in
H. Koyama & S. Inutsuka (ApJ 564, L97, 2002, eq. 4 as corrected by E. Vázquez-Semadeni et al., ApJ 657, 870, 2007), as C.-G. Kim & E. C. Ostriker
(ApJ 802, 99, 2015) have it. Carbon's part of the latter and heating, 2e-26 erg/s per hydrogen nucleus, scale with metallicity. The mean molecular
weight falls from 1.295 to 0.62 with ionisation. Needs numpy and zarr (version 3).
"""

from pathlib import Path

import numpy as np
import zarr

HEATING = 2e-26  # erg/s
JOIN = 4.2  # log10 of kelvin
IONS = 1.1  # nuclei per hydrogen nucleus
MASS = 1.427  # gas per hydrogen nucleus, hydrogen masses

folder = Path(__file__).parent
logs, electrons, zero, solar = np.loadtxt(folder / "sutherland-dopita.csv", delimiter=",", skiprows=6).T
# helium is 0.064 of hydrogen in the gas without metals, 0.098 in the sun
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
