//! Which kinds of workloads a member follows, and in which namespaces, and why it does not follow one.
//!
//! A member that does not look at a workload is waited for all the same, and the wait names this: its cluster may have the workload, and
//! serve the version before. That it is left out for want of an answer would be a purge that comes too early.

use std::collections::BTreeSet;

use super::{Roster, Stands};
use kernel::id::{Kind, Member};

/// The setting by which a kind is left out on purpose.
pub(super) const KINDS: &str = "workloads.kinds";

/// The setting that declares kinds that are not built in.
pub(super) const CUSTOM: &str = "workloads.custom";

/// How the kinds of a setting are told apart.
pub(super) const BETWEEN: &str = ", ";

impl Stands {
    /// Says that it follows these kinds.
    pub fn follow(&mut self, kinds: &BTreeSet<Kind>) {
        self.kinds = kinds.iter().map(|kind| kind.word().to_owned()).collect();
    }

    /// Whether it follows workloads of this kind.
    pub fn follows(&self, kind: Kind) -> bool {
        if self.kinds.is_empty() { kind == Kind::Deployment } else { self.kinds.contains(kind.word()) }
    }

    /// Whether it watches this namespace, as far as it says.
    pub fn watches(&self, namespace: &str) -> bool {
        self.watch.is_empty() || self.watch.contains(namespace)
    }
}

impl Roster {
    /// Why a member gives no answer about workloads of this kind, and the cure, if it says that it follows none. A member that has left no
    /// beat is silent, and no more is known of it.
    pub fn unfollowed(&self, member: &Member, kind: Kind) -> Option<String> {
        if kind.custom().is_some() {
            return self.undeclared(member, kind);
        }
        let beat = &self.peer(member).filter(|peer| !peer.beat.stands.follows(kind))?.beat;
        let kinds = beat.settings.get(KINDS);
        let is_off = kinds.is_some_and(|kinds| !kinds.split(BETWEEN).any(|word| word == kind.word()));
        let why = match () {
            () if is_off => format!("{KINDS} leaves them out there; give it one value in all members"),
            () if beat.stands.kinds.is_empty() => format!(
                "its release, {}, does not know them; upgrade allclear there, or leave the kind out of {KINDS} everywhere",
                beat.version
            ),
            () => format!(
                "it cannot list them: it has no right to (apply deploy/base/cluster-role.yaml there), or its API server fails at \
                 them; allclear check says which there, or leave the kind out of {KINDS} everywhere"
            ),
        };
        Some(format!("does not follow {}s: {why}", kind.name()))
    }

    /// Why a member cannot say whether its cluster has a workload in this namespace, and the cure, if it says that it does not watch it.
    pub fn unwatched(&self, member: &Member, namespace: &str) -> Option<String> {
        let _ = self.peer(member).filter(|peer| !peer.beat.stands.watches(namespace))?;
        Some(format!(
            "does not watch namespace {namespace}, so it cannot say what its cluster serves: add it to watch.namespaces there, or have \
             an allclear of another group.name follow it"
        ))
    }

