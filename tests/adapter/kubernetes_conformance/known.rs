//! All that a Repo's status can hold of a lock and of a report.

use kernel::id::RunSeq;
use objects::repo::held::{HeldLock, HolderKind};
use objects::repo::lock::LockId;
use objects::repo::reported::{Change, Listed, Report, Said};
use objects::status::Approval;

pub fn lock() -> HeldLock {
    HeldLock {
        seq: RunSeq(4),
        id: LockId::new("5d9a5d1e-0d3f").expect("an id"),
        who: Some("root@infra-0123456789ab-x7k2p".to_owned()),
        since_ms: Some(1_700_000_000_000),
        holder: HolderKind::Ended,
        job: Some("infra-0123456789ab".to_owned()),
        met: 2,
        ticket: "ba9876543210".to_owned(),
        asked_ms: 1_700_000_000_007,
        approval: Some(Approval { by: Some("jane".to_owned()), ticket: "t".to_owned(), at_ms: 1, overrides: true }),
        attempt: Some(3),
    }
}

pub fn report() -> Report {
    let commit = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".parse().expect("a commit's id");
    Report {
        said: Some(Said { revision: commit, hash: "0f".repeat(32), requests: 2, at_ms: 1_700_000_003_000 }),
        changes: Some(Listed {
            job: "infra-0123456789ab".to_owned(),
            listed: vec![Change { action: "create".to_owned(), address: "a.b[\"c\"]".to_owned() }],
            more: 7,
        }),
    }
}
