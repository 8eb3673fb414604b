// A table of values in device memory.
template<class R> struct Table {
  const R* values;
  rs::i64 length;
  RS_MEMBER rs::usize len() const { return (rs::usize)length; }
  template<class I> RS_MEMBER R at(I n) const { return values[n]; }
};