    /// The same of a kind that is declared.
    fn undeclared(&self, member: &Member, kind: Kind) -> Option<String> {
        let beat = &self.peer(member).filter(|peer| !peer.beat.stands.follows(kind))?.beat;
        let why = if beat.settings.contains_key(CUSTOM) {
            format!(
                "its cluster does not have them, it has no right to list them, or its API server fails at them; allclear check \
                 says which there, or leave the kind out of {CUSTOM} everywhere"
            )
        } else {
            format!("{CUSTOM} does not declare them there; give it one value in all members")
        };
        Some(format!("does not follow {}: {why}", kind.word()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Heartbeat, settings};
    use super::*;
    use crate::bounds::policy::Policy;
    use crate::testing::declared;
    use kernel::machine::Timestamp;

    /// Why a member with this beat does not follow StatefulSets.
    fn why(beat: Heartbeat) -> Option<String> {
        why_of(Kind::StatefulSet, beat)
    }

    fn why_of(kind: Kind, beat: Heartbeat) -> Option<String> {
        let settings = settings(&Policy::default(), false);
        let mut roster = Roster::new("eu-1".into(), "o1".into(), BTreeSet::new(), settings, None);
        let _ =
            roster.hear(Timestamp::default(), 0, Heartbeat { member: "eu-2".into(), version: "0.1.0".into(), ..beat });
        roster.unfollowed(&"eu-2".into(), kind)
    }

    fn following(kinds: &[Kind], policy: &Policy) -> Heartbeat {
        let mut stands = Stands::default();
        stands.follow(&kinds.iter().copied().collect());
        Heartbeat { stands, settings: settings(policy, false), ..Heartbeat::default() }
    }

    #[test]
    fn whoever_does_not_follow_a_kind_has_a_cause_and_a_cure() {
        let (all, fewer) = (Policy::default(), [Kind::Deployment, Kind::DaemonSet]);
        assert_eq!(why(following(&Kind::ALL, &all)), None);
        let right = "does not follow StatefulSets: it cannot list them: it has no right to (apply deploy/base/cluster-role.yaml \
                     there), or its API server fails at them; allclear check says which there, or leave the kind out of \
                     workloads.kinds everywhere";
        assert_eq!(why(following(&fewer, &all)).unwrap(), right);
        let off = Policy { kinds: fewer.into(), ..Policy::default() };
        let setting =
            "does not follow StatefulSets: workloads.kinds leaves them out there; give it one value in all members";
        assert_eq!(why(following(&fewer, &off)).unwrap(), setting);
        let older = "does not follow StatefulSets: its release, 0.1.0, does not know them; upgrade allclear there, or leave \
                     the kind out of workloads.kinds everywhere";
        assert_eq!(why(Heartbeat::default()).unwrap(), older);
    }

    #[test]
    fn whoever_does_not_follow_a_kind_that_is_declared_has_a_cause_and_a_cure() {
        let kind = declared("roster.example.com");
        let all = Policy { kinds: Kind::ALL.into_iter().chain([kind]).collect(), ..Policy::default() };
        let why = |beat| why_of(kind, beat);
        assert_eq!(why(following(&[Kind::Deployment, kind], &all)), None);
        let cluster = why(following(&[Kind::Deployment], &all)).unwrap();
        assert!(
            cluster.starts_with("does not follow clonesets.roster.example.com: its cluster does not have them"),
            "{cluster}"
        );
        let undeclared = "does not follow clonesets.roster.example.com: workloads.custom does not declare them there; give it one \
                          value in all members";
        assert_eq!(why(following(&Kind::ALL, &Policy::default())).unwrap(), undeclared);
        assert_eq!(why(Heartbeat::default()).unwrap(), undeclared, "an older release");
    }

    #[test]
    fn a_beat_says_the_kinds_beside_what_older_programs_read_and_a_kind_of_a_later_one_does_no_harm() {
        let beat = following(&[Kind::Deployment, Kind::StatefulSet], &Policy::default());
        let text = serde_json::to_string(&beat).unwrap();
        assert!(text.contains(r#""kinds":["deployment","statefulset"]"#), "{text}");
        let later = text.replace("statefulset", "fleet");
        let later: Heartbeat = serde_json::from_str(&later).unwrap();
        assert!(later.stands.follows(Kind::Deployment) && !later.stands.follows(Kind::StatefulSet));
        let silent = serde_json::to_string(&Heartbeat::default()).unwrap();
        let older: Heartbeat = serde_json::from_str(&silent).unwrap();
        assert!(!silent.contains("kinds") && older.stands.follows(Kind::Deployment));
        assert!(beat.is_news(Some(&Heartbeat::default())) && !beat.is_news(Some(&beat)));
    }
}
