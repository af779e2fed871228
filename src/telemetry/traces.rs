//! The spans that wait to be exported, bounded: whoever notes one never waits for a collector.
//!
//! Off until [`Traces::switch_on`]; then nothing is kept at all. Not for sending them; that is `app::exporting`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::sync::Notify;

use super::labels::Label;
use kernel::trace::Span;

/// Spans that wait at most: those of some 600 rollouts. At about a kilobyte each that is 4 MB, while a collector is down.
pub const WAITING_MAX: usize = 4096;

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The collector has it.
    Exported,
    /// There was no room for it, or no time at the end.
    Dropped,
    /// The collector does not want it.
    Refused,
}

impl Fate {
    const ALL: [Self; 3] = [Self::Exported, Self::Dropped, Self::Refused];

    const fn name(self) -> &'static str {
        match self {
            Self::Exported => "exported",
            Self::Dropped => "dropped",
            Self::Refused => "refused",
        }
    }
}

/// The spans that wait.
#[derive(Default)]
pub struct Traces {
    is_on: AtomicBool,
    waiting: Mutex<VecDeque<Span>>,
    arrived: Notify,
    warned: AtomicBool,
    spans: Family<Label, Counter>,
}

impl Traces {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("spans", "Spans of traces, by what became of them", self.spans.clone());
        Fate::ALL.into_iter().for_each(|fate| drop(self.spans.get_or_create(&[("result", fate.name())])));
    }

    /// Keeps spans from now on: something exports them.
    pub fn switch_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Whether spans are exported. Who makes them may ask, to save itself the work.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Takes in spans that have ended. Those for which there is no room are counted, with one line for all until there is room again.
    pub fn note(&self, spans: impl IntoIterator<Item = Span>) {
        if !self.is_on() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dropped = 0;
        for span in spans {
            if waiting.len() < WAITING_MAX {
                waiting.push_back(span);
            } else {
                dropped += 1;
            }
        }
        drop(waiting);
        if dropped > 0 {
            self.became(Fate::Dropped, dropped);
            if !self.warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(waiting = WAITING_MAX, "dropped spans of traces: the collector takes them too slowly");
            }
        }
        self.arrived.notify_one();
    }

    /// The oldest spans that wait, so many at most. They are the caller's from now on.
    pub fn take(&self, most: usize) -> Vec<Span> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = most.min(waiting.len());
        let spans: Vec<Span> = waiting.drain(..taken).collect();
        drop(waiting);
        if !spans.is_empty() {
            self.warned.store(false, Ordering::Relaxed);
        }
        spans
    }

    /// Returns when spans may have come.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Counts what became of so many spans.
    pub fn became(&self, fate: Fate, spans: usize) {
        self.spans.get_or_create(&[("result", fate.name())]).inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Form, Metrics};
    use kernel::id::{Member, WorkloadId};
    use kernel::trace::Stage;

    fn spans(count: usize) -> Vec<Span> {
        let (workload, member) = (WorkloadId::deployment("shop", "web"), Member::from("eu-1"));
        let rollout = "5b8efff798038103d269b633813fc60c";
        let span = |number: usize| {
            Span::new(rollout, &workload, (Stage::Webhook, &member, &number.to_string()), (1, 2)).unwrap()
        };
        (0..count).map(span).collect()
    }

    #[test]
    fn nothing_is_kept_while_nothing_exports() {
        let metrics = Metrics::default();
        metrics.traces.note(spans(3));
        assert!(metrics.traces.take(10).is_empty());
        metrics.traces.switch_on();
        metrics.traces.note(spans(3));
        assert_eq!(metrics.traces.take(2), spans(2), "the oldest first");
        assert_eq!(metrics.traces.take(10).len(), 1);
    }

    #[test]
    fn beyond_the_bound_the_newest_are_dropped_and_counted() {
        let metrics = Metrics::default();
        let shown = |line: &str| metrics.text(Form::Prometheus).contains(&format!("\n{line}\n"));
        assert!(shown("allclear_spans_total{result=\"dropped\"} 0"), "{}", metrics.text(Form::Prometheus));
        metrics.traces.switch_on();
        metrics.traces.note(spans(WAITING_MAX + 5));
        assert!(shown("allclear_spans_total{result=\"dropped\"} 5"), "{}", metrics.text(Form::Prometheus));
        assert_eq!(metrics.traces.take(usize::MAX), spans(WAITING_MAX));
    }
}
