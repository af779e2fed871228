//! Notices to people and programs outside: one per transition, no matter which member sends it.
//!
//! A notice is written into the record in the same step as its transition and removed once it was accepted, so a
//! crash in between sends it again, with the same id. Not for its delivery; that is `delivery` and the event sink.

mod stored;

use serde::{Deserialize, Serialize};

use kernel::id::{
    self, CommitId, Environment, InvalidationId, NoticeId, PipelineId, RepoId, Revision, Seq, Subject, WorkloadId,
    notice_id,
};
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::Path;

/// Lists the kinds once, with everything that is one word about each.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $severity:ident, $place:literal, $of:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl Kind {
            /// Every kind, in the order of a rollout's life.
            pub const ALL: [Self; [$(stringify!($kind),)*].len()] = [$(Self::$kind,)*];

            /// The name in logs, metrics, webhook subscriptions and bodies.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The `reason` of the Kubernetes Event: CamelCase, as `kubectl describe` shows it.
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            /// How much it matters to the operator (decision 37).
            pub const fn severity(self) -> Severity {
                match self { $(Self::$kind => Severity::$severity,)* }
            }

            /// The place among notices of one moment, as they follow each other in a life: the end of the version before, then
            /// the rollout, the group, the purge. In a group all notices of one purge carry the time of its last vote.
            pub const fn place(self) -> u8 {
                match self { $(Self::$kind => $place,)* }
            }

            const fn of(self) -> Of {
                match self { $(Self::$kind => Of::$of,)* }
            }
        }
    };
}

/// Whose rollout a notice names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// One of this member, or none.
    Member,
    /// The rollout as the group knows it, or one that ended before the group agreed on any.
    Group,
}

