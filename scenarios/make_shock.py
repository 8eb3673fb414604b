"""The steady radiative shock on a wall and how it sways: make_shock.py EXPONENT MACH [CELLS] writes shock.csv beside itself, which
radiative-shock.toml can begin with, and prints the command with all that the deck has to be told, by CELLS (32) a cooling length.

Gas with gamma = 5/3 and the cooling rate K rho^2 (T/T_shock)^EXPONENT comes with speed 1, as seen by the shock, and cools to the temperature it came with
within length 1. Printed, too: where the temperature has fallen to half, and growth rate, frequency and period of the first three modes
by linear theory (R. A. Chevalier & J. N. Imamura, ApJ 261, 543, 1982), here with the conditions of a shock of this Mach number and a wall in place of
cold gas; lengths in cooling lengths, speeds in that of the gas. With EXPONENT 0.5 and MACH 1000 it gives -0.010 + 0.305 i and 0.048 + 0.889 i. Needs numpy.
"""

import sys
from pathlib import Path

import numpy as np

GAMMA = 5 / 3
STEPS = 3000
PER_K = 140175.21947962878 / 0.19273875  # kelvin of pressure over density 1 in the deck's units
LAMBDA = 9.389803e-22  # erg cm^3/s of a rate of 1


def shock(speed, sound2):
    """Density, velocity and pressure behind a shock that gas of density 1 comes to."""
    mach2 = speed**2 / sound2
    density = (GAMMA + 1) * mach2 / ((GAMMA - 1) * mach2 + 2)
    return np.array([density, speed / density, sound2 / GAMMA + speed**2 * (1 - 1 / density)])


class Flow:
    """The steady flow, at equal steps of the logarithm of the velocity `u`, and at their middles; `x` is the distance from the shock."""

    def __init__(self, exponent, mach):
        self.exponent, self.sound2 = exponent, mach**-2.0
        self.cold = self.sound2 / GAMMA
        density, hot, pressure = shock(1, self.sound2)
        self.temperature = pressure / density
        self.momentum = self.cold + 1
        self.last = (self.momentum - np.sqrt(self.momentum**2 - 4 * self.cold)) / 2
        log = np.linspace(np.log(hot), np.log(self.last), 2 * STEPS + 1)
        self.u, self.step = np.exp(log), log[2] - log[0]
        self.rate = 1.0
        slope = self.u / self.slope(self.u)
        simpson = self.step / 6 * (slope[:-2:2] + 4 * slope[1::2] + slope[2::2])
        nodes = np.concatenate([[0], np.cumsum(simpson)])
        self.x = np.empty_like(log)
        self.x[::2] = nodes
        self.x[1::2] = (nodes[:-1] + nodes[1:]) / 2 + self.step / 8 * (slope[:-2:2] - slope[2::2])
        self.rate = nodes[-1]
        self.x /= self.rate

    def pressure(self, u):
        return self.momentum - u

    def cooling(self, u):
        return self.rate * u**-2.0 * (self.pressure(u) * u / self.temperature) ** self.exponent

    def slope(self, u):
        """Of the velocity with the place."""
        return -(GAMMA - 1) * self.cooling(u) / (GAMMA * self.pressure(u) - u)

    def half(self):
        return np.interp(-self.temperature / 2, -self.pressure(self.u) * self.u, self.x)

    def at_wall(self, sigma):
        """The velocity at the wall while the shock sways by exp(sigma t); modes are where it is 0. Places are fractions of the way to the wall."""
        e = 1e-5
        change = (shock(1 + e, self.sound2) - shock(1 - e, self.sound2)) / (2 * e)
        y = np.array([-sigma * change[0], sigma - sigma * change[1], -sigma * change[2]])

        def by_log(n, y):
            u, left = self.u[n], 1 - self.x[n]
            density, p, du, cooling = 1 / u, self.pressure(u), self.slope(u), self.cooling(u)
            d_density, dp = -du / u**2, -du
            rho1, u1, p1 = y
            mass = -sigma * rho1 + sigma * left * d_density - rho1 * du - d_density * u1
            force = -density * sigma * (u1 - left * du) - (density * u1 + rho1 * u) * du
            part = (2 - self.exponent) * rho1 / density + self.exponent * p1 / p - 1
            heat = -(GAMMA - 1) * cooling * part - sigma * (p1 - left * dp) - u1 * dp - GAMMA * p1 * du
            slope = (heat - u * force) / (GAMMA * p - u)
            return np.array([(mass - density * slope) / u, slope, force - slope]) * (u / du)

        h = self.step
        for n in range(0, 2 * STEPS, 2):
            a = by_log(n, y)
            b = by_log(n + 1, y + h / 2 * a)
            c = by_log(n + 1, y + h / 2 * b)
            y = y + h / 6 * (a + 2 * b + 2 * c + by_log(n + 2, y + h * c))
        return y[1]

    def modes(self):
        sigma = np.array([0.02 + 0.3j, 0.05 + 0.9j, 0.05 + 1.55j])
        for _ in range(20):
            now, beside = np.split(self.at_wall(np.concatenate([sigma, sigma + 1e-5])), 2)
            change = -1e-5 * now / (beside - now)
            sigma = sigma + change * np.minimum(1, 0.1 / abs(change))
            if max(abs(change)) < 1e-8:
                break
        return sigma


def main(exponent, mach, cells=32):
    flow = Flow(exponent, mach)
    # from cold gas to the shock; the wall is at rest, the shock moves off with what piles up
    u = flow.u[:: STEPS // 150][::-1]
    x = 1 - flow.x[:: STEPS // 150][::-1]
    rows = np.array([x, 1 / u, flow.last - u, flow.pressure(u)]).T
    np.savetxt(Path(__file__).parent / "shock.csv", rows, "%.12g", ",", header="x,density,velocity,pressure", comments="")
    print(f"half the temperature {flow.half():.4f} behind the shock")
    for name, s in zip(("fundamental", "first overtone", "second overtone"), flow.modes()):
        print(f"{name}: growth {s.real:+.4f}, frequency {s.imag:.4f}, period {2 * np.pi / s.imag:.2f}")
    table = f"temperature_k=[{flow.temperature * PER_K:.8g}],lambda=[{flow.rate * LAMBDA:.8g}],exponent=[{exponent}]"
    sets = [f"constants.M={mach}", f"cooling.table={{{table}}}", f"cooling.floor_k={flow.cold * PER_K:.8g}"]
    # a cell of cold gas on the wall, and one more in place of the steepest part
    sets += [f"domain.cells=[{5 * cells // 2},8,8]", f"domain.left_edge=[{-1 / cells},0,0]", f"domain.right_edge=[{2.5 - 1 / cells},{8 / cells},{8 / cells}]"]
    for name, ahead, cold in (("density", 1, 1 / flow.last), ("velocity", flow.last - 1, 0), ("pressure", "p0", flow.pressure(flow.last))):
        sets.append(f"tables.{name}0={{file=\"shock.csv\",x=\"x\",y=\"{name}\",below=\"constant\",above=\"constant\"}}")
        key = "velocity_x" if name == "velocity" else name
        sets.append(f"initial.{key}=\"if(x < 1/{cells}, {cold}, if(x < 1, {name}0(x), {ahead}))\"")
    sets += ["initial.samples=4", f"inflow.x_upper.velocity_x=\"{flow.last - 1}\""]
    print("nestar run scenarios/radiative-shock.toml" + "".join(f" \\\n  --set '{each}'" for each in sets))


if __name__ == "__main__":
    exponent, mach, *cells = sys.argv[1:]
    main(float(exponent), float(mach), *map(int, cells))
