//! The newest copy of every record of the other members that matters here: of the workloads that rollouts of ours follow, and
//! those in which a member waits for the rest of the group.
//!
//! Boards are read one by one, so copies come late, twice and in any order. Within one ledger the later `seq` counts, and
//! for one `seq` the later revision. Of a member's ledgers only one counts: that of its newest beat, or, before any beat,
//! the first one we saw.
//!
//! Anyone who reaches a board may write there, so the bytes we keep are bounded. If honest copies exceed the bound, every
//! member keeps those of the first workloads by name: these rollouts end, and make room.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::lately::Lately;
use crate::agreement::board::{Heard, Posting};
use crate::agreement::group::{Known, Told};
use crate::records::record::Published;
use crate::records::record_codec::{decode_published, encode_published};
use kernel::id::{Member, Origin, Seq, WorkloadId};
use kernel::machine::Timestamp;

/// Bytes of one member's copies of the workloads that rollouts of ours follow: 8,000 in flight at once at 1 KiB. One copy has at
/// most `RECORD_BYTES_MAX`.
const MEMBER_BYTES_MAX: usize = 8 << 20;

/// Bytes of all members' copies of these together. The rollouts that follow them take several times as much.
const FOLLOWED_BYTES_MAX: usize = 32 << 20;

/// Bytes of copies that ask for a rollout which we have not started yet: 4,000 at 1 KiB, two minutes of waking.
const SOUGHT_BYTES_MAX: usize = 4 << 20;

/// Bytes of all copies for a command, which listens once and ends.
const LISTENED_BYTES_MAX: usize = 64 << 20;

/// How often we read everything again because there was no room for some copies.
const REREAD_EVERY: Duration = Duration::from_secs(60);

/// Bytes that a copy takes beside its text and its workload's name.
const COPY_BYTES: usize = 200;

/// The copy of one member's record of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PeerRecord {
    seq: Seq,
    revision: u64,
    /// The published text, a tenth of its size when decoded; `None` once it was removed in this state.
    text: Option<Box<str>>,
    seeks: bool,
}

/// The copies of some workloads, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shelf {
    copies: BTreeMap<WorkloadId, BTreeMap<Member, PeerRecord>>,
    bytes: BTreeMap<Member, usize>,
    all: usize,
}

/// All copies. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PeerRecords {
    followed: Shelf,
    /// Of workloads that no rollout of ours follows.
    sought: Shelf,
    /// Everything is kept there, for a command.
    listens: bool,
    ledgers: BTreeMap<Member, Origin>,
    /// The members whose ledger a beat has named.
    confirmed: BTreeSet<Member>,
    seeking: BTreeSet<WorkloadId>,
    /// There was no room for some copies since everything was last read again.
    dropped: bool,
    /// When everything was last read again.
    reread: Timestamp,
    /// What was last shown of workloads that no rollout of ours follows any more, for people.
    pub(super) lately: Lately,
    /// How many copies found no room.
    pub(super) too_many: u64,
}

impl PeerRecords {
    /// From now on every copy is kept, as far as there is room.
    pub(super) fn listen(&mut self) {
        self.listens = true;
    }

    /// Takes in what a board shows; returns whether anything changed.
    pub(super) fn hear(&mut self, heard: Heard) -> bool {
        if *self.ledgers.entry(heard.member.clone()).or_insert_with(|| heard.origin.clone()) != heard.origin {
            return false;
        }
        self.lately.hear(&heard);
        let Heard { member, workload, said, .. } = heard;
        let (seq, revision) = said.state();
        let copy = match said {
            Posting::Show(published) => {
                let Ok(text) = encode_published(&published) else { return false };
                PeerRecord { seq, revision, text: Some(text.into_boxed_str()), seeks: published.seeks() }
            }
            Posting::Forget(..) => PeerRecord { seq, revision, text: None, seeks: false },
        };
        let is_followed = self.followed.copies.contains_key(&workload);
        let shelf = if is_followed { &mut self.followed } else { &mut self.sought };
        // For the same state, a removal is newer.
        let age = |copy: &PeerRecord| (copy.seq, copy.revision, copy.text.is_none());
        let known = shelf.copies.get(&workload).and_then(|members| members.get(&member));
        // A ledger that was set back may reach a state again, with another rollout in it.
        let is_known =
            |known: &PeerRecord| age(known) > age(&copy) || (age(known) == age(&copy) && known.text == copy.text);
        if known.is_some_and(is_known) {
            return false;
        }
        let was_there = known.is_some();
        let matters = is_followed || copy.seeks || self.listens;
        if matters {
            shelf.put(&workload, member, copy);
            self.limit();
        } else {
            self.let_go(&workload, &member);
        }
        self.note_seeking(&workload);
        was_there || matters
    }