// Name; severity; place among notices of one moment; whose rollout it names.
kinds! {
    /// A change of version was seen.
    RolloutStarted = "rollout.started", Info, 1, Member;
    /// The rollout is complete in this cluster.
    RolloutCompleted = "rollout.completed", Info, 4, Member;
    /// Another version took its place before it was purged, or the one before it came back.
    RolloutSuperseded = "rollout.superseded", Info, 0, Group;
    /// The rollout missed its deadline, or the workload was deleted in the middle of it.
    RolloutFailed = "rollout.failed", Warn, 3, Group;
    /// The rollout cannot go on: something it needs from outside fails, or does not come; repeated daily.
    RolloutStuck = "rollout.stuck", Warn, 6, Member;
    /// It is complete, and nothing leads to the workload any more; something did when it was last voted for.
    SiteLost = "site.lost", Error, 5, Member;
    /// The group has waited longer than its timeout for a member.
    GroupStalled = "group.stalled", Warn, 7, Member;
    /// Some members voted and one can no longer be asked.
    GroupInDoubt = "group.in_doubt", Warn, 8, Group;
    /// CloudFront accepted the invalidation.
    PurgeStarted = "purge.started", Info, 10, Group;
    /// CloudFront reports all of its invalidations completed.
    PurgeCompleted = "purge.completed", Info, 14, Group;
    /// The invalidation cannot be made as things are.
    PurgeFailed = "purge.failed", Error, 12, Group;
    /// The invalidation cannot be made yet; we keep trying after its rollout has ended; repeated daily (decision 29).
    PurgeOwed = "purge.owed", Error, 9, Group;
    /// The invalidation takes longer than the completion timeout, or waits because its namespace has had many.
    PurgeStalled = "purge.stalled", Warn, 11, Group;
    /// The edge showed what was there before the purge, so it is purged once more, with that evidence.
    PurgeRepeated = "purge.repeated", Warn, 15, Group;
    /// Nothing that was stored before the purge is left where it was looked.
    EdgeRenewed = "edge.renewed", Info, 18, Group;
    /// What the edge answers where it was looked is what the new pods answer.
    EdgeFresh = "edge.fresh", Info, 19, Group;
    /// Nothing says whether the edge is fresh where it was looked.
    EdgeUnknown = "edge.unknown", Info, 17, Group;
    /// The edge shows what was there before the purge, and no further purge follows.
    EdgeStale = "edge.stale", Error, 16, Group;
    /// The rollout is complete and no purge follows, for the reason given.
    PurgeSkipped = "purge.skipped", Info, 13, Group;
    /// Something about the workload cannot be used, for example an annotation.
    WorkloadFaulty = "workload.faulty", Error, 2, Member;
    /// A promotion waits for a person.
    PromotionWaiting = "promotion.waiting", Info, 23, Member;
    /// A revision is promoted to an environment.
    PromotionStarted = "promotion.started", Info, 24, Member;
    /// Every target of the environment is ready at the revision.
    PromotionCompleted = "promotion.completed", Info, 26, Member;
    /// A promotion is not wanted any more.
    PromotionWithdrawn = "promotion.withdrawn", Info, 21, Member;
    /// A promotion cannot be carried out as things are, or a person closed its pull request.
    PromotionFailed = "promotion.failed", Warn, 22, Member;
    /// An environment waits for longer than its Pipeline allows.
    PromotionStalled = "promotion.stalled", Warn, 25, Member;
    /// Something about the Pipeline cannot be used.
    PipelineFaulty = "pipeline.faulty", Error, 20, Member;
    /// A run waits for a person.
    RunWaiting = "run.waiting", Info, 30, Member;
    /// A Job of a run was started.
    RunStarted = "run.started", Info, 31, Member;
    /// A commit was applied, or there was nothing to apply.
    RunCompleted = "run.completed", Info, 33, Member;
    /// A commit was planned, which is all that its Repo does.
    RunPlanned = "run.planned", Info, 36, Member;
    /// A run failed, or its Job is gone.
    RunFailed = "run.failed", Warn, 29, Member;
    /// A run waits for longer than its Repo allows.
    RunStalled = "run.stalled", Warn, 32, Member;
    /// Another commit took the place of a run before anything was applied.
    RunSuperseded = "run.superseded", Info, 28, Member;
    /// Something about the Repo cannot be used.
    RepoFaulty = "repo.faulty", Error, 27, Member;
    /// A look has found that an apply of what was applied would change something.
    RepoDrifted = "repo.drifted", Warn, 34, Member;
    /// A later look has found that it would change nothing any more.
    RepoInSync = "repo.in_sync", Info, 35, Member;
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    /// Something failed, or took too long, and may come right by itself.
    Warn,
    /// Only a person can end it.
    Error,
}

impl Kind {
    /// Whether the Event is a `Warning`: a person may have to act.
    pub fn is_warning(self) -> bool {
        self.severity() > Severity::Info
    }

    /// Whether it names the rollout as the group knows it, or one that ended before the group agreed on any.
    pub fn is_of_group(self) -> bool {
        self.of() == Of::Group
    }

    /// A program that knows only the first form of a record cannot read it.
    pub const fn is_new(self) -> bool {
        matches!(self, Self::PurgeOwed | Self::RolloutSuperseded | Self::RolloutStuck)
    }

    /// A program that knows only the first two forms of a record cannot read it.
    pub const fn is_third(self) -> bool {
        matches!(self, Self::SiteLost)
    }

    /// About what was seen at the edge. A program that knows only the first four forms of a record cannot read it.
    pub const fn is_of_edge(self) -> bool {
        matches!(self, Self::PurgeRepeated | Self::EdgeRenewed | Self::EdgeFresh | Self::EdgeUnknown | Self::EdgeStale)
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "stored::Notice", into = "stored::Notice")]
pub struct Notice {
    /// The same for every attempt and every member that might tell it.
    pub id: NoticeId,
    pub kind: Kind,
    /// When, in milliseconds since the Unix epoch, by this member's clock. For people and receivers; part of the notice, so
    /// that a repeated notice has the same bytes.
    pub at_ms: i64,
    pub about: About,
    /// The number of the rollout in this cluster, of the promotion or of the run.
    pub seq: Seq,
    /// A rollout's id: local until the group has decided, the group's from then on (decision 15). Of a Pipeline or Repo, what
    /// the notice belongs to.
    pub rollout: String,
    /// The versions in words, for example `web: 1.2.3 → 1.2.4`.
    pub change: String,
    /// One sentence for a person.
    pub message: String,
}

