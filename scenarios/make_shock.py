"""Steady radiative shocks and their linear modes. `make_shock.py EXPONENT MACH [--cells 32]` writes the initial state shock.csv of
radiative-shock.toml to its own folder, and prints the command of the run with all settings; --cells is the number of cells per cooling length.

Gas with gamma = 5/3 and the cooling rate K rho^2 (T/T_shock)^EXPONENT flows into the shock with speed 1 in the frame of the shock. Within the
cooling length 1 it cools to its upstream temperature and settles on a wall. With --cooled 0.1 it cools to this fraction of the postshock temperature
and leaves the domain through a face with a fixed velocity; the shock is then at rest on the grid. --mode 0 --sway 0.03 adds the first mode of
linear theory with a shock displacement of 0.03.

The script also prints the distance at which the temperature has halved, and growth rate, frequency and period of the first three modes. Linear
theory is that of Chevalier & Imamura (1982, ApJ 261, 543), with the jump conditions of this Mach number and a wall instead of cold gas. Units are
the cooling length and the speed of the gas. EXPONENT 0.5 and MACH 1000 give -0.010 + 0.305 i and 0.048 + 0.889 i. Needs numpy.
"""

import argparse
from pathlib import Path

import numpy as np

GAMMA = 5 / 3
STEPS = 3000
PER_K = 140175.21947962878 / 0.19273875  # temperature in K of pressure/density = 1 in the deck's units
LAMBDA = 9.389803e-22  # erg cm^3/s of the rate 1 in the deck's units
NAMES = ("fundamental", "first overtone", "second overtone")


def shock(speed, sound2):
    """Returns postshock density, velocity and pressure of a shock in gas of density 1."""
    mach2 = speed**2 / sound2
    density = (GAMMA + 1) * mach2 / ((GAMMA - 1) * mach2 + 2)
    return np.array([density, speed / density, sound2 / GAMMA + speed**2 * (1 - 1 / density)])


class Flow:
    """The steady flow at equal steps of the logarithm of the velocity `u` and at their midpoints; `x` is the distance from the shock."""

    def __init__(self, exponent, mach, cooled=0):
        self.exponent, self.sound2 = exponent, mach**-2.0
        self.cold = self.sound2 / GAMMA
        density, hot, pressure = shock(1, self.sound2)
        self.temperature = pressure / density
        self.momentum = self.cold + 1
        foot = max(self.cold, cooled * self.temperature)
        self.last = (self.momentum - np.sqrt(self.momentum**2 - 4 * foot)) / 2
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
        """Returns du/dx."""
        return -(GAMMA - 1) * self.cooling(u) / (GAMMA * self.pressure(u) - u)

    def half(self):
        """Returns the distance from the shock at which the temperature is half its postshock value."""
        return np.interp(-self.temperature / 2, -self.pressure(self.u) * self.u, self.x)

    def by_log(self, n, y, sigma):
        """Returns the derivatives of a mode with respect to the logarithm of the velocity. Positions are fractions of the distance to the wall."""
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

    def mode(self, sigma):
        """Returns density, velocity and pressure at every second point for a shock displacement exp(sigma t), by fourth-order Runge-Kutta."""
        e = 1e-5
        change = (shock(1 + e, self.sound2) - shock(1 - e, self.sound2)) / (2 * e)
        y, h = np.array([-sigma * change[0], sigma - sigma * change[1], -sigma * change[2]]), self.step
        rows = [y]
        for n in range(0, 2 * STEPS, 2):
            a = self.by_log(n, y, sigma)
            b = self.by_log(n + 1, y + h / 2 * a, sigma)
            c = self.by_log(n + 1, y + h / 2 * b, sigma)
            y = y + h / 6 * (a + 2 * b + 2 * c + self.by_log(n + 2, y + h * c, sigma))
            rows.append(y)
        return np.array(rows)

    def modes(self):
        """Returns the complex growth rates for which the velocity perturbation at the wall is 0, by Newton iteration."""
        sigma = np.array([0.02 + 0.3j, 0.05 + 0.9j, 0.05 + 1.55j])
        for _ in range(20):
            now, beside = np.split(self.mode(np.concatenate([sigma, sigma + 1e-5]))[-1, 1], 2)
            change = -1e-5 * now / (beside - now)
            sigma = sigma + change * np.minimum(1, 0.1 / abs(change))
            if max(abs(change)) < 1e-8:
                break
        return sigma


