//! Looks from members that did not make the purge.

use super::*;
use crate::bounds::policy::{LooksFrom, Proof};
use proof::asked::{Answer, Answers, Body, Headers, Reply};
use proof::tally::Found;

/// `eu-1`, which has voted as the two others have.
fn follower(from: LooksFrom) -> Member {
    let mut member = after_voting(None, &[("eu-2", voted("other", "")), ("us-1", voted("third", ""))]);
    let proof = Proof { enabled: true, from, ..Proof::default() };
    let policy = Policy { proof, ..Policy::default() };
    let record = member.machine.durable().cloned();
    member.machine = Rollout::resume(Identity { grouped: true, ..identity() }, policy, Seq(0), record);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    member
}

impl Member {
    /// `eu-2` has made the purge, and says how far it is.
    fn hears(&mut self, state: PurgeState) {
        let record = Record { votes: vec![vote_of(&THREE, Some(state))], ..at("b", 2) };
        let record = Record { change: Change::Changed, closed: Seq(1), ..record };
        self.view.members.insert("eu-2".into(), known("other", record));
        self.look();
    }

    /// The edge answers all that it is asked, for so many seconds, with what was made at that instant.
    fn sees(&mut self, seconds: u64, made: Timestamp) {
        for _ in 0..seconds {
            for (of, question) in std::mem::take(&mut self.asked) {
                let age = self.now.since(made).as_secs().to_string();
                let lines = [
                    ("x-amz-cf-id", "id"),
                    ("x-amz-cf-pop", "IAD12-P1"),
                    ("x-cache", "Hit from cloudfront"),
                    ("age", &age),
                ];
                let headers = Headers::of(lines, None);
                let (path, now) = (question.page.path().as_str().to_owned(), self.now);
                let hops = vec![Answer { path, started: now, ended: now, status: 200, headers, body: Body::Unread }];
                let answers = Answers { edge: Reply { hops, failure: None }, pods: Vec::new() };
                self.step(Event::EdgeAnswered(of, question.id, Box::new(answers)));
            }
            self.pass(Duration::from_secs(1));
        }
    }

    fn seen(&self) -> Option<Found> {
        let record = self.machine.durable().unwrap();
        record.history.last().and_then(|closed| closed.seen.as_ref()).map(|seen| seen.found)
    }
}

#[test]
fn each_member_looks_where_each_is_to_and_none_but_the_executor_purges_once_more() {
    for from in [LooksFrom::Executor, LooksFrom::EveryMember] {
        let mut member = follower(from);
        member.pass(Duration::from_secs(1));
        member.hears(PurgeState::Created);
        member.pass(Duration::from_secs(10));
        member.hears(PurgeState::Completed);
        let looks: Vec<_> = member.machine.durable().unwrap().looks.values().map(|of| of.look.again_max).collect();
        assert_eq!(looks, if from == LooksFrom::EveryMember { vec![0] } else { vec![] });
        let old = member.now;
        member.sees(120, Timestamp::from_millis(0));
        assert_eq!(member.seen(), (from == LooksFrom::EveryMember).then_some(Found::Unknown), "{old:?}");
        assert_eq!((member.told(Kind::PurgeRepeated).len(), member.machine.durable().unwrap().looks.len()), (0, 0));
    }
}

#[test]
fn what_was_made_after_it_heard_of_the_purge_is_renewed_and_its_marks_name_its_own_place() {
    let mut member = follower(LooksFrom::EveryMember);
    member.pass(Duration::from_secs(1));
    member.hears(PurgeState::Created);
    let created = member.now;
    member.pass(Duration::from_secs(10));
    member.hears(PurgeState::Completed);
    member.sees(120, created.after(Duration::from_secs(4)));
    assert_eq!(member.seen(), Some(Found::Renewed));
    let [told] = member.told(Kind::EdgeRenewed)[..] else { panic!("{:?}", member.told) };
    assert!(told.contains("at IAD12-P1"), "{told}");
}