/// Whom a notice is about, and what it mentions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Workload(WorkloadId, Mentions),
    /// The promotion is missing where the notice is about the Pipeline itself.
    Pipeline(PipelineId, Option<PromotionFact>),
    /// The run is missing where the notice is about the Repo itself.
    Repo(RepoId, Option<RunFact>),
}

impl About {
    pub fn subject(&self) -> Subject {
        match self {
            Self::Workload(id, _) => Subject::Workload(id.clone()),
            Self::Pipeline(id, _) => Subject::Pipeline(id.clone()),
            Self::Repo(id, _) => Subject::Repo(id.clone()),
        }
    }

    /// What a notice about a workload mentions.
    pub const fn mentions(&self) -> Option<&Mentions> {
        if let Self::Workload(_, mentions) = self { Some(mentions) } else { None }
    }

    /// The promotion that a notice about a Pipeline mentions.
    pub const fn promotion(&self) -> Option<&PromotionFact> {
        if let Self::Pipeline(_, fact) = self { fact.as_ref() } else { None }
    }

    /// The run that a notice about a Repo mentions.
    pub const fn run(&self) -> Option<&RunFact> {
        if let Self::Repo(_, fact) = self { fact.as_ref() } else { None }
    }
}

/// Nothing beside the subject is mentioned.
impl From<Subject> for About {
    fn from(subject: Subject) -> Self {
        match subject {
            Subject::Workload(id) => Self::Workload(id, Mentions::default()),
            Subject::Pipeline(id) => Self::Pipeline(id, None),
            Subject::Repo(id) => Self::Repo(id, None),
        }
    }
}

impl From<WorkloadId> for About {
    fn from(id: WorkloadId) -> Self {
        Subject::Workload(id).into()
    }
}

/// What a notice about a workload mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mentions {
    /// The hosts concerned, where known.
    pub hosts: Vec<Host>,
    /// The purges concerned, where there are any.
    pub purges: Vec<PurgeFact>,
    /// Hosts, paths or purges are missing above: there are more than a notice has room for.
    pub cut: bool,
    /// The purge had been reported as stalled before; hooks in the old form are not called any more (decision 17).
    pub late: bool,
    /// The kind of the workload's object here, where that is not the one in its name. For the Event alone: members may differ in it.
    pub stand_in: Option<id::Kind>,
}

/// A run, as a notice mentions it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunFact {
    pub revision: CommitId,
    /// `plan` or `apply`.
    pub action: String,
    /// Which Job of the action: 1 for the first.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The ticket that an answer has to name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The changes of the plan, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Commits that were never run, because this one took their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<CommitId>,
}

/// A promotion, as a notice mentions it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PromotionFact {
    pub environment: Environment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Revision>,
    /// The ticket that an answer has to name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The pull request's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// One purge, as a notice mentions it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PurgeFact {
    pub distribution: DistributionId,
    /// CloudFront's id of the invalidation, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidation: Option<InvalidationId>,
    /// The purged paths, as far as they are mentioned.
    pub paths: Vec<Path>,
}

impl Notice {
    /// The id of the notice of `kind` about `rollout`; `detail` tells apart several of one kind.
    pub fn id_of(rollout: &str, kind: Kind, detail: &str) -> NoticeId {
        let name = kind.name();
        if detail.is_empty() { notice_id(rollout, name) } else { notice_id(rollout, &format!("{name}/{detail}")) }
    }

