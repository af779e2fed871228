//! Short texts that people and clusters write: names, images, hosts, paths, annotations.

use kernel::id::{PipelineId, RepoId, Subject, WorkloadId};
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::image::Image;
use kernel::names::paths::{Path, PathSet};
use kernel::text::{clean, is_hidden, visible, visible_json};
use kernel::watches::horizon::Mark;
use proof::asked::{PATHS_MAX, distinct, one_path};
use proof::marker::Marker;
use purge::workloads::extent::Extent;
use purge::workloads::proving::Proving;
use purge::workloads::workload::{ANNOTATION_PREFIX, FAULT_BYTES_MAX, FAULTS_MAX, Tuning};
use serde_json::Value;

use crate::{Target, target, text};

pub const TARGETS: &[Target] = &[
    target("image", image),
    target("host", host),
    target("path", path),
    target("paths", paths),
    target("names", names),
    target("resource_version", resource_version),
    target("annotations", annotations),
    target("words", words),
];

/// Bytes of an error about one short text.
const ERROR_BYTES_MAX: usize = 1_024;

/// What is refused is refused in few words.
fn refused(error: &impl std::fmt::Display) -> bool {
    assert!(error.to_string().len() <= ERROR_BYTES_MAX, "{} bytes", error.to_string().len());
    false
}

fn image(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match Image::parse(&text) {
        Ok(image) => {
            let written = image.to_string();
            assert_eq!(Image::parse(&written).as_ref(), Ok(&image), "{written:?}");
            assert!(image.tag().is_some() || image.digest().is_some());
            assert!(!image.repository().is_empty() && !image.registry().is_empty());
            assert!(image.digest().is_none_or(|digest| digest.contains(':')), "{written:?}");
            true
        }
        Err(error) => refused(&error),
    }
}

fn host(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let mut lines = text.lines();
    let found = lines.by_ref().take(2).map(Host::parse).collect::<Vec<_>>();
    for host in &found {
        match host {
            Ok(host) => {
                assert_eq!(Host::parse(host.as_str()).as_ref(), Ok(host));
                assert_eq!(host.as_str(), host.as_str().to_lowercase());
                assert!(host.covers(host) && host.overlaps(host));
                assert_eq!(host.intersection(host).as_ref(), Some(host));
                assert!(host.is_wildcard() || host.wildcards_above().all(|above| above.is_wildcard()));
            }
            Err(error) => _ = refused(error),
        }
    }
    let [Ok(one), Ok(other)] = found.as_slice() else { return false };
    assert_eq!(one.overlaps(other), other.overlaps(one), "{one} {other}");
    assert_eq!(one.intersection(other), other.intersection(one), "{one} {other}");
    assert_eq!(one.overlaps(other), one.intersection(other).is_some(), "{one} {other}");
    assert!(!one.covers(other) || one.intersection(other).as_ref() == Some(other), "{one} {other}");
    true
}