    /// A rollout of ours follows the workload. Returns whether none did before: then all its copies must be read.
    pub(super) fn follow(&mut self, workload: &WorkloadId) -> bool {
        if self.followed.copies.contains_key(workload) {
            return false;
        }
        self.followed.copies.insert(workload.clone(), BTreeMap::new());
        self.lately.leave(workload);
        for (member, copy) in self.sought.take(workload) {
            self.followed.put(workload, member, copy);
        }
        self.limit();
        true
    }

    /// No rollout of ours follows it any more; `own` is our own record of it, if there still is one.
    pub(super) fn leave(&mut self, workload: &WorkloadId, own: Option<(Member, Published)>) {
        let copies = self.followed.take(workload);
        if own.is_some() {
            let decoded = |(member, copy): (&Member, &PeerRecord)| {
                Some((member.clone(), decode_published(copy.text.as_ref()?.as_bytes()).ok()?))
            };
            self.lately.keep(workload, copies.iter().filter_map(decoded).chain(own));
        }
        for (member, copy) in copies {
            if copy.seeks || self.listens {
                self.sought.put(workload, member, copy);
            }
        }
        self.limit();
        self.note_seeking(workload);
    }

    /// From now on the records of this ledger count. Returns whether another ledger's did before: those are forgotten, and
    /// this member's records must be read from the beginning.
    pub(super) fn count(&mut self, member: &Member, origin: &Origin) -> bool {
        let before = self.ledgers.insert(member.clone(), origin.clone());
        self.confirmed.insert(member.clone());
        let switched = before.is_some_and(|before| before != *origin);
        if switched {
            self.forget(member);
        }
        switched
    }

    /// Forgets everything about members that this does not hold for.
    pub(super) fn retain(&mut self, is_ours: impl Fn(&Member) -> bool) {
        let others: Vec<Member> = self.ledgers.keys().filter(|member| !is_ours(member)).cloned().collect();
        for member in others {
            self.forget(&member);
            self.ledgers.remove(&member);
            self.confirmed.remove(&member);
        }
    }

    /// One member's record of a workload.
    pub(super) fn of(&self, workload: &WorkloadId, member: &Member) -> Option<Known> {
        let copy = self.shelves().find_map(|shelf| shelf.copies.get(workload)?.get(member))?;
        let published = decode_published(copy.text.as_ref()?.as_bytes()).ok()?;
        let (origin, current) = (self.ledgers.get(member)?.clone(), self.confirmed.contains(member));
        Some(Known { origin, current, alive: false, published, told: Told::default() })
    }

    /// The workloads for which any member, even a forgotten one, awaits the others.
    pub(super) fn seeking(&self) -> &BTreeSet<WorkloadId> {
        &self.seeking
    }

    /// Whether one of these members awaits the others for it.
    pub(super) fn is_sought_by(&self, workload: &WorkloadId, members: &BTreeSet<Member>) -> bool {
        let mut copies = self.shelves().filter_map(|shelf| shelf.copies.get(workload)).flatten();
        copies.any(|(member, copy)| copy.seeks && members.contains(member))
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listens
    }

    /// The workloads that rollouts of ours follow and that lack copies for want of room, the first ones by name. `None` if
    /// everything was read again since.
    pub(super) fn lacking(&self, members: &BTreeSet<Member>, most: usize) -> Option<Vec<WorkloadId>> {
        if !self.dropped {
            return None;
        }
        let lacks = |copies: &BTreeMap<Member, PeerRecord>| members.iter().any(|member| !copies.contains_key(member));
        let lacking = self.followed.copies.iter().filter(|(_, copies)| lacks(copies));
        Some(lacking.map(|(workload, _)| workload.clone()).take(most).collect())
    }

    /// Whether to read everything again from the beginning, now that there is room for copies that ask for a rollout of
    /// ours.
    pub(super) fn read_again(&mut self, now: Timestamp) -> bool {
        let due = self.sought.all < SOUGHT_BYTES_MAX / 2 && now.since(self.reread) >= REREAD_EVERY;
        if due {
            self.reread = now;
            self.dropped = false;
        }
        due
    }

