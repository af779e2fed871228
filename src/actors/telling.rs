//! Publishing a notice: as an Event, and to the webhooks.

use actix::Recipient;

use crate::actors::message::TellNotice;
use crate::actors::{ANSWER_WITHIN, Env};
use kernel::refusal::Cause;
use notices::delivery::{Errand, NotTaken, Publication};
use notices::notice::Notice;
use purge::ports::{PortError, Retry};

impl Env {
    /// Publishes a notice as an Event on the object `uid`, and logs a failure.
    pub(crate) async fn publish(&self, notice: &Notice, uid: &str) -> Result<(), PortError> {
        let published = self.ports.events.publish(notice, uid).await;
        let said = self.heard(Cause::PublishEvents, notice.about.subject().namespace(), published.as_ref().err());
        let Err(error) = published else { return Ok(()) };
        self.metrics.failure("publish_event");
        if !said {
            tracing::warn!(workload = %notice.about.subject().display_name(), %error, "could not publish an Event");
        }
        // A refusal that does not count may pass in a moment, and the Event would be lost.
        let passes = said && !self.complaints.is_said(Cause::PublishEvents);
        Err(if passes { PortError { retry: Retry::Later, ..error } } else { error })
    }

    /// Publishes a notice as an Event on the object `uid`, and hands it to the outbox if the errand says so; what came of both. It
    /// is for notices that are kept until both have worked.
    pub(crate) async fn carry(
        &self,
        errand: Errand,
        notice: Box<Notice>,
        uid: &str,
        outbox: &Recipient<TellNotice>,
    ) -> (Publication, Option<Result<(), NotTaken>>) {
        let event = match self.publish(&notice, uid).await {
            Ok(()) => Publication::Done,
            Err(error) if error.retry == Retry::Never => Publication::Never,
            Err(error) => Publication::Failed(error.to_string()),
        };
        if !errand.to_outbox {
            return (event, None);
        }
        let handed = outbox.send(TellNotice(notice)).timeout(ANSWER_WITHIN).await;
        (event, Some(handed.unwrap_or(Err(NotTaken::Away))))
    }
}

/// Sends a notice that is in no record, as an Event on the object `uid` and to the webhooks that want it. It is not
/// retried.
pub(crate) async fn tell_at_once(env: &Env, to: &Recipient<TellNotice>, notice: Notice, uid: &str) {
    env.metrics.notice(&notice);
    env.metrics.chronicle.note(&notice, env.ports.clock.wall_ms());
    // What failed is in the log.
    let _ = env.publish(&notice, uid).await;
    if !matches!(to.send(TellNotice(Box::new(notice))).timeout(ANSWER_WITHIN).await, Ok(Ok(()))) {
        env.metrics.failure("tell_notice");
    }
}
