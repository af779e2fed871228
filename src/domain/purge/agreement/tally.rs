//! How the members of the group stand towards one workload, in words: each one's phase and vote, who is waited for and why,
//! and who makes the purges.
//!
//! For people only. It asks `group`, as the rollouts do, so what is shown cannot differ from what is decided.

mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agreement::group::{self, Decision, Fate, Known, Verdict, View};
use crate::agreement::roster::listed;
use crate::bounds::policy::Agreement;
use crate::records::record::{Published, Purge, PurgeState};
use kernel::id::{Member, Vector, WorkloadId, rank};
use kernel::names::image::brief;
use kernel::text::duration;

/// How the members stand towards one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub workload: WorkloadId,
    /// Its name in the group, where that is not its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// How the newest rollout is, in one sentence.
    pub state: String,
    /// How each older rollout is whose votes are open still, with its number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<String>,
    /// The members that wait for this cluster, since when, and for which step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// The step that a person has to take before it goes on; `None` if it goes on by itself.
    pub next: Option<String>,
    /// Each member, ourselves included.
    pub members: Vec<Ballot>,
    /// The purges of what was decided, as far as any member has recorded them.
    pub purges: Vec<Executed>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ballot {
    pub member: String,
    /// It is this one.
    pub is_self: bool,
    /// The number of its newest rollout; `None` while nothing of it is known.
    pub seq: Option<u64>,
    /// `rolling`, `complete`, `failed`, `withdrawn`, `off`, `absent` or `unknown`.
    pub phase: String,
    /// Its version, in brief.
    pub version: String,
    /// It has voted for what is being agreed on.
    pub voted: bool,
    /// Why the others wait for it; `None` if they do not.
    pub awaited: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Executed {
    pub distribution: String,
    /// The members that make it, by rank. Each takes over when those before it do not.
    pub executors: Vec<String>,
    /// CloudFront's id, once any member has recorded it.
    pub invalidation: Option<String>,
    /// How far it is: `queued`, `in progress`, …
    pub state: String,
}

impl Tally {
    /// The members that a complete rollout of ours waits for, and the next step; one record alone cannot know.
    pub fn awaits(&self) -> Option<(String, String)> {
        if let Some(blocks) = &self.blocks {
            return Some((blocks.clone(), UNBLOCKED_BY.to_owned()));
        }
        let others = self.members.iter().any(|ballot| ballot.awaited.is_some() && !ballot.is_self);
        let next =
            || self.next.clone().unwrap_or_else(|| "goes on when all have completed one version, and voted".to_owned());
        (others || self.next.is_some()).then(|| (self.state.clone(), next()))
    }
}

/// The next step if others wait for this cluster and it waits for no member.
pub(crate) const UNBLOCKED_BY: &str = "they go on when all have completed one version, and this cluster has voted";

/// The members that wait for this cluster and why, if it waits for no member itself: `eu-1 and us-1 wait for this cluster,
/// since it is at web: 1, complete`.
pub fn blocks(view: &View, own: &Member, agreement: &Agreement) -> Option<String> {
    let known = view.members.get(own).and_then(Option::as_ref);
    if view.hold.is_some() || known.is_some_and(|known| known.published.seeks()) {
        return None;
    }
    let waiters = group::waiters(view, own, agreement);
    let said = waiters.iter().map(|(why, members)| {
        let wait = if members.len() == 1 { "waits" } else { "wait" };
        format!("{} {wait} for this cluster, since it {why}", in_a_row(members))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// `a`, `a and b`, `a, b and c`.
fn in_a_row(members: &BTreeSet<Member>) -> String {
    let (last, others) = match members.iter().next_back() {
        Some(last) => (last, members.iter().filter(|member| *member != last).cloned().collect::<BTreeSet<_>>()),
        None => return String::new(),
    };
    if others.is_empty() { last.to_string() } else { format!("{} and {last}", listed(&others)) }
}

/// By whose record the others are measured: our own, but where it has no news that of the first that has.
fn measure<'a>(view: &'a View, own: &'a Member) -> &'a Member {
    let seeks = |member: &Member| {
        view.members.get(member).and_then(Option::as_ref).is_some_and(|known| known.published.seeks())
    };
    if seeks(own) { own } else { view.members.keys().find(|member| seeks(member)).unwrap_or(own) }
}

/// The tally of `workload` as `own` sees it.
pub fn tally(workload: &WorkloadId, view: &View, own: &Member, agreement: &Agreement) -> Tally {
    let vector = story::newest(view, own);
    let fate = vector.map(|vector| group::fate(view, vector));
    let verdict = group::judge(view, measure(view, own), agreement);
    // A record at rest waits for no member, whatever its version elsewhere.
    let under_way = |known: &Known| known.published.seeks() || known.published.is_rolling();
    let is_at_rest = !view.members.values().flatten().any(under_way);
    // While the group is held up nothing is judged, so no member is said to keep the others from anything.
    let awaited = if is_at_rest || view.hold.is_some() {
        BTreeMap::new()
    } else {
        awaited(view, vector, fate.as_ref(), &verdict)
    };
    let ballot = |(member, known): (&Member, &Option<Known>)| {
        let published = known.as_ref().map(|known| &known.published);
        Ballot {
            member: member.to_string(),
            is_self: member == own,
            seq: published.map(|published| published.seq().0),
            phase: published.map_or("unknown", Published::phase).to_owned(),
            version: published.and_then(Published::version).map_or_else(String::new, brief),
            voted: vector.is_some_and(|vector| published.is_some_and(|published| published.vote(vector).is_some())),
            awaited: awaited.get(member).cloned(),
        }
    };
    let state = match is_at_rest && view.hold.is_none() {
        true => at_rest(&verdict),
        false => state(view, vector, fate.as_ref(), &verdict),
    };
    let ours = view.members.get(own).and_then(Option::as_ref).and_then(|known| known.published.record());
    Tally {
        workload: workload.clone(),
        known_as: ours.and_then(|ours| ours.group_name.as_ref()).map(|alias| alias.name.display_name()),
        state: format!("{state}{}", left_out(view, vector, agreement)),
        older: story::older(view, own, vector, agreement),
        next: if is_at_rest { None } else { group::cure(view) },
        blocks: blocks(view, own, agreement),
        members: view.members.iter().map(ballot).collect(),
        purges: vector.map_or_else(Vec::new, |vector| purges(view, vector)),
    }
}

fn awaited(view: &View, vector: Option<&Vector>, fate: Option<&Fate>, verdict: &Verdict) -> BTreeMap<Member, String> {
    match (fate, verdict) {
        (Some(Fate::Open(missing)), _) => {
            let said = |member| vector.map(|vector| group::missing_vote(view, vector, member)).unwrap_or_default();
            missing.iter().map(|member| (member.clone(), said(member))).collect()
        }
        (Some(Fate::Decided(_) | Fate::Dead(..) | Fate::Mixed), _) | (None, Verdict::Candidate(_)) => BTreeMap::new(),
        (None, Verdict::Waiting(waiting)) => waiting.clone(),
    }
}

fn state(view: &View, vector: Option<&Vector>, fate: Option<&Fate>, verdict: &Verdict) -> String {
    if let Some(hold) = &view.hold {
        let is_made = vector.is_some_and(|vector| !purges(view, vector).is_empty());
        let decided = if is_made { "decided by all: what was made is followed; " } else { "" };
        return format!("{decided}nothing is agreed on: {hold}");
    }
    match (vector.zip(fate), verdict) {
        (Some((_, Fate::Decided(Decision::Execute(_)))), _) => "decided by all: it is purged".to_owned(),
        (Some((vector, fate)), _) => story::stands(view, vector, fate),
        (None, Verdict::Candidate(vector)) if group::is_sought(view, vector) => {
            "complete in all members; each looks once more, and votes".to_owned()
        }
        (None, Verdict::Candidate(_)) => "at rest: all members have the same version".to_owned(),
        (None, Verdict::Waiting(waiting)) => {
            let names: BTreeSet<Member> = waiting.keys().cloned().collect();
            format!("waiting for {}", listed(&names))
        }
    }
}

/// The members left out, and why. Of a vector that was voted for before that, they are a part.
fn left_out(view: &View, vector: Option<&Vector>, agreement: &Agreement) -> String {
    let is_part = |member: &Member| vector.is_some_and(|vector| vector.component(member).is_some());
    let others = view.members.iter().filter(|(member, _)| !is_part(member));
    let said = others.filter_map(|(member, known)| {
        let known = known.as_ref().filter(|known| group::is_left_out(known, agreement))?;
        let why = match known.published {
            Published::Record(_) => "allclear.dev/enabled is \"false\" there",
            Published::Absent(_) => "it does not have the workload, and group.absent is \"ignore\"",
        };
        Some(format!("; {member} is left out: {why}"))
    });
    said.collect()
}

/// The words for a workload without a rollout in any cluster, and without a member that waits.
fn at_rest(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Candidate(_) => "at rest: all members have the same version".to_owned(),
        Verdict::Waiting(_) => "at rest: no member waits for a purge of it".to_owned(),
    }
}

fn purges(view: &View, vector: &Vector) -> Vec<Executed> {
    let mut found: BTreeMap<String, Executed> = BTreeMap::new();
    let votes = view.members.values().flatten().filter_map(|known| known.published.vote(vector));
    for (distribution, purge) in votes.flat_map(|vote| &vote.purges.listed) {
        let name = distribution.to_string();
        let seen = found.entry(name.clone()).or_insert_with(|| Executed {
            distribution: name.clone(),
            executors: by_rank(&name, vector),
            invalidation: None,
            state: "queued".to_owned(),
        });
        // A member that knows CloudFront's id knows more than one that does not.
        if purge.invalidation.is_some() || !purge.is_wanted() || !purge.refused.is_empty() {
            seen.invalidation = purge.invalidation.as_ref().map(ToString::to_string).or(seen.invalidation.take());
            if seen.state != "completed" {
                seen.state = purge_state(purge);
            }
        }
    }
    found.into_values().collect()
}

fn purge_state(purge: &Purge) -> String {
    match &purge.state {
        PurgeState::Wanted if !purge.refused.is_empty() => format!("not made yet: {}", purge.refused),
        PurgeState::Wanted => "queued".to_owned(),
        PurgeState::Owed(why) => format!("owed: {why}"),
        PurgeState::Created => "in progress".to_owned(),
        PurgeState::Covered(_) => "covered by a later one".to_owned(),
        PurgeState::Completed => "completed".to_owned(),
        PurgeState::DoneByOther => "made by another".to_owned(),
        PurgeState::Impossible(why) => format!("impossible: {why}"),
        PurgeState::Beyond(why) => format!("left out: {why}"),
    }
}

/// The members in the order in which they make the purge of `distribution`.
fn by_rank(distribution: &str, vector: &Vector) -> Vec<String> {
    let mut ranked: Vec<(u32, String)> =
        vector.0.keys().map(|member| (rank(distribution, member, vector.0.keys()), member.to_string())).collect();
    ranked.sort();
    ranked.into_iter().map(|(_, member)| member).collect()
}

/// How long ago something was, the way people say it.
pub fn ago(seconds: u64) -> String {
    if seconds == 0 { "just now".to_owned() } else { format!("{} ago", duration(Duration::from_secs(seconds))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::group::{Known, Told};
    use crate::records::record::{Change, Phase, Record, Vote};
    use kernel::id::{Component, Origin, Seq};
    use kernel::names::image::{Container, Image, Version};

    fn version(tag: &str) -> Version {
        [(Container::Main("web".into()), Image::parse(&format!("shop/web:{tag}")).unwrap())].into_iter().collect()
    }

    pub(super) fn known(member: &str, seq: u64, tag: &str, phase: Phase) -> (Member, Option<Known>) {
        let record = Record {
            uid: "u".to_owned(),
            version: version(tag),
            change: Change::Changed,
            phase,
            closed: Seq(seq - 1),
            ..Record::first(Seq(seq))
        };
        let told = Told { own: Some("2 of 5 pods ready".to_owned()), ..Told::default() };
        (
            member.into(),
            Some(Known { origin: origin(member), current: true, alive: true, published: record.into(), told }),
        )
    }

    pub(super) fn origin(member: &str) -> Origin {
        Origin(format!("o-{member}"))
    }

    pub(super) fn view(members: impl IntoIterator<Item = (Member, Option<Known>)>) -> View {
        View { members: members.into_iter().collect(), ..View::default() }
    }

    pub(super) fn vote(view: &mut View, member: &str, vector: &Vector) {
        let record = record_of(view.members.get_mut(&member.into()).unwrap());
        let json = serde_json::json!({"v": vector, "s": record.seq, "i": record.version, "c": "changed",
            "h": ["www.example.com"], "p": ["/*"]});
        record.votes.push(serde_json::from_value::<Vote>(json).unwrap());
    }

    pub(super) fn record_of(known: &mut Option<Known>) -> &mut Record {
        let Published::Record(record) = &mut known.as_mut().unwrap().published else { panic!("a record") };
        record
    }

    pub(super) fn of(view: &View) -> Tally {
        tally(&WorkloadId::deployment("shop", "web"), view, &"a".into(), &Agreement::default())
    }

    #[test]
    fn who_is_waited_for_is_named_with_the_reason_in_the_members_own_words() {
        let seen =
            of(&view([known("a", 2, "2", Phase::Complete), known("b", 2, "2", Phase::Rolling), ("c".into(), None)]));
        assert_eq!(seen.state, "waiting for b, c");
        let words: Vec<_> = seen.members.iter().map(|ballot| ballot.awaited.as_deref()).collect();
        assert_eq!(
            words,
            [None, Some("is still rolling out: 2 of 5 pods ready"), Some("has not published the workload yet")]
        );
        assert_eq!((seen.members[0].is_self, seen.members[2].phase.as_str()), (true, "unknown"));
    }

    #[test]
    fn a_cluster_that_others_wait_for_knows_it_and_why_and_is_no_good_news_on_their_pages() {
        let done = |member: &str, tag| known(member, 2, tag, Phase::Complete);
        let (name, mut at_rest) = known("a", 7, "1", Phase::Complete);
        record_of(&mut at_rest).closed = Seq(7);
        let view = view([(name, at_rest), done("b", "2"), done("c", "2"), ("d".into(), None)]);
        let seen = of(&view);
        assert_eq!(seen.blocks.as_deref(), Some("b and c wait for this cluster, since it is at web: 1, complete"));
        assert_eq!(seen.state, "waiting for a, d", "as those say that wait");
        let own = &seen.members[0];
        assert_eq!((own.awaited.as_deref(), own.phase.as_str()), (Some("is at web: 1, complete"), "complete"));
        assert_eq!(seen.awaits().unwrap().0, seen.blocks.unwrap(), "that is how it stands here");
        let theirs = tally(&WorkloadId::deployment("shop", "web"), &view, &"b".into(), &Agreement::default());
        assert_eq!(theirs.blocks, None, "b is not the one");
        assert_eq!(
            theirs.members,
            seen.members.iter().map(|seen| Ballot { is_self: seen.member == "b", ..seen.clone() }).collect::<Vec<_>>()
        );

        let timed_out = Phase::Failed(crate::records::record::Failure::TimedOut);
        let failed = self::view([known("a", 2, "2", timed_out), done("b", "2"), known("c", 2, "2", Phase::Rolling)]);
        let blocks = of(&failed).blocks;
        assert_eq!(blocks.as_deref(), Some("b waits for this cluster, since it failed: the rollout timeout passed"));
    }

    /// Containers and their images.
    type Images<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn two_members_that_do_not_run_the_same_are_never_said_to_be_at_the_same() {
        let at = |member: &str, images: Images<'_>| {
            let (name, mut known) = known(member, 2, "1", Phase::Complete);
            let image = |(name, text): &(&str, &str)| (Container::Main((*name).into()), Image::parse(text).unwrap());
            record_of(&mut known).version = images.iter().map(image).collect();
            (name, known)
        };
        let (a, b) = (format!("sha256:{}", "a".repeat(64)), format!("sha256:{}b", "a".repeat(63)));
        let many = |last: &'static str| {
            ["c1", "c2", "c3", "c4", "c5", "c6"].map(|name| (name, if name == "c6" { last } else { "app:4" }))
        };
        let pairs: [(Images<'_>, Images<'_>); 5] = [
            (&[("app", "eu/app:4")], &[("app", "eu/web:4")]),
            (&[("app", "eu/app:4")], &[("app", &format!("eu/app@{a}"))]),
            (&[("app", &format!("eu/app:4@{a}"))], &[("app", &format!("eu/app:4@{b}"))]),
            (&[("app", "app:4")], &[("app", "app:4"), ("log", "log:1")]),
            (&many("app:4"), &many("web:4")),
        ];
        for (ours, theirs) in pairs {
            let seen = of(&view([at("a", ours), at("b", theirs)]));
            let words = seen.members[1].awaited.clone().expect("it is waited for");
            let (theirs, ours) = words.split_once(", complete, and a at ").unwrap_or_else(|| panic!("{words}"));
            let ours = ours.split_once("; ").expect("what to do").0;
            assert_ne!(theirs.strip_prefix("is at ").unwrap(), ours);
            assert!(words.contains("allclear.dev/group-version"), "{words}");
        }
    }

    #[test]
    fn votes_and_the_purge_that_follows_are_shown_with_who_makes_it() {
        let mut view = view([known("a", 2, "2", Phase::Complete), known("b", 7, "2", Phase::Complete)]);
        assert_eq!(of(&view).state, "complete in all members; each looks once more, and votes");
        let component = |member: &str, seq| (member.into(), Component::bare(origin(member), Seq(seq)));
        let vector = Vector([component("a", 2), component("b", 7)].into());
        vote(&mut view, "b", &vector);
        let seen = of(&view);
        assert_eq!(seen.state, "1 of 2 have voted; the votes of a are awaited");
        assert_eq!(seen.members[0].awaited.as_deref(), Some("has not voted yet (last heard: 2 of 5 pods ready)"));
        vote(&mut view, "a", &vector);
        assert_eq!(of(&view).state, "decided by all: it is purged");
        let made = Purge { state: PurgeState::Created, invalidation: Some("I1".into()), ..Purge::wanted("r".into()) };
        let record = record_of(view.members.get_mut(&"b".into()).unwrap());
        record.votes[0].purges.listed.insert("E1".parse().unwrap(), made);
        let purges = of(&view).purges;
        assert_eq!((purges[0].invalidation.as_deref(), purges[0].state.as_str()), (Some("I1"), "in progress"));
        assert_eq!(purges[0].executors.len(), 2);
        assert_eq!(rank("E1", &purges[0].executors[0].as_str().into(), vector.0.keys()), 0);
    }

    #[test]
    fn what_was_a_moment_ago_was_just_now() {
        assert_eq!([ago(0), ago(1), ago(250)], ["just now", "1s ago", "4m 10s ago"]);
    }

    #[test]
    fn a_difference_is_said_with_the_setting_and_what_to_do_about_it() {
        let (b, other) = known("b", 2, "2", Phase::Complete);
        let told = Told {
            differs: vec!["purge.paths is \"/a\" there and \"/*\" here".to_owned()],
            cure: Some("give purge.paths one value in b and in a".to_owned()),
            ..Told::default()
        };
        let mut other = Some(Known { told, ..other.unwrap() });
        record_of(&mut other).config = "other".to_owned();
        let seen = of(&view([known("a", 2, "2", Phase::Complete), (b, other)]));
        let awaited = seen.members[1].awaited.clone().unwrap();
        assert!(awaited.contains("purge.paths is \"/a\" there and \"/*\" here"), "{awaited}");
        let (state, next) = seen.awaits().unwrap();
        assert_eq!(state, "waiting for b");
        assert_eq!(next, "give purge.paths one value in b and in a; then it goes on by itself");
    }

    #[test]
    fn nobody_is_waited_for_in_a_record_at_rest() {
        let at_rest = |member: &str, seq, tag| {
            let (name, mut known) = known(member, seq, tag, Phase::Complete);
            let record = record_of(&mut known);
            record.change = Change::Baseline;
            record.config = if member == "a" { String::new() } else { format!("as in {member}") };
            (name, known)
        };
        let seen = of(&view([at_rest("a", 1, "2"), at_rest("b", 4, "3"), ("c".into(), None)]));
        assert!(seen.members.iter().all(|ballot| ballot.awaited.is_none()), "{seen:#?}");
        assert_eq!((seen.state.as_str(), seen.awaits()), ("at rest: no member waits for a purge of it", None));
        let seen = of(&view([at_rest("a", 1, "2"), known("b", 4, "2", Phase::Rolling)]));
        assert_eq!(seen.state, "waiting for b", "somebody rolls out");
    }

    #[test]
    fn a_hold_is_said_before_anything_else() {
        let mut view = view([known("a", 2, "2", Phase::Complete)]);
        view.hold = Some("two clusters have one name".to_owned());
        assert_eq!(of(&view).state, "nothing is agreed on: two clusters have one name");
    }
}
