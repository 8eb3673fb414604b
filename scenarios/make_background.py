"""Writes haardt-madau.csv: rates of a background of quasars with the spectral index -1.5 (Haardt & Madau 1996, ApJ 461, 20), by the fits of
the code Enzo. Radiation begins at redshift 7 and has its full strength from redshift 6 on."""

import math

ERG_PER_EV = 1.602176634e-12
# amplitude, power of 1 + z, place and twice the variance of the Gaussian
FITS = {
    "HI": (6.7e-13, 0.43, 1.95),
    "HeI": (3.2e-13, 0.50, 2.00),
    "HeII": (6.3e-15, 0.51, 2.35),
    "heat_HI": (4.7e-24 / ERG_PER_EV, 0.43, 1.95),
    "heat_HeI": (8.2e-24 / ERG_PER_EV, 0.50, 2.00),
    "heat_HeII": (1.6e-25 / ERG_PER_EV, 0.51, 2.35),
}


def strength(redshift: float) -> float:
    """Returns the share of the background that has begun to shine."""
    if redshift >= 7:
        return 0.0
    if redshift <= 6:
        return 1.0
    return 0.5 - 0.5 * math.tanh(15 * (redshift - 6.5))


with open("haardt-madau.csv", "w") as out:
    print("redshift", *FITS, sep=",", file=out)
    for redshift in [0.1 * n for n in range(71)] + [1e3]:
        rates = (
            amplitude
            * strength(redshift)
            * (1 + redshift) ** power
            * math.exp(-((redshift - 2.3) ** 2) / width)
            for amplitude, power, width in FITS.values()
        )
        print(f"{redshift:.1f}", *(f"{rate:.4e}" for rate in rates), sep=",", file=out)
