//! From many times to a few numbers. Pure.

/// The value below which this part of a sorted list lies.
pub(super) fn percentile(sorted: &[u64], part: f64) -> f64 {
    // In 0..len, as part is in 0..1.
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |value| *value as f64)
}

/// The middle one; not a number if there is none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// How many times as much the one is as the other: taken in each round that both have, then the median.
pub(super) fn ratio(own: &[Option<f64>], base: &[Option<f64>]) -> f64 {
    let both = own.iter().zip(base).filter_map(|(own, base)| Some((*own)? / (*base)?));
    median(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians_are_what_they_are_called() {
        let times: Vec<u64> = (0..1000).collect();
        assert_eq!(percentile(&times, 0.5), 500.0);
        assert_eq!(percentile(&times, 0.999), 999.0);
        assert_eq!(percentile(&[7], 0.999), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([1.0, 2.0, f64::NAN]), 1.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let own = [Some(2.0), Some(20.0), None, Some(5.0)];
        let base = [Some(1.0), Some(10.0), Some(1.0), None];
        assert_eq!(ratio(&own, &base), 2.0);
    }
}
