//! Arrays in memory, one variant per element type.

use crate::DataType;

#[cfg(target_endian = "big")]
compile_error!("digests and shards are built from little-endian memory");

/// Elements of an array, or of some of its rows, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// 32-bit floating point.
    F32(Vec<f32>),
    /// 64-bit floating point.
    F64(Vec<f64>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// 8-bit unsigned integers.
    U8(Vec<u8>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
}

/// Evaluates `$body` with `$v` bound to the vector of any type.
macro_rules! each {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            Values::F32($v) => $body,
            Values::F64($v) => $body,
            Values::I32($v) => $body,
            Values::U8($v) => $body,
            Values::U32($v) => $body,
            Values::U64($v) => $body,
        }
    };
}

impl Values {
    /// Returns `length` zeros of a type.
    pub fn zeros(data_type: DataType, length: usize) -> Self {
        match data_type {
            DataType::F32 => Self::F32(vec![0.0; length]),
            DataType::F64 => Self::F64(vec![0.0; length]),
            DataType::I32 => Self::I32(vec![0; length]),
            DataType::U8 => Self::U8(vec![0; length]),
            DataType::U32 => Self::U32(vec![0; length]),
            DataType::U64 => Self::U64(vec![0; length]),
        }
    }

    /// The element type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::F32(_) => DataType::F32,
            Self::F64(_) => DataType::F64,
            Self::I32(_) => DataType::I32,
            Self::U8(_) => DataType::U8,
            Self::U32(_) => DataType::U32,
            Self::U64(_) => DataType::U64,
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements as little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        each!(self, v => bytemuck::cast_slice(v))
    }

    /// Returns the elements as writable little-endian bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        each!(self, v => bytemuck::cast_slice_mut(v))
    }

    /// Appends elements given as little-endian bytes of the same type.
    ///
    /// # Panics
    /// If the bytes are no whole number of elements.
    pub fn append_bytes(&mut self, bytes: &[u8]) {
        each!(self, v => v.append(&mut bytemuck::pod_collect_to_vec(bytes)));
    }

    /// Returns some rows of `length` elements each.
    pub(crate) fn rows(&self, length: usize, rows: &[u64]) -> Self {
        let bytes = length * self.data_type().size();
        let mut chosen = Vec::with_capacity(rows.len() * bytes);
        for &row in rows {
            chosen.extend_from_slice(&self.bytes()[row as usize * bytes..][..bytes]);
        }
        let mut values = Self::zeros(self.data_type(), 0);
        values.append_bytes(&chosen);
        values
    }

    /// Converts the elements to f64, without a copy if they are f64; exact except for integers above 2^53.
    pub fn into_f64(self) -> Vec<f64> {
        match self {
            Self::F64(v) => v,
            other => other.to_f64(),
        }
    }

    /// Returns the elements as f64; exact except for integers above 2^53.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::F64(v) => v.clone(),
            Self::I32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::U8(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::U32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::U64(v) => v.iter().map(|&x| x as f64).collect(),
        }
    }
}
