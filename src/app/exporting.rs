//! Sends the spans that wait to the collector, in batches, until the end of the process. Nothing waits for it: what finds no room
//! while the collector is away is dropped and counted.
//!
//! A collector that is away is said in one line a minute at most, and in `allclear_spans_total`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::StartError;
use crate::adapters::collector::{ANSWER_WITHIN, Collector, Refusal};
use crate::config::Config;
use crate::telemetry::Metrics;
use crate::telemetry::otlp::{self, Resource};
use crate::telemetry::traces::Fate;
use kernel::id::Member;
use kernel::retry;
use kernel::trace::Span;

/// Spans of one request at most: about a quarter of a megabyte.
const BATCH_MAX: usize = 256;

/// How long spans wait for others to travel with.
const GATHERED_FOR: Duration = Duration::from_secs(1);

/// How often troubles are said at most.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// What is still waiting at the end has this long.
pub(super) const FLUSHED_WITHIN: Duration = Duration::from_millis(900);

/// The sender of spans, while it runs.
pub(super) struct Exporting {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporting {
    /// Starts it, where a collector is configured. A dry run exports nothing.
    pub(super) fn start(
        config: &Config,
        member: &Member,
        grouped: bool,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<Self>, StartError> {
        let Some(collector) =
            Collector::configured(&config.traces).map_err(StartError::Traces)?.filter(|_| !config.dry_run)
        else {
            return Ok(None);
        };
        let sender =
            Sender { collector, resource: resource(config, member, grouped), metrics: metrics.clone(), said: None };
        let endpoint = config.traces.endpoint.as_ref().map(ToString::to_string).unwrap_or_default();
        tracing::info!(endpoint, "exporting traces");
        metrics.traces.switch_on();
        let (end, ended) = oneshot::channel();
        #[expect(
            clippy::disallowed_methods,
            reason = "it is awaited in `end`, and its death costs only spans, which are counted"
        )]
        let task = actix_rt::spawn(sender.run(ended));
        Ok(Some(Self { end, task }))
    }

    /// Sends what waits, within [`FLUSHED_WITHIN`], and ends.
    pub(super) async fn end(self) {
        let Self { end, task } = self;
        drop(end);
        // It died before: what it would have sent is lost, and its panic is in the log.
        let _ = task.await;
    }
}

/// Our resource attributes, by the names of the semantic conventions
/// (<https://opentelemetry.io/docs/specs/semconv/resource/>). Configured ones win.
fn resource(config: &Config, member: &Member, grouped: bool) -> Resource {
    let mut known = vec![
        ("service.name", "allclear".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", member.to_string()),
    ];
    if grouped {
        known.extend([("k8s.cluster.name", member.to_string()), ("allclear.group", config.group.name.clone())]);
    }
    known.extend(config.leader.replica.iter().map(|pod| ("k8s.pod.name", pod.clone())));
    let given = &config.traces.attributes;
    let own = known.into_iter().filter(|(name, _)| !given.contains_key(*name));
    let own = own.map(|(name, value)| (name.to_owned(), value));
    Resource(own.chain(given.iter().map(|(name, value)| (name.clone(), value.clone()))).collect())
}

struct Sender {
    collector: Collector,
    resource: Resource,
    metrics: Arc<Metrics>,
    /// When a trouble was last said.
    said: Option<Instant>,
}

impl Sender {
    async fn run(mut self, mut ended: oneshot::Receiver<()>) {
        let metrics = self.metrics.clone();
        loop {
            let batch = metrics.traces.take(BATCH_MAX);
            let step = async {
                if batch.is_empty() {
                    metrics.traces.arrived().await;
                    tokio::time::sleep(GATHERED_FOR).await;
                } else {
                    self.deliver(&batch).await;
                }
            };
            let goes_on = tokio::select! {
                () = step => true,
                _ = &mut ended => false,
            };
            if !goes_on {
                self.flush(batch).await;
                return;
            }
        }
    }

    /// Sends a batch until the collector has taken it, or does not want it.
    async fn deliver(&mut self, batch: &[Span]) {
        let mut attempt = 0;
        loop {
            match self.collector.send(otlp::body(&self.resource, batch), ANSWER_WITHIN).await {
                Ok(rejected) => {
                    self.taken(batch.len(), rejected);
                    return;
                }
                Err(Refusal::Never(why)) => {
                    self.metrics.traces.became(Fate::Refused, batch.len());
                    self.say("the collector refuses spans; see traces.endpoint and traces.headers", &why);
                    return;
                }
                Err(Refusal::Later { why, after }) => {
                    attempt += 1;
                    self.metrics.failure("export_spans");
                    self.say("could not send spans to the collector; trying again", &why);
                    let wait = retry::SERVICE.delay(attempt, "traces");
                    tokio::time::sleep(after.map_or(wait, |after| after.clamp(wait, SAID_EVERY))).await;
                }
            }
        }
    }

    /// Sends what there is once, within the time that is left. A batch whose answer did not come may arrive twice, as the same spans.
    async fn flush(&mut self, mut batch: Vec<Span>) {
        let deadline = Instant::now() + FLUSHED_WITHIN;
        loop {
            if batch.is_empty() {
                batch = self.metrics.traces.take(BATCH_MAX);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if batch.is_empty() {
                return;
            }
            match self.collector.send(otlp::body(&self.resource, &batch), left).await {
                Ok(rejected) => self.taken(batch.len(), rejected),
                Err(Refusal::Never(why) | Refusal::Later { why, .. }) => {
                    let lost = batch.len() + self.metrics.traces.take(usize::MAX).len();
                    self.metrics.traces.became(Fate::Dropped, lost);
                    tracing::warn!(
                        spans = lost,
                        why,
                        "dropped spans at the end: the collector did not take them in time"
                    );
                    return;
                }
            }
            batch.clear();
        }
    }

    fn taken(&mut self, sent: usize, rejected: Option<(usize, String)>) {
        let refused = rejected.as_ref().map_or(0, |(count, _)| *count).min(sent);
        self.metrics.traces.became(Fate::Exported, sent - refused);
        self.metrics.traces.became(Fate::Refused, refused);
        if let Some((_, why)) = rejected {
            self.say("the collector rejected spans", &why);
        }
    }

    /// One line a minute at most, whatever happens meanwhile.
    fn say(&mut self, what: &'static str, why: &str) {
        let now = Instant::now();
        if self.said.is_some_and(|said| now.duration_since(said) < SAID_EVERY) {
            return;
        }
        self.said = Some(now);
        let why = kernel::text::visible(kernel::text::first(why, 300)).into_owned();
        tracing::warn!(why, "{what}");
    }
}
