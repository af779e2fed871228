//! What a machine hears of a call that failed.

use purge::rollouts::rollout::{Effect, Event};

/// The event of a call that was not answered, or `None` where there is none to hear of.
pub fn failure(effect: &Effect) -> Option<Event> {
    Some(match effect {
        Effect::Store(_) | Effect::Remove(_) => Event::StoreFailed("no answer".to_owned()),
        Effect::Look => Event::LookFailed("no answer".to_owned()),
        Effect::FindOldPods(_) => Event::OldPodsUnseen("no answer".to_owned()),
        Effect::FindSite(..) => Event::SiteFailed("no answer".to_owned()),
        Effect::Recheck(_) => Event::RecheckFailed("no answer".to_owned()),
        Effect::Match(vector, _) | Effect::Compare(vector, _) => {
            Event::MatchFailed(vector.clone(), "the listing failed".to_owned())
        }
        Effect::AskCache(of, question) => {
            Event::CacheAnswered(of.clone(), question.back(), Err("no answer".to_owned()))
        }
        Effect::Tell(notice) => Event::TellFailed(notice.id.clone(), "no answer".to_owned()),
        // Whoever carries purges out was rebuilt, and has forgotten it.
        Effect::Purge(_) => Event::PeersRestarted,
        Effect::Publish(_) | Effect::Absent(_) | Effect::AskEdge(..) | Effect::LeaveEdge(_) | Effect::End => {
            return None;
        }
    })
}
