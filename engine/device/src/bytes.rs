//! Formats numbers of bytes.

/// Formats a number of bytes with a binary unit.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if bytes == u64::MAX {
        // A saturated sum.
        "more than 15 EiB".into()
    } else if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_formatted_with_a_suitable_unit() {
        assert_eq!(super::format_bytes(1023), "1023 B");
        assert_eq!(super::format_bytes(40 << 10), "40.0 KiB");
        assert_eq!(super::format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(super::format_bytes(5 << 50), "5.0 PiB");
        assert_eq!(super::format_bytes(u64::MAX), "more than 15 EiB");
    }
}