def write(flow, drift, mode, sway):
    """Writes the flow from the wall to the shock, in a frame that moves with `drift`, plus `sway` times a mode."""
    every, file = STEPS // 300, Path(__file__).parent / "shock.csv"
    u, x = (each[::2][::every][::-1] for each in (flow.u, 1 - flow.x))
    density, velocity, pressure = sway * flow.mode(mode)[::every][::-1].real.T
    rows = np.array([x * (1 + sway), 1 / u + density, drift - u - velocity, flow.pressure(u) + pressure])
    np.savetxt(file, rows.T, "%.12g", ",", header="x,density,velocity,pressure", comments="")


def begin(flow, drift, wall, top):
    """Returns the settings of the initial state from the file, with the shock at `top` and cold gas below `wall`."""
    cold = (1 / flow.last, drift - flow.last, flow.pressure(flow.last))
    sets = ["initial.samples=4", f"inflow.x_upper.velocity_x=\"{drift - 1}\""]
    keys = {"density": "density", "velocity": "velocity_x", "pressure": "pressure"}
    for (name, key), ahead, below in zip(keys.items(), (1, drift - 1, "p0"), cold):
        sets.append(f"tables.{name}0={{file=\"shock.csv\",x=\"x\",y=\"{name}\",below=\"constant\",above=\"constant\"}}")
        sets.append(f"initial.{key}=\"if(x < {wall}, {below}, if(x < {top}, {name}0(x), {ahead}))\"")
    return sets


def box(flow, cells, cooled):
    """Returns the settings of the grid and its lower boundary."""
    if not cooled:  # one cell of cold gas on the wall, and another that replaces the steepest part
        low, high, wide = -1 / cells, 2.5 - 1 / cells, 8 / cells
        sets = [f"domain.cells=[{5 * cells // 2},8,8]", f"domain.left_edge=[{low},0,0]"]
        return sets + [f"domain.right_edge=[{high},{wide},{wide}]"]
    # inflow gas of high inertia keeps its velocity; wide cells along y and z do not limit the step
    heavy = (("density", 1e6 / flow.last), ("velocity_x", -flow.last), ("pressure", flow.pressure(flow.last)))
    sets = [f"domain.cells=[{3 * cells // 2},8,8]", "domain.right_edge=[1.5,8,8]", "domain.boundary.x=[\"inflow\",\"inflow\"]"]
    return sets + [f"inflow.x_lower.{key}=\"{value}\"" for key, value in heavy]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("exponent", type=float)
    parser.add_argument("mach", type=float)
    for name, default in (("cells", 32), ("cooled", 0.0), ("mode", 0), ("sway", 0.0)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    a = parser.parse_args()
    flow = Flow(a.exponent, a.mach, a.cooled)
    modes = flow.modes()
    print(f"distance from the shock to half the postshock temperature: {flow.half():.4f}")
    for name, s in zip(NAMES, modes):
        print(f"{name}: growth {s.real:+.4f}, frequency {s.imag:.4f}, period {2 * np.pi / s.imag:.2f}")
    # with a wall at rest, the shock moves away from it as cold gas accumulates
    drift, wall = (0, 0) if a.cooled else (flow.last, 1 / a.cells)
    write(flow, drift, modes[a.mode], a.sway)
    table = f"temperature_k=[{flow.temperature * PER_K:.8g}],lambda=[{flow.rate * LAMBDA:.8g}],exponent=[{a.exponent}]"
    sets = [f"constants.M={a.mach}", f"cooling.table={{{table}}}", f"cooling.floor_k={flow.cold * PER_K:.8g}"]
    sets += box(flow, a.cells, a.cooled) + begin(flow, drift, wall, 1 + a.sway)
    print("nestar run scenarios/radiative-shock.toml" + "".join(f" \\\n  --set '{each}'" for each in sets))


if __name__ == "__main__":
    main()
