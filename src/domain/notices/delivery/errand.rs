//! Publishes a notice in two places: as an Event on its object, and through the outbox to the webhooks.
//!
//! A notice is repeated until both have it. During one life of the rollout we remember which of the two has it already, and
//! skip that one. A later life repeats both without harm: the outbox and the Event recognise a notice they have had.

use std::collections::BTreeSet;

use kernel::id::NoticeId;

/// The notices on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Errands {
    /// All that were begun.
    begun: BTreeSet<NoticeId>,
    /// Those that the outbox has and whose Event is not published yet. A second hand-over would call every receiver again.
    accepted: BTreeSet<NoticeId>,
}

/// The open work for a notice. Its Event is published in any case: publishing one that exists is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errand {
    /// It is new, so it is logged and counted: once, however often it is repeated.
    pub first: bool,
    /// The outbox does not have it yet.
    pub to_outbox: bool,
}

/// How publishing the Event ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publication {
    Done,
    /// It can never be published, which must not delay the webhooks.
    Never,
    /// It was not published this time, for this reason.
    Failed(String),
}

/// Why the outbox does not have a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotTaken {
    #[error("the outbox is full")]
    Full,
    #[error("the outbox was restarted")]
    Restarted,
    #[error("the webhooks' actor is being restarted")]
    Away,
}

impl Errands {
    /// Begins to publish a notice, for the first time or again.
    pub fn begin(&mut self, id: &NoticeId) -> Errand {
        Errand { first: self.begun.insert(id.clone()), to_outbox: !self.accepted.contains(id) }
    }

    /// Both were tried; `handed` is the outbox's answer, if it was asked. Returns why it must be repeated.
    pub fn end(&mut self, id: &NoticeId, event: Publication, handed: Option<Result<(), NotTaken>>) -> Option<String> {
        let handed = handed.unwrap_or(Ok(()));
        if handed.is_ok() {
            self.accepted.insert(id.clone());
        }
        let why = match event {
            Publication::Done | Publication::Never => handed.err().map(|why| why.to_string()),
            Publication::Failed(why) => Some(why),
        };
        if why.is_none() {
            self.accepted.remove(id);
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Option<Result<(), NotTaken>> = Some(Err(NotTaken::Full));
    const AWAY: &str = "no answer";

    fn id() -> NoticeId {
        "msg_1".into()
    }

    fn unpublished() -> Publication {
        Publication::Failed(AWAY.to_owned())
    }

    #[test]
    fn a_notice_is_told_until_both_have_it_and_logged_once() {
        let mut errands = Errands::default();
        assert_eq!(errands.begin(&id()), Errand { first: true, to_outbox: true });
        assert_eq!(errands.end(&id(), Publication::Done, FULL), Some("the outbox is full".to_owned()));
        assert_eq!(errands.begin(&id()), Errand { first: false, to_outbox: true });
        assert_eq!(errands.end(&id(), Publication::Done, Some(Ok(()))), None);
    }

    #[test]
    fn what_the_outbox_has_is_not_handed_over_again_while_its_event_is_tried() {
        let mut errands = Errands::default();
        errands.begin(&id());
        assert_eq!(errands.end(&id(), unpublished(), Some(Ok(()))), Some(AWAY.to_owned()));
        for _ in 0..2 {
            assert_eq!(errands.begin(&id()), Errand { first: false, to_outbox: false });
            assert_eq!(errands.end(&id(), unpublished(), None), Some(AWAY.to_owned()));
        }
        assert!(errands.begin(&"msg_2".into()).to_outbox, "another one is another matter");
        assert_eq!(errands.end(&id(), Publication::Done, None), None);
    }

    #[test]
    fn an_event_that_can_never_be_published_keeps_nothing_waiting() {
        let mut errands = Errands::default();
        errands.begin(&id());
        assert_eq!(errands.end(&id(), Publication::Never, FULL), Some("the outbox is full".to_owned()));
        assert_eq!(errands.end(&id(), Publication::Never, Some(Ok(()))), None);
    }

    #[test]
    fn where_both_fail_the_outbox_is_tried_again_too() {
        let mut errands = Errands::default();
        errands.begin(&id());
        assert_eq!(errands.end(&id(), unpublished(), FULL), Some(AWAY.to_owned()));
        assert!(errands.begin(&id()).to_outbox);
    }
}
