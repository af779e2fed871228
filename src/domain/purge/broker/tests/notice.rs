//! The notices on a workload that waits while the group is held up.

use super::*;
use notices::notice::Kind;

#[test]
fn a_hold_is_told_on_the_record_that_waits_and_each_time_by_a_notice_of_its_own() {
    let mut broker = grouped();
    let hold = Hold::new(Reason::Members, "too few members");
    assert_eq!(broker.notice_of_hold(at(1), 5, &id("web"), &hold), None, "nothing of it is on record");
    published(&mut broker, "web", record(7, 1));
    let (notice, uid) = broker.notice_of_hold(at(1), 5, &id("web"), &hold).unwrap();
    assert_eq!((notice.kind, notice.seq, notice.at_ms, uid.as_str()), (Kind::GroupStalled, Seq(7), 5, "u"));
    assert!(notice.about == id("web").into() && notice.message.ends_with("too few members"), "{notice:?}");
    let (later, _) = broker.notice_of_hold(at(2), 6, &id("web"), &hold).unwrap();
    assert_ne!(later.id, notice.id);
}