    /// The bytes that are kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.shelves().map(|shelf| shelf.all).sum()
    }

    fn shelves(&self) -> impl Iterator<Item = &Shelf> {
        [&self.followed, &self.sought].into_iter()
    }

    fn forget(&mut self, member: &Member) {
        self.lately.forget(member);
        let of_it = |shelf: &Shelf| -> Vec<WorkloadId> {
            shelf.copies.iter().filter(|(_, copies)| copies.contains_key(member)).map(|(id, _)| id.clone()).collect()
        };
        let all: BTreeSet<WorkloadId> = self.shelves().flat_map(of_it).collect();
        for workload in all {
            self.followed.remove(&workload, member);
            self.let_go(&workload, member);
            self.note_seeking(&workload);
        }
    }

    /// Drops a copy of a workload that no rollout follows.
    fn let_go(&mut self, workload: &WorkloadId, member: &Member) {
        self.sought.remove(workload, member);
        if self.sought.copies.get(workload).is_some_and(BTreeMap::is_empty) {
            self.sought.copies.remove(workload);
        }
    }

    /// Drops copies beyond the bounds.
    fn limit(&mut self) {
        let mut dropped = Vec::new();
        let most = if self.listens { LISTENED_BYTES_MAX } else { SOUGHT_BYTES_MAX };
        while self.sought.all > most {
            let Some(last) = self.sought.last(None) else { break };
            self.let_go(&last.0, &last.1);
            dropped.push(last.0);
        }
        let over = self.followed.bytes.iter().find(|(_, bytes)| **bytes > MEMBER_BYTES_MAX);
        let over = over.map(|(member, _)| member.clone());
        while self.followed.all > FOLLOWED_BYTES_MAX
            || over.as_ref().is_some_and(|member| self.followed.of(member) > MEMBER_BYTES_MAX)
        {
            let Some(last) = self.followed.last(over.as_ref()) else { break };
            self.followed.remove(&last.0, &last.1);
            dropped.push(last.0);
        }
        self.dropped |= !dropped.is_empty();
        self.too_many = self.too_many.saturating_add(u64::try_from(dropped.len()).unwrap_or(u64::MAX));
        dropped.iter().for_each(|workload| self.note_seeking(workload));
    }

    fn note_seeking(&mut self, workload: &WorkloadId) {
        let copies =
            |shelf: &Shelf| shelf.copies.get(workload).is_some_and(|copies| copies.values().any(|one| one.seeks));
        let seeks = self.shelves().any(copies);
        if seeks {
            self.seeking.insert(workload.clone());
        } else {
            self.seeking.remove(workload);
        }
    }
}

impl Shelf {
    fn of(&self, member: &Member) -> usize {
        self.bytes.get(member).copied().unwrap_or_default()
    }

    fn put(&mut self, workload: &WorkloadId, member: Member, copy: PeerRecord) {
        self.remove(workload, &member);
        let bytes = bytes_of(workload, &copy);
        *self.bytes.entry(member.clone()).or_default() += bytes;
        self.all += bytes;
        self.copies.entry(workload.clone()).or_default().insert(member, copy);
    }

    /// Keeps the workload's entry, which marks it as followed.
    fn remove(&mut self, workload: &WorkloadId, member: &Member) {
        let Some(copy) = self.copies.get_mut(workload).and_then(|copies| copies.remove(member)) else { return };
        let bytes = bytes_of(workload, &copy);
        self.all = self.all.saturating_sub(bytes);
        if let Some(of) = self.bytes.get_mut(member) {
            *of = of.saturating_sub(bytes);
        }
    }

    fn take(&mut self, workload: &WorkloadId) -> BTreeMap<Member, PeerRecord> {
        let members: Vec<Member> = self.copies.get(workload).into_iter().flat_map(BTreeMap::keys).cloned().collect();
        let copies = self.copies.get(workload).cloned().unwrap_or_default();
        members.iter().for_each(|member| self.remove(workload, member));
        self.copies.remove(workload);
        copies
    }

    /// The last copy by name, of this member.
    fn last(&self, of: Option<&Member>) -> Option<(WorkloadId, Member)> {
        self.copies.iter().rev().find_map(|(workload, copies)| {
            let member = copies.keys().rev().find(|member| of.is_none_or(|of| *member == of))?;
            Some((workload.clone(), member.clone()))
        })
    }
}

