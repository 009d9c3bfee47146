//! How much memory the process takes.

/// The most memory the process ever had resident, bytes; 0 where the system does not tell.
#[must_use]
pub fn peak_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    parse_peak(&status).unwrap_or(0)
}

/// `VmHWM:    12345 kB` among other lines.
fn parse_peak(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::parse_peak;

    #[test]
    fn the_line_is_found_among_others() {
        assert_eq!(parse_peak("Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t    12 kB\nVmRSS:\t 1 kB\n"), Some(12 * 1024));
        assert_eq!(parse_peak("Name:\tx\n"), None);
    }
}
