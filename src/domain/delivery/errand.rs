//! Telling a notice in two places: as an Event on its object, and to the webhooks by way of the outbox.
//!
//! A notice is told again until both have it. Whichever has it already is left alone then, for as long as this is remembered: a
//! life of the rollout. The outbox and the Event know a notice that they have had, so a later life repeats it without harm.

use std::collections::BTreeSet;

use crate::id::NoticeId;

/// The notices that are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Errands {
    /// All that were begun with.
    begun: BTreeSet<NoticeId>,
    /// Those that the outbox has, while their Event is not published yet. Handing one over again would call every receiver
    /// again.
    accepted: BTreeSet<NoticeId>,
}

/// What telling a notice takes now. Its Event is published in any case: publishing one that exists is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errand {
    /// It was not begun with before: it is logged and counted, once, however often it has to be told.
    pub first: bool,
    /// The outbox is to have it.
    pub to_outbox: bool,
}

/// How publishing the Event ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publication {
    /// It exists.
    Done,
    /// It can never be published. That must not keep the webhooks waiting.
    Never,
    /// It does not exist yet, for this reason.
    Failed(String),
}

impl Errands {
    /// Begins to tell a notice, for the first time or again.
    pub fn begin(&mut self, id: &NoticeId) -> Errand {
        Errand { first: self.begun.insert(id.clone()), to_outbox: !self.accepted.contains(id) }
    }

    /// Both were tried; `handed` says whether the outbox has it, if it was to have it.
    ///
    /// # Errors
    /// Why it has to be told again.
    pub fn end(&mut self, id: &NoticeId, event: Publication, handed: Option<Result<(), String>>) -> Result<(), String> {
        let handed = handed.unwrap_or(Ok(()));
        if handed.is_ok() {
            self.accepted.insert(id.clone());
        }
        match event {
            Publication::Done | Publication::Never => handed?,
            Publication::Failed(why) => return Err(why),
        }
        self.accepted.remove(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "the outbox is full";
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
        assert_eq!(errands.end(&id(), Publication::Done, Some(Err(FULL.to_owned()))), Err(FULL.to_owned()));
        assert_eq!(errands.begin(&id()), Errand { first: false, to_outbox: true });
        assert_eq!(errands.end(&id(), Publication::Done, Some(Ok(()))), Ok(()));
    }

    #[test]
    fn what_the_outbox_has_is_not_handed_over_again_while_its_event_is_tried() {
        let mut errands = Errands::default();
        errands.begin(&id());
        assert_eq!(errands.end(&id(), unpublished(), Some(Ok(()))), Err(AWAY.to_owned()));
        for _ in 0..2 {
            assert_eq!(errands.begin(&id()), Errand { first: false, to_outbox: false });
            assert_eq!(errands.end(&id(), unpublished(), None), Err(AWAY.to_owned()));
        }
        assert!(errands.begin(&"msg_2".into()).to_outbox, "another one is another matter");
        assert_eq!(errands.end(&id(), Publication::Done, None), Ok(()));
    }

    #[test]
    fn an_event_that_can_never_be_published_keeps_nothing_waiting() {
        let mut errands = Errands::default();
        errands.begin(&id());
        assert_eq!(errands.end(&id(), Publication::Never, Some(Err(FULL.to_owned()))), Err(FULL.to_owned()));
        assert_eq!(errands.end(&id(), Publication::Never, Some(Ok(()))), Ok(()));
    }

    #[test]
    fn where_both_fail_the_outbox_is_tried_again_too() {
        let mut errands = Errands::default();
        errands.begin(&id());
        assert_eq!(errands.end(&id(), unpublished(), Some(Err(FULL.to_owned()))), Err(AWAY.to_owned()));
        assert!(errands.begin(&id()).to_outbox);
    }
}