fn bytes_of(workload: &WorkloadId, copy: &PeerRecord) -> usize {
    let text = copy.text.as_ref().map_or(0, |text| text.len());
    text + workload.namespace.len() + workload.name.len() + COPY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::{Change, Record};
    use crate::records::record_codec::decode;
    use kernel::id::Nonce;

    fn web() -> WorkloadId {
        WorkloadId::deployment("shop", "web")
    }

    fn heard(origin: &str, said: impl Into<Posting>) -> Heard {
        Heard { member: "eu-2".into(), workload: web(), origin: origin.into(), said: said.into() }
    }

    fn record(seq: u64, revision: u64) -> Record {
        let text = format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#);
        decode(text.as_bytes()).unwrap()
    }

    /// Records, with one workload that is followed.
    fn followed() -> PeerRecords {
        let mut copies = PeerRecords::default();
        assert!(copies.follow(&web()) && !copies.follow(&web()));
        copies
    }

    fn shown(copies: &PeerRecords) -> Option<(u64, u64)> {
        copies.of(&web(), &"eu-2".into()).map(|known| known.published.state()).map(|(seq, revision)| (seq.0, revision))
    }

    #[test]
    fn the_later_seq_counts_and_then_the_later_revision() {
        let mut copies = followed();
        for (state, expected) in [((2, 5), (2, 5)), ((2, 4), (2, 5)), ((1, 9), (2, 5)), ((3, 1), (3, 1))] {
            copies.hear(heard("a", record(state.0, state.1)));
            assert_eq!(shown(&copies), Some(expected));
        }
        assert!(!copies.hear(heard("a", record(3, 1))), "the same from another board is no news");
    }

    #[test]
    fn a_rollout_that_another_one_had_the_number_of_takes_the_place_of_its_copy() {
        let mut copies = followed();
        let nonce =
            |copies: &PeerRecords| copies.of(&web(), &"eu-2".into())?.published.record().map(|known| known.nonce);
        for number in [7, 8] {
            assert!(copies.hear(heard("a", Record { nonce: Nonce(number), ..record(3, 5) })));
            assert_eq!(nonce(&copies), Some(Nonce(number)));
        }
        assert!(!copies.hear(heard("a", Posting::Forget(Seq(3), 4))));
    }

    #[test]
    fn a_removal_that_is_late_removes_nothing_newer_and_what_was_removed_does_not_rise_again() {
        let mut copies = followed();
        copies.hear(heard("a", record(2, 1)));
        assert!(!copies.hear(heard("a", Posting::Forget(Seq(1), 9))));
        assert!(copies.hear(heard("a", Posting::Forget(Seq(2), 1))));
        assert_eq!(shown(&copies), None);
        assert!(!copies.hear(heard("a", record(2, 1))), "from a board that is behind");
        assert!(copies.hear(heard("a", record(3, 1))));
    }

    #[test]
    fn only_one_ledger_of_a_member_counts() {
        let mut copies = followed();
        copies.hear(heard("old", record(7, 1)));
        assert!(!copies.hear(heard("new", record(1, 1))), "nobody has said yet that it counts");
        assert!(copies.count(&"eu-2".into(), &"new".into()));
        assert_eq!(shown(&copies), None);
        assert!(copies.hear(heard("new", record(1, 1))));
        assert!(!copies.hear(heard("old", record(8, 1))));
        assert!(!copies.count(&"eu-2".into(), &"new".into()));
        assert_eq!(shown(&copies), Some((1, 1)));
    }

    #[test]
    fn a_workload_is_sought_while_a_record_waits_for_the_others() {
        let mut copies = followed();
        let waiting = Record { change: Change::Changed, ..record(2, 1) };
        copies.hear(heard("a", waiting));
        assert!(copies.seeking().contains(&web()));
        copies.hear(heard("a", record(3, 1)));
        assert!(copies.seeking().is_empty());
    }

    #[test]
    fn what_nobody_follows_is_kept_only_while_a_member_waits_for_us() {
        let mut copies = PeerRecords::default();
        assert!(!copies.hear(heard("a", record(2, 1))));
        assert_eq!((shown(&copies), copies.bytes()), (None, 0));
        let waiting = Record { change: Change::Changed, ..record(2, 2) };
        assert!(copies.hear(heard("a", waiting)));
        assert_eq!(shown(&copies), Some((2, 2)));
        copies.follow(&web());
        copies.hear(heard("a", record(3, 1)));
        assert_eq!(shown(&copies), Some((3, 1)));
        copies.leave(&web(), None);
        assert_eq!((shown(&copies), copies.bytes()), (None, 0));
    }

    #[test]
    fn what_is_too_much_leaves_the_first_workloads_and_comes_again_when_there_is_room() {
        let mut copies = PeerRecords::default();
        let id = |number: usize| WorkloadId::deployment("shop", format!("app-{number:05}"));
        for number in (0..400).rev() {
            copies.follow(&id(number));
            let long = Record { uid: "u".repeat(50_000), ..record(2, 1) };
            copies.hear(Heard { workload: id(number), ..heard("a", long) });
        }
        let kept = copies.bytes();
        assert!(kept <= MEMBER_BYTES_MAX && kept > MEMBER_BYTES_MAX / 2, "{kept}");
        assert!(copies.of(&id(0), &"eu-2".into()).is_some() && copies.of(&id(399), &"eu-2".into()).is_none());
        let members = BTreeSet::from(["eu-2".into()]);
        let lacking = copies.lacking(&members, 3).unwrap();
        assert!(lacking.len() == 3 && lacking[0] > id(150), "{lacking:?}");
        assert!(copies.read_again(Timestamp::default().after(REREAD_EVERY)));
        assert_eq!(copies.lacking(&members, 3), None);
        (0..400).for_each(|number| copies.leave(&id(number), None));
        assert_eq!(copies.bytes(), 0);
    }
}
