"""Parameters of the universe of a run with the table ``[cosmology]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .units import PARSEC, YEAR


@dataclass(frozen=True)
class Cosmology:
    """Density parameters today, Hubble constant and equation of state of dark energy."""

    h: float
    """Hubble constant over 100 km/s/Mpc."""
    omega_m: float
    omega_lambda: float
    omega_r: float
    w0: float
    wa: float

    @classmethod
    def of(cls, attrs: Mapping[str, Any], deck: Mapping[str, Any]) -> Cosmology:
        """Returns the parameters of a snapshot from its attributes and its deck."""
        table = deck.get("cosmology", {})
        return cls(
            h=attrs["hubble"] / 100,
            omega_m=attrs["omega_matter"],
            omega_lambda=attrs["omega_lambda"],
            omega_r=attrs["omega_radiation"],
            w0=float(table.get("w0", -1.0)),
            wa=float(table.get("wa", 0.0)),
        )

    @property
    def hubble_time(self) -> float:
        """The inverse of the Hubble constant in Gyr."""
        return 1e6 * PARSEC / (self.h * 1e7) / (1e9 * YEAR)