    /// Whether its purges were rehearsed only.
    pub fn is_of_dry_run(&self) -> bool {
        let purges = self.about.mentions().into_iter().flat_map(|mentions| &mentions.purges);
        purges.filter_map(|purge| purge.invalidation.as_ref()).any(InvalidationId::is_of_dry_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_serialises_as_it() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).ok(), Some(serde_json::Value::from(kind.name())));
        }
        assert_eq!(Kind::named("purge.compleated"), None);
        let places: std::collections::BTreeSet<u8> = Kind::ALL.into_iter().map(Kind::place).collect();
        assert_eq!(places.len(), Kind::ALL.len(), "two kinds have one place");
    }

    /// Decision 37, kind by kind, by hand. A new kind does not compile before it has its place here too.
    fn as_decided(kind: Kind) -> Severity {
        match kind {
            // Only a person can end these: a purge that is not made as things are, and an annotation that cannot be used.
            Kind::PurgeFailed => Severity::Error,
            Kind::PurgeOwed => Severity::Error,
            Kind::WorkloadFaulty => Severity::Error,
            // An Ingress is gone for good, or nothing was ever meant to lead there again: only a person knows.
            Kind::SiteLost => Severity::Error,
            // No purge that is made by itself helps any more.
            Kind::EdgeStale => Severity::Error,
            // A rollout failed, or something is late. The next rollout, or the other side, may end these.
            Kind::RolloutFailed => Severity::Warn,
            Kind::RolloutStuck => Severity::Warn,
            Kind::GroupStalled => Severity::Warn,
            Kind::GroupInDoubt => Severity::Warn,
            Kind::PurgeStalled => Severity::Warn,
            // Visitors got what is old, and the further purge may end that.
            Kind::PurgeRepeated => Severity::Warn,
            // The same of Pipelines.
            Kind::PipelineFaulty => Severity::Error,
            Kind::RepoFaulty => Severity::Error,
            Kind::RunFailed => Severity::Warn,
            Kind::RunStalled => Severity::Warn,
            // What is there is not what was applied. Another run, or who changed it, may end that.
            Kind::RepoDrifted => Severity::Warn,
            Kind::PromotionFailed => Severity::Warn,
            Kind::PromotionStalled => Severity::Warn,
            // Transitions, in which nothing is wrong.
            Kind::RolloutStarted => Severity::Info,
            Kind::RolloutCompleted => Severity::Info,
            Kind::RolloutSuperseded => Severity::Info,
            Kind::PurgeStarted => Severity::Info,
            Kind::PurgeCompleted => Severity::Info,
            Kind::PurgeSkipped => Severity::Info,
            Kind::EdgeRenewed => Severity::Info,
            Kind::EdgeFresh => Severity::Info,
            Kind::EdgeUnknown => Severity::Info,
            Kind::PromotionWaiting => Severity::Info,
            Kind::PromotionStarted => Severity::Info,
            Kind::PromotionCompleted => Severity::Info,
            Kind::PromotionWithdrawn => Severity::Info,
            Kind::RunWaiting => Severity::Info,
            Kind::RunStarted => Severity::Info,
            Kind::RunCompleted => Severity::Info,
            Kind::RunPlanned => Severity::Info,
            Kind::RunSuperseded => Severity::Info,
            Kind::RepoInSync => Severity::Info,
        }
    }

    #[test]
    fn each_kind_is_as_severe_as_was_decided() {
        for kind in Kind::ALL {
            assert_eq!(kind.severity(), as_decided(kind), "{}", kind.name());
            assert_eq!(kind.is_warning(), kind.severity() > Severity::Info, "the Event of {}", kind.name());
        }
        let as_severe = |severity| Kind::ALL.into_iter().filter(|kind| kind.severity() == severity).count();
        assert_eq!(
            [Severity::Error, Severity::Warn, Severity::Info].map(as_severe),
            [7, 11, 19],
            "a kind is not in ALL"
        );
    }
}
