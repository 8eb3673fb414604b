// Moves velocity and Monte Carlo tracers, as in the host code. Include after gather.cuh.

namespace particles {

namespace tracers = ::nestar_kernels::particles::tracers;
namespace random = ::nestar_device::random;
typedef ::nestar_kernels::particles::field_kernels::AdvectParameters<REAL> AdvectParameters;
namespace field_kernels = ::nestar_kernels::particles::field_kernels;
typedef field_kernels::JumpParameters<REAL> JumpParameters;
// Width in cells of the cloud that interpolates velocities.
constexpr int WIDE = 2;

// Converts gathered gas to velocities.
struct Velocities {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) block[axis * BLOCK + cell] = u[1 + axis] / u[0];
  }
};

// Interpolates the gas velocity in space and between the states before and after.
RS_FN void flow(const AdvectParameters& p, const REAL* block, const u64* offset, const int* step, double weight, REAL* v) {
  gather_cloud<AROUND, WIDE>(block, offset, step, false, v);
  if (!p.both) return;
  REAL after[3];
  gather_cloud<AROUND, WIDE>(block + 3 * BLOCK, offset, step, false, after);
  RS_UNROLL for (int axis = 0; axis < 3; ++axis)
    v[axis] = ::nestar_kernels::mesh::prolong::between<REAL>(v[axis], after[axis], (REAL)weight);
}

// Returns the gas density in a cell of a row.
RS_FN double density(const JumpParameters& p, int row, const int* at) {
  return (double)mesh::row_of((const REAL*)p.gas, row)[at[0] + mesh::PATCH * (at[1] + mesh::PATCH * at[2])];
}

// Returns the probabilities that a tracer in a cell leaves through each face.
RS_FN rs::arr<double, 6> jump_probabilities(const JumpParameters& p, int row, const int* at) {
  constexpr int FACES = 9 * mesh::FACE;
  const REAL* mass = p.mass + (i64)row * (3 * FACES);
  rs::arr<double, 6> through;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const int sides[3] = {axis == 0 ? 9 : 8, axis == 1 ? 9 : 8, 1};
    const int lower = at[0] + sides[0] * (at[1] + sides[1] * at[2]);
    const int upper = lower + (axis == 0 ? 1 : axis == 1 ? 8 : 64);
    through.d[2 * axis] = (double)mass[axis * FACES + lower] * p.rates[axis];
    through.d[2 * axis + 1] = (double)mass[axis * FACES + upper] * p.rates[axis];
  }
  return tracers::jump_probabilities(density(p, row, at), through);
}

// Draws the jump of a tracer, and a new position in its cell.
RS_FN void draw_jump(const JumpParameters& p, const PageView& of, i64 n, int row) {
  const u64 id = of.id(n);
  const auto within = random::of_id(p.stream, id, p.number + 1);
  int at[3];
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const u64 offset = widen(of.offset(axis, n));
    at[axis] = (int)(offset >> 61);
    of.offset(axis, n) = narrow(tracers::random_in_cell(offset, within.d[axis], within.d[3]));
    of.number(VELOCITY + axis, n) = REAL(0);
  }
  const auto drawn = random::uniforms<double>(random::of_id(p.stream, id, p.number));
  const int face = tracers::draw_face(jump_probabilities(p, row, at), drawn.d[0]);
  if (face == 6) return;
  const double speed = p.speeds[face >> 1];
  of.number(VELOCITY + (face >> 1), n) = (REAL)(face & 1 ? speed : -speed);
}

// Assigns a tracer in a new patch to one of the eight cells that replace its coarse cell.
RS_FN void assign_child(const JumpParameters& p, const PageView& of, i64 n, int row) {
  u64 offset[3];
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) offset[axis] = widen(of.offset(axis, n));
  rs::arr<double, 8> masses;
  for (int child = 0; child < 8; ++child) {
    int at[3];
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) at[axis] = 2 * (int)(offset[axis] >> 62) + (child >> axis & 1);
    masses.d[child] = density(p, row, at);
  }
  const auto drawn = random::uniforms<double>(random::of_id(p.stream, of.id(n), p.number));
  const int child = tracers::draw_child(masses, drawn.d[0]);
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) of.offset(axis, n) = narrow(tracers::in_half(offset[axis], (unsigned)(child >> axis & 1)));
}

// Stops a tracer, unless it enters a finer neighbour patch.
RS_FN void stop(const JumpParameters& p, const PageView& of, i64 n, int row) {
  const int* near = around(p.from.tables, row);
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const bool down = of.number(VELOCITY + axis, n) < REAL(0);
    const int beside = near[direction_along(axis, down ? -1 : 1)];
    const bool is_last = (int)(widen(of.offset(axis, n)) >> 61) == (down ? 0 : mesh::PATCH - 1);
    if (!is_last || beside < 0 || is_leaf(p.from.tables, beside)) of.number(VELOCITY + axis, n) = REAL(0);
  }
}

}  // namespace particles

// Sets the velocities of tracers to their mean over the step.
KERNEL_BOUNDS(particles_advect, particles::AdvectParameters, 256, 2) {
  using namespace particles;
  const Chunk chunk = particles::chunk(p.from);
  REAL* block = p.blocks ? p.blocks + launch::block() * p.values : launch::shared<REAL>();
  mesh::gather<AROUND>(block, p.before, chunk.row, Velocities());
  if (p.both) mesh::gather<AROUND>(block + 3 * BLOCK, p.after, chunk.row, Velocities());
  const PageView of = page_view(p.from.page_array);
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    u64 offset[3], there[3];
    int step[3] = {0, 0, 0};
    REAL first[3], second[3];
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) offset[axis] = widen(of.offset(axis, n));
    flow(p, block, offset, step, p.weights[0], first);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      const auto to = motion::moved(offset[axis], tracers::cut_to_cell<REAL>(first[axis], (REAL)p.rate[axis]), 64);
      there[axis] = to._0;
      step[axis] = to._1;
    }
    flow(p, block, there, step, p.weights[1], second);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) of.number(VELOCITY + axis, n) = REAL(0.5) * (first[axis] + second[axis]);
  }
}

// Draws the jumps of tracers, assigns them to child cells, or stops them.
KERNEL(particles_jump, particles::JumpParameters) {
  using namespace particles;
  const Chunk chunk = particles::chunk(p.from);
  const PageView of = page_view(p.from.page_array);
  EACH(k, chunk.count) {
    if (p.what == field_kernels::JUMP) draw_jump(p, of, chunk.first + k, chunk.row);
    else if (p.what == field_kernels::CHILD) assign_child(p, of, chunk.first + k, chunk.row);
    else stop(p, of, chunk.first + k, chunk.row);
  }
}
