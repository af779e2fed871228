//! Traces: the stages of a rollout as spans, named so that every member, and every life of it, gives the same span the same name.
//!
//! The id of a trace is the id of its rollout, as notices, webhooks and the log have it: 32 hexadecimal digits, the same in every
//! member of a group. So spans of all members meet in one trace, and a span that is sent twice is still one span.
//!
//! Not for how spans are sent, nor for what a tracing system calls their attributes; that is `telemetry::otlp`.

use crate::id::{Member, WorkloadId, digest};

/// Hexadecimal digits of a trace's id: 16 bytes (<https://opentelemetry.io/docs/specs/otel/trace/api/#spancontext>).
const TRACE_DIGITS: usize = 32;

/// Hexadecimal digits of a span's id: 8 bytes.
const SPAN_DIGITS: usize = 16;

/// The subject of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// All of a rollout, in the whole group.
    Rollout,
    /// From the change to the moment at which the rollout is complete in one cluster.
    Pods,
    /// From there to the decision of the group; while alone, to the purge.
    Agreement,
    /// One invalidation, from the first creation of its rollout to its own completion.
    Purge,
    /// One attempt to deliver a webhook.
    Webhook,
}

impl Stage {
    /// The name of the span.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Pods => "pods",
            Self::Agreement => "agreement",
            Self::Purge => "purge",
            Self::Webhook => "webhook",
        }
    }
}

/// An attribute of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Text(String),
    Number(i64),
    Texts(Vec<String>),
}

/// Why a stage did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// One word of a small set.
    pub kind: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// One stage that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The id of its rollout.
    pub trace: String,
    pub id: String,
    /// The id of the span it is a part of; `None` for [`Stage::Rollout`].
    pub parent: Option<String>,
    pub stage: Stage,
    pub workload: WorkloadId,
    /// When it began, in milliseconds since the Unix epoch, by the member's clock.
    pub start_ms: i64,
    /// When it ended; never before it began.
    pub end_ms: i64,
    /// Why it did not end well, if it did not.
    pub fault: Option<Fault>,
    /// Its attributes, by our names for them.
    pub facts: Vec<(&'static str, Fact)>,
}

impl Span {
    /// A stage of a rollout as one member saw it; `detail` tells apart several of one kind. `None` where the rollout's id is no id
    /// of a trace.
    pub fn new(
        rollout: &str,
        workload: &WorkloadId,
        (stage, member, detail): (Stage, &Member, &str),
        (start_ms, end_ms): (i64, i64),
    ) -> Option<Self> {
        let is_id = rollout.len() == TRACE_DIGITS
            && rollout.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
            && rollout.chars().any(|c| c != '0');
        let root = id(rollout, Stage::Rollout, "", "");
        let is_root = stage == Stage::Rollout;
        is_id.then(|| Self {
            trace: rollout.to_owned(),
            id: if is_root { root.clone() } else { id(rollout, stage, &member.0, detail) },
            parent: (!is_root).then_some(root),
            stage,
            workload: workload.clone(),
            start_ms: start_ms.min(end_ms),
            end_ms,
            fault: None,
            facts: Vec::new(),
        })
    }

    /// The same with another fact, unless that is empty.
    #[must_use]
    pub fn with(mut self, name: &'static str, fact: Fact) -> Self {
        let is_empty = match &fact {
            Fact::Text(text) => text.is_empty(),
            Fact::Number(_) => false,
            Fact::Texts(texts) => texts.is_empty(),
        };
        if !is_empty {
            self.facts.push((name, fact));
        }
        self
    }

    /// The same with why it did not end well.
    #[must_use]
    pub fn failed(mut self, fault: Option<Fault>) -> Self {
        self.fault = fault;
        self
    }
}

/// The root is the whole group's, so it has no member.
fn id(rollout: &str, stage: Stage, member: &str, detail: &str) -> String {
    digest("span", [rollout, stage.name(), member, detail]).chars().take(SPAN_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLOUT: &str = "0123456789abcdef0123456789abcdef";

    fn span(stage: Stage, member: &str, detail: &str) -> Span {
        let workload = WorkloadId::deployment("shop", "web");
        Span::new(ROLLOUT, &workload, (stage, &member.into(), detail), (5, 9)).unwrap()
    }

    #[test]
    fn a_span_has_one_id_in_every_life_and_no_two_stages_share_one() {
        assert_eq!(span(Stage::Pods, "eu-1", "").id, span(Stage::Pods, "eu-1", "").id);
        let all = [
            span(Stage::Rollout, "eu-1", ""),
            span(Stage::Pods, "eu-1", ""),
            span(Stage::Pods, "us-1", ""),
            span(Stage::Agreement, "eu-1", ""),
            span(Stage::Purge, "eu-1", "E1"),
            span(Stage::Purge, "eu-1", "E2"),
        ];
        let ids: std::collections::BTreeSet<&str> = all.iter().map(|span| span.id.as_str()).collect();
        assert_eq!(ids.len(), all.len());
        assert!(all.iter().all(|span| span.trace == ROLLOUT && span.id.len() == 16), "{all:?}");
    }

    #[test]
    fn all_members_hang_on_one_root() {
        let root = span(Stage::Rollout, "eu-1", "");
        assert_eq!((&root.id, &root.parent), (&span(Stage::Rollout, "us-1", "").id, &None));
        for part in [span(Stage::Pods, "us-1", ""), span(Stage::Webhook, "eu-1", "d/1")] {
            assert_eq!(part.parent.as_ref(), Some(&root.id));
        }
    }

    #[test]
    fn what_is_no_id_of_a_trace_makes_no_span() {
        let (workload, member) = (WorkloadId::deployment("shop", "web"), Member::from("eu-1"));
        for text in ["", "0123", "00000000000000000000000000000000", "0123456789ABCDEF0123456789ABCDEF"] {
            assert_eq!(Span::new(text, &workload, (Stage::Pods, &member, ""), (1, 2)), None, "{text}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_negative_length() {
        let (workload, member) = (WorkloadId::deployment("shop", "web"), Member::from("eu-1"));
        let span = Span::new(ROLLOUT, &workload, (Stage::Pods, &member, ""), (9, 5)).unwrap();
        assert_eq!((span.start_ms, span.end_ms), (5, 5));
    }
}
