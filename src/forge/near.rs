//! Names that may have been meant by one that does not exist.

/// Names that are suggested.
const SUGGESTED_MAX: usize = 3;

/// Names that are compared; one takes a microsecond.
const COMPARED_MAX: usize = 10_000;

/// Bytes of a name that is compared or said.
const NAME_BYTES_MAX: usize = 100;

/// Those that are a slip away, the nearest first, then those that contain the name.
pub(crate) fn names<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let fits = |name: &&str| name.len() <= NAME_BYTES_MAX && wanted.len() <= NAME_BYTES_MAX;
    let mut near: Vec<(usize, &str)> = known
        .take(COMPARED_MAX)
        .filter(fits)
        .filter_map(|other| {
            let distance = strsim::osa_distance(&wanted.to_lowercase(), &other.to_lowercase());
            let slip = distance <= wanted.len().min(other.len()) / 3;
            let part = other.contains(wanted) || wanted.contains(other);
            match (slip, part) {
                (true, _) => Some((distance, other)),
                (false, true) => Some((distance.saturating_add(NAME_BYTES_MAX), other)),
                (false, false) => None,
            }
        })
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, name)| name).take(SUGGESTED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_come_first_then_longer_names() {
        let known = ["main", "release", "release/2026", "feature", "Mian", "x"];
        assert_eq!(names("mian", known.into_iter()), ["Mian", "main"]);
        assert_eq!(names("releas", known.into_iter()), ["release", "release/2026"]);
        assert_eq!(names("other", known.into_iter()), Vec::<&str>::new());
    }
}
