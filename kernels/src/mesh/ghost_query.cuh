// Input of boundary rules; in namespace `field`.
struct GhostQuery {
  const double *left, *right;
  const int* cells;
  int level;
  const int* index;
  const double* centre;
  const REAL* inner;
  double time;
  int layer;
};
