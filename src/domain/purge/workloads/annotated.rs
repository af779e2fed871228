//! How the values of annotations are read: truths, lists and durations, each with why one cannot be used.
//!
//! Not for which annotations there are; that is [`crate::workloads::workload::Tuning`].

use std::time::Duration;

use kernel::names::distribution;
use kernel::names::group_name;
use kernel::names::host;
use kernel::names::image::NotAVersionOf;
use kernel::names::paths;
use notices::delivery::InvalidResend;
use proof::asked::NotAPage;
use proof::marker::NotAMarker;

/// Longest list in one annotation: CloudFront's own quota of paths in progress is 3,000, more than a person lists by
/// hand.
const LIST_LEN_MAX: usize = 100;

/// Longest value of `group-version`: an image's tag has at most 128 characters. Every record of the workload has it.
const GROUP_VERSION_BYTES_MAX: usize = 128;

/// The range of a useful rollout timeout. Below a second nothing can be observed twice; above a day is no wait at all.
const ROLLOUT_TIMEOUT_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 60 * 60));

/// Why the value of an annotation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Distribution(#[from] distribution::NotAnId),
    #[error(transparent)]
    Path(#[from] paths::Error),
    #[error(transparent)]
    VersionOf(#[from] NotAVersionOf),
    #[error(transparent)]
    GroupName(#[from] group_name::Invalid),
    #[error(transparent)]
    Resend(#[from] InvalidResend),
    #[error(transparent)]
    Page(#[from] NotAPage),
    #[error(transparent)]
    Marker(#[from] NotAMarker),
    /// It is empty, too long, or not what the annotation takes.
    #[error("{0}")]
    Value(String),
}

/// Reads `true` or `false`.
pub(super) fn truth(value: &str) -> Result<bool, Unusable> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(Unusable::Value(format!("{other:?} is neither \"true\" nor \"false\""))),
    }
}

/// Reads a comma list, blanks trimmed; empty items are forgiven, an empty list is not.
pub(super) fn list<T, E>(value: &str, read: impl Fn(&str) -> Result<T, E>) -> Result<Vec<T>, Unusable>
where
    Unusable: From<E>,
{
    let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
    let read: Vec<T> = items.map(&read).collect::<Result<_, _>>()?;
    match read.len() {
        0 => Err(Unusable::Value("an empty list; remove the annotation instead".to_owned())),
        items if items > LIST_LEN_MAX => Err(Unusable::Value(format!("{items} items, {LIST_LEN_MAX} at most"))),
        _ => Ok(read),
    }
}

pub(super) fn group_version(value: &str) -> Result<String, Unusable> {
    match value.trim() {
        "" => Err(Unusable::Value("empty; remove the annotation instead".to_owned())),
        long if long.len() > GROUP_VERSION_BYTES_MAX => {
            Err(Unusable::Value(format!("longer than {GROUP_VERSION_BYTES_MAX} bytes")))
        }
        version => Ok(version.to_owned()),
    }
}

pub(super) fn timeout(value: &str) -> Result<Duration, Unusable> {
    let (least, most) = ROLLOUT_TIMEOUT_RANGE;
    let no_duration = |error| Unusable::Value(format!("{value:?} is not a duration like 15m: {error}"));
    let duration = humantime::parse_duration(value).map_err(no_duration)?;
    if duration < least || duration > most {
        return Err(Unusable::Value(format!("{value:?} is outside 1s to 24h")));
    }
    Ok(duration)
}