fn path(bytes: &[u8]) -> bool {
    let text = text(bytes);
    match Path::parse(&text) {
        Ok(path) => {
            assert_eq!(Path::parse(path.as_str()).as_ref(), Ok(&path));
            assert!(path.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{path}");
            assert!(path.is_tag() || !path.as_str().contains(['<', '>', '"', '~']), "{path}");
            assert!(path.covers(&path));
            true
        }
        Err(error) => refused(&error),
    }
}

/// A set, as records and plans of other members have it.
fn paths(bytes: &[u8]) -> bool {
    let Ok(set) = serde_json::from_slice::<PathSet>(bytes) else { return false };
    let written = serde_json::to_string(&set).unwrap();
    assert_eq!(serde_json::from_str::<PathSet>(&written).unwrap(), set);
    assert!(set.len() > 0 && set.covers(&set) && set.at_most(3).covers(&set));
    assert!(set.at_most(3).len() <= 3);
    assert_eq!(set.union(&set), set);
    true
}

fn names(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let mut is_name = false;
    if let Ok(id) = WorkloadId::parse(&text) {
        assert_eq!(WorkloadId::parse(&id.to_string()), Ok(id.clone()));
        assert_eq!(id.to_string(), text, "there is one way to write an id");
        assert_eq!(Subject::parse(&text), Ok(Subject::from(id)));
        is_name = true;
    }
    if let Ok(subject) = Subject::parse(&text) {
        assert_eq!(Subject::parse(&subject.to_string()), Ok(subject));
    }
    if let Some(id) = PipelineId::parse(&text) {
        assert_eq!(PipelineId::parse(&id.to_string()), Some(id));
        is_name = true;
    }
    if let Some(id) = RepoId::parse(&text) {
        assert_eq!(RepoId::parse(&id.to_string()), Some(id));
    }
    match DistributionId::parse(&text) {
        Ok(id) => {
            assert_eq!(id.as_str(), text.trim());
            assert!(id.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric()), "{text:?}");
            true
        }
        Err(error) => refused(&error) || is_name,
    }
}

/// Two versions of an API server, compared as it compares them: by number.
fn resource_version(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let (one, other) = text.split_once('\n').unwrap_or((&text, ""));
    let (Some(one_mark), Some(other_mark)) = (Mark::parse(one), Mark::parse(other)) else { return false };
    assert_eq!(Mark::parse(&one_mark.to_string()), Some(one_mark));
    let (one, other) = (one.trim_start_matches(['+', '0']), other.trim_start_matches(['+', '0']));
    assert_eq!(one_mark.cmp(&other_mark), (one.len(), one).cmp(&(other.len(), other)));
    true
}

/// Lines of `name=value` are annotations of ours; what a line breaks is one value with a line break.
fn annotations(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let pairs: Vec<(String, String)> = text
        .split("\n\n")
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (format!("{ANNOTATION_PREFIX}{name}"), value.to_owned()))
        .collect();
    let read = || Tuning::read(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let tuning = read();
    assert_eq!(tuning, read());
    assert!(tuning.faults.len() <= FAULTS_MAX);
    assert!(tuning.faults.iter().all(|fault| fault.len() <= FAULT_BYTES_MAX));
    let paths = tuning.paths.as_ref().map_or(0, Extent::bytes);
    assert!(paths <= bytes.len().saturating_mul(3) + 3, "{paths} bytes of paths from {}", bytes.len());
    for host in tuning.hosts.iter().flatten() {
        assert_eq!(Host::parse(host.as_str()).as_ref(), Ok(host));
    }
    let Proving { enabled: _, paths: looked_at, marker } = &tuning.proof;
    if let Some(looked_at) = looked_at {
        assert!(
            (1..=PATHS_MAX).contains(&looked_at.len()) && distinct(looked_at.clone()) == *looked_at,
            "{looked_at:?}"
        );
        // Whatever is accepted can be asked for.
        assert!(looked_at.iter().all(|path| one_path(path.as_str()).as_ref() == Ok(path)), "{looked_at:?}");
    }
    if let Some(marker) = marker {
        assert_eq!(Marker::parse(&marker.to_string()).as_ref(), Ok(marker));
    }
    tuning.faults.is_empty()
}

/// Words of others on their way to a terminal, a log, a page.
fn words(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let shown = visible(&text);
    assert!(!shown.chars().any(is_hidden));
    assert_eq!(visible(&shown), shown, "what is visible stays as it is");
    for most in [0, 1, 2, 3, 4, 10, 160] {
        let short = clean(&text, most);
        assert!(short.len() <= most && !short.chars().any(is_hidden), "{short:?}");
        let whole = short == shown;
        let beginning = short.strip_suffix('…').unwrap_or(&short);
        assert!(whole || shown.starts_with(beginning), "{short:?} is no beginning of {shown:?}");
    }
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        let document = visible_json(&text);
        assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), value);
    }
    true
}
