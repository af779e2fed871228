//! When a version may be purged: the agreement of all members, as a function of their records.
//!
//! ```text
//! waiting ──all Complete, one version──▶ candidate ──own fresh re-check──▶ vote ──every member's vote──▶ decided
//!    └── a member Failed, Withdrew, or moved past without voting and dropped it ──▶ dead
//! ```
//!
//! A single cluster is a group of one, and takes exactly this path. Nothing here is remembered: a member that holds the records
//! computes the same answer, in any order, at any time. Invariants GA-4 (votes), GA-6 (decided and dead exclude each other)
//! and GA-7 (the plan is a function of the votes).

mod fate;

use std::collections::{BTreeMap, BTreeSet};

pub use self::fate::{Decision, Fate, fate};

use crate::bounds::policy::Agreement;
use crate::records::record::{Brief, Outcome, Passed, Phase, Published, Record, Vote};
use crate::records::rules::Rules;
use kernel::id::{Component, Member, Origin, Seq, Vector};
use kernel::names::image::{Apart, Code};

/// The known state of one member: its ledger's origin, and its copy of the workload's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    /// The ledger it is about.
    pub origin: Origin,
    /// The member has said lately that this is its ledger. Another one may be an earlier one that a board still has copies of.
    pub current: bool,
    pub published: Published,
    /// It reported lately. Required only of a member that is left out.
    pub alive: bool,
    /// Its other known state. For people; no decision reads it.
    pub told: Told,
}

/// The state of a member beside its copy of the record, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Told {
    /// It is silent; the text states for how long.
    pub silence: Option<String>,
    /// The settings in which it differs from us, a sentence each.
    pub differs: Vec<String>,
    /// The remedy for that.
    pub cure: Option<String>,
    /// How its rollout stands, in its own words (decision 36).
    pub own: Option<String>,
}

/// One member's view of the group and of one workload in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// The hash of the configuration that must be the same in all members (decision 11), own members list included; empty
    /// while alone.
    pub config: String,
    /// Why nothing may be voted for, judged or purged now, whatever the records say: who the members are is not known, two of
    /// them have one name, a peer has a newer state of our own record than our ledger has.
    pub hold: Option<String>,
    /// The newer state of our own record that a peer has, where that is the reason.
    pub set_back: Option<(Seq, u64)>,
    /// The number of a copy of our own record that is newer than our ledger has it and proves nothing, because the group has no
    /// key. Later numbers go above it.
    pub above: Option<Seq>,
    /// Whether the workload's name in the group is its own to vote under.
    pub naming: Naming,
    /// Members that say that they follow no workloads of this kind, or of this namespace, and why, with the cure. They give no answer, and
    /// are waited for: their clusters may serve the version before.
    pub unfollowed: BTreeMap<Member, String>,
    /// All members of the group; `None` for one that has published nothing of the workload yet.
    pub members: BTreeMap<Member, Option<Known>>,
}

/// Whether what a workload is called in its group is its own (decision 55). The others know one workload of a member by a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Naming {
    #[default]
    Stands,
    /// It was, and belongs to another workload of this cluster: votes that are open end, and none is cast. In words.
    Leaves(String),
    /// Another workload of this cluster has it. In words.
    Refused(String),
}

/// A view as it is given out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberedView {
    /// Counts the views that one life of the group's actor has given out: a lower number is an older view that was overtaken.
    pub number: u64,
    pub view: View,
}

/// Where a member's newest rollout stands in the agreement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Not all members have completed one version. Each that is waited for, with the reason in words.
    Waiting(BTreeMap<Member, String>),
    /// All have. A member that sees this may vote, after a fresh re-check of its own workload (GA-4).
    Candidate(Vector),
}

/// Judges the newest rollout of `own` by the records of all members, as it sees them.
pub fn judge(view: &View, own: &Member, agreement: &Agreement) -> Verdict {
    let known = view.members.get(own).and_then(Option::as_ref).filter(|known| !is_left_out(known, agreement));
    judge_by(view, own, known.map(|known| (own, known.published.record().map(Record::code))), agreement)
}

/// The same of a rollout that `own` went past.
pub fn judge_passed(view: &View, own: &Member, passed: &Passed, agreement: &Agreement) -> Verdict {
    judge_by(view, own, Some((own, Some(passed.code()))), agreement)
}

/// The member that the others are compared with, and its version; `None` where it does not have the workload.
type Measure<'a> = (&'a Member, Option<Code<'a>>);

fn judge_by<'a>(view: &'a View, own: &'a Member, mut measure: Option<Measure<'a>>, agreement: &Agreement) -> Verdict {
    let mut waiting = BTreeMap::new();
    let mut ready = BTreeMap::new();
    for (member, known) in &view.members {
        let Some(known) = known else {
            waiting.insert(member.clone(), unpublished(view, member));
            continue;
        };
        if is_left_out(known, agreement) {
            continue;
        }
        let measure = *measure.get_or_insert((member, known.published.record().map(Record::code)));
        match standing(known, measure, &view.config, agreement) {
            Err(reason) => {
                let reason = if member == own { reason } else { with_what_is_told(view, member, known, reason) };
                waiting.insert(member.clone(), reason);
            }
            Ok(stands) => drop(ready.insert(member, stands)),
        }
    }
    for (member, (_, code)) in &ready {
        let mut others = ready.iter().filter(|(other, _)| *other != member);
        // Two of them know digests, or what their owners call the version.
        let reason = others.find_map(|(other, (_, theirs))| Some(is_at(&code.apart(theirs)?, None, other, true)));
        waiting.extend(reason.map(|reason| ((*member).clone(), reason)));
    }
    let component = |(member, (component, _)): (&Member, (Component, Code<'_>))| (member.clone(), component);
    if waiting.is_empty() {
        Verdict::Candidate(Vector(ready.into_iter().map(component).collect()))
    } else {
        Verdict::Waiting(waiting)
    }
}

/// Whether a member is left out: its cluster does not have the workload, and `group.absent` says so, or its owner has switched it
/// off there. Only while it says so itself, from its present ledger.
pub fn is_left_out(known: &Known, agreement: &Agreement) -> bool {
    let says_so = match &known.published {
        Published::Absent(_) => agreement.absent_left_out,
        Published::Record(record) => record.off && agreement.rules > Rules::SECOND,
    };
    says_so && known.current && known.alive
}

/// The reason to wait for a member that has shown nothing of the workload.
fn unpublished(view: &View, member: &Member) -> String {
    view.unfollowed.get(member).cloned().unwrap_or_else(|| "has not published the workload yet".to_owned())
}

/// The reason to wait for a member, with what else is known of it.
fn with_what_is_told(view: &View, member: &Member, known: &Known, reason: String) -> String {
    let Known { published, told, .. } = known;
    let Told { silence, differs, cure: _, own } = told;
    let mut parts = vec![match own.as_ref().filter(|_| published.is_rolling()) {
        Some(own) => format!("{reason}: {own}"),
        None => reason,
    }];
    parts.extend(view.unfollowed.get(member).map(|unfollowed| format!("it {unfollowed}")));
    parts.extend(silence.iter().map(|silence| format!("it {silence}")));
    if !differs.is_empty() {
        parts.push(format!("it has another configuration, {}", differs.join(", ")));
    }
    parts.join("; ")
}

/// The step that a person has to take before anything can be agreed on, if one is known.
pub fn cure(view: &View) -> Option<String> {
    if view.hold.is_some() {
        return Some("goes on by itself when that is mended".to_owned());
    }
    let cures: BTreeSet<&str> =
        view.members.values().flatten().filter_map(|known| known.told.cure.as_deref()).collect();
    let cures: Vec<&str> = cures.into_iter().collect();
    (!cures.is_empty()).then(|| format!("{}; then it goes on by itself", cures.join("; ")))
}

/// The member's version, where it differs from that of `other`.
fn is_at(
    Apart { one, other: theirs, is_plain, needs_owner }: &Apart,
    phase: Option<&Phase>,
    other: &Member,
    both: bool,
) -> String {
    let phase = phase.map_or_else(String::new, |phase| format!(", {}", phase.name()));
    let theirs = if *is_plain && !both { String::new() } else { format!(", and {other} at {theirs}") };
    let cure = if *needs_owner { NEEDS_OWNER } else { "" };
    format!("is at {one}{phase}{theirs}{cure}")
}

/// The remedy where only the owner can declare two versions equal.
const NEEDS_OWNER: &str =
    "; by their images these are not the same: give both one allclear.dev/group-version where they are";

/// Where a member has completed what is measured by: its newest rollout, or else one that it went past. Or why it keeps those that
/// have that version from voting.
fn standing<'a>(
    known: &'a Known,
    (other, measure): Measure<'_>,
    config: &str,
    agreement: &Agreement,
) -> Result<(Component, Code<'a>), String> {
    let record = match &known.published {
        Published::Record(record) if record.off && agreement.rules > Rules::SECOND => {
            let said = "last reported that allclear.dev/enabled switched it off, and is skipped only while it keeps \
                        reporting that";
            return Err(said.to_owned());
        }
        Published::Record(record) => record,
        Published::Absent(_) if agreement.absent_left_out => {
            let said = "last reported that it lacks the workload, and is skipped only while it keeps reporting that";
            return Err(said.to_owned());
        }
        Published::Absent(seq) => return Err(missing_workload(*seq)),
    };
    let apart = measure.and_then(|measure| record.code().apart(&measure));
    let is_newest = apart.is_none() && record.phase == Phase::Complete;
    let passed = measure.filter(|_| !is_newest).and_then(|measure| record.passed_as(&measure));
    let (component, code, phase) = match (passed, apart) {
        (Some(passed), _) => (passed.component(&known.origin), passed.code(), &Phase::Complete),
        (None, Some(apart)) => return Err(is_at(&apart, Some(&record.phase), other, false)),
        (None, None) => (record.component(&known.origin), record.code(), &record.phase),
    };
    let reason = match phase {
        _ if !known.current => "has not said yet whether its ledger is still the same".to_owned(),
        Phase::Rolling => "is still rolling out".to_owned(),
        Phase::Failed(failure) => format!("failed: {failure}"),
        Phase::Withdrawn => "has withdrawn".to_owned(),
        // Alone, there is none.
        Phase::Complete if record.config == config => return Ok((component, code)),
        Phase::Complete if record.config.is_empty() => {
            "has completed it, and has not recorded yet under which configuration of the group".to_owned()
        }
        Phase::Complete => {
            "has completed it, and its record is under another configuration of the group than ours".to_owned()
        }
    };
    Err(reason)
}

/// That a member does not have the workload, and what to do about it. Without a number its ledger has never had one of this name.
fn missing_workload(seq: Seq) -> String {
    let has =
        if seq == Seq::default() { "has never had a workload of this name" } else { "does not have the workload" };
    format!(
        "{has}: if it is called otherwise there, give it this name by allclear.dev/group-name; if it is not meant to be there, set \
         group.absent = \"ignore\" in all members"
    )
}

/// Whether any member asks for votes for `vector`: one with news of its own, one that went past such news, or one that has voted
/// for it.
pub fn is_sought(view: &View, vector: &Vector) -> bool {
    let seeks = |(member, component): (&Member, &Component)| {
        let record = view.members.get(member).and_then(Option::as_ref).and_then(|known| known.published.record());
        record.is_some_and(|record| {
            let has_voted = record.vote(vector).is_some_and(|vote| vote.closed.is_none());
            record.awaits_vote() || record.passed_at(component).is_some() || has_voted
        })
    };
    vector.0.iter().any(seeks)
}

/// A vector with this component of ours that another member has voted for, and that may still be decided. That member has seen all others
/// complete, and never takes its vote back (GA-5): where it has gone on since, to wait for it would be to wait for ever.
pub fn voted_elsewhere(view: &View, own: &Member, component: &Component, agreement: &Agreement) -> Option<Vector> {
    let others = view.members.iter().filter(|(member, _)| *member != own);
    let votes = others.filter_map(|(_, known)| known.as_ref()?.published.record()).flat_map(|record| &record.votes);
    let may_be_ours = |vector: &&Vector| {
        let is_in = |(member, known): (&Member, &Option<Known>)| {
            vector.component(member).is_some() || known.as_ref().is_some_and(|known| is_left_out(known, agreement))
        };
        vector.component(own) == Some(component)
            && view.members.iter().all(is_in)
            && matches!(fate(view, vector), Fate::Open(_))
    };
    let open = votes.filter(|vote| vote.closed.is_none() && vote.cast.config == view.config);
    open.map(|vote| &vote.vector).find(may_be_ours).cloned()
}

/// Whether any other member asks something of `own`.
pub fn others_seek(view: &View, own: &Member) -> bool {
    let mut others = view.members.iter().filter(|(member, _)| *member != own);
    others.any(|(_, known)| known.as_ref().is_some_and(|known| known.published.seeks()))
}

/// The other members that wait for `own`, by why they do: each has completed something that `own` has not, or has voted where
/// `own` has not.
pub fn waiters(view: &View, own: &Member, agreement: &Agreement) -> BTreeMap<String, BTreeSet<Member>> {
    let mut waiters: BTreeMap<String, BTreeSet<Member>> = BTreeMap::new();
    let us = view.members.get(own).and_then(Option::as_ref).filter(|us| !is_left_out(us, agreement));
    let Some(us) = us else { return waiters };
    for (member, known) in view.members.iter().filter(|(member, _)| *member != own) {
        let Some(theirs) = known.as_ref().and_then(|known| known.published.record()) else { continue };
        let lacks = |vote: &&Vote| {
            let lacks_ours = vote.closed.is_none() && us.published.vote(&vote.vector).is_none();
            lacks_ours && matches!(fate(view, &vote.vector), Fate::Open(missing) if missing.contains(own))
        };
        let why = match theirs.votes.iter().find(lacks) {
            Some(_) => Some("has not voted yet".to_owned()),
            None => {
                theirs.awaiting().and_then(|code| standing(us, (member, Some(code)), &view.config, agreement).err())
            }
        };
        if let Some(why) = why {
            waiters.entry(why).or_default().insert(member.clone());
        }
    }
    waiters
}

/// Explains a missing vote. The member's own text may be as old as its last beat.
pub fn missing_vote(view: &View, vector: &Vector, member: &Member) -> String {
    if has_voted(view, vector, member) {
        return "has voted, counts other members than this cluster, and may know of a purge that was made".to_owned();
    }
    let reason = "has not voted yet".to_owned();
    let Some(known) = view.members.get(member).and_then(Option::as_ref) else {
        return view.unfollowed.get(member).cloned().unwrap_or(reason);
    };
    let reason = match &known.told.own {
        Some(own) if !known.published.is_rolling() => format!("{reason} (last heard: {own})"),
        Some(_) | None => reason,
    };
    with_what_is_told(view, member, known, reason)
}

/// Whether a member's vote for the vector is known.
pub fn has_voted(view: &View, vector: &Vector, member: &Member) -> bool {
    view.members.get(member).and_then(Option::as_ref).is_some_and(|known| known.published.vote(vector).is_some())
}

/// Whether every other member has recorded that `vector` is closed, as far as that matters: for a dead one, those who have
/// voted. One of another ledger, or not of the group any more, has nothing to record.
pub fn all_have_closed(view: &View, vector: &Vector, dead: bool, own: &Member) -> bool {
    let has_closed = |(member, component): (&Member, &Component)| match view.members.get(member) {
        None => true,
        Some(None) => false,
        Some(Some(Known { origin, published, current, .. })) => match (published.vote(vector), published) {
            (Some(vote), _) => vote.closed.is_some(),
            (None, _) if *origin != component.origin => *current,
            (None, Published::Absent(_)) => true,
            // It has dropped its vote, which a copy from before the vote does not show.
            (None, Published::Record(record)) => {
                dead || record.last.as_ref().is_some_and(|last| has_moved_on(view, last, vector))
            }
        },
    };
    vector.0.iter().filter(|(member, _)| *member != own).all(has_closed)
}

/// True if the last voter for `last` has also voted for `vector`, or can no longer do so. If the two name different ledgers
/// of a member, or different rollouts that one ledger gave a number, the present one is the later.
pub fn has_moved_on(view: &View, last: &Brief, vector: &Vector) -> bool {
    let is_present = |member: &Member, component: &Component| {
        let known = view.members.get(member).and_then(Option::as_ref);
        known.is_some_and(|Known { origin, published, .. }| {
            let there = published.component(origin);
            *origin == component.origin && (there.seq != component.seq || there.nonce == component.nonce)
        })
    };
    let mut components = vector.0.iter();
    components.all(|(member, component)| last.reaches(member, component).unwrap_or(!is_present(member, component)))
}

/// A vector that another member has closed, with our rollout of this component in it, where our last vote names an earlier ledger of a
/// member. All have voted for what is closed, unless it is dead, so we have; and the present ledger is the later one. A copy from before
/// the ledger was lost can come after one from the present, to a life that remembers neither.
pub fn closed_since(view: &View, own: &Member, component: &Component, last: &Brief) -> Option<Vector> {
    let later = |vector: &Vector| {
        vector.component(own) == Some(component)
            && vector.0.iter().all(|(member, component)| last.reaches(member, component) != Some(false))
            && !has_moved_on(view, last, vector)
    };
    let others = view.members.iter().filter(|(member, _)| *member != own).filter_map(|(_, known)| known.as_ref());
    let votes = others.filter(|known| known.current).filter_map(|known| known.published.record());
    let closed = votes
        .flat_map(Record::all_kept)
        .filter(|vote| vote.closed.as_ref().is_some_and(|closed| *closed != Outcome::Dead));
    closed.map(|vote| &vote.vector).find(|vector| later(vector)).cloned()
}

/// A vector in brief, as its voters remember it.
pub fn brief_of(view: &View, vector: &Vector) -> Brief {
    let mut brief = Brief::of(vector);
    leave_out(view, vector, &mut brief);
    brief
}

/// Remembers in `brief` which members `vector` leaves out, and where they were.
pub fn leave_out(view: &View, vector: &Vector, brief: &mut Brief) {
    for (member, known) in view.members.iter().filter(|(member, _)| vector.component(member).is_none()) {
        if let Some(Known { origin, published, .. }) = known {
            brief.leave_out(member, &published.component(origin));
        }
    }
}

/// The view of a group with one member.
pub fn alone(member: &Member, origin: &Origin, record: Option<&Record>) -> View {
    let known = record.map(|record| Known {
        origin: origin.clone(),
        current: true,
        alive: true,
        published: record.clone().into(),
        told: Told::default(),
    });
    View { members: BTreeMap::from([(member.clone(), known)]), ..View::default() }
}
