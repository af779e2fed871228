//! The names of effects, as metrics have them.

use crate::rollouts::rollout::Effect;

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Store(_) => "store",
            Self::Remove(_) => "remove",
            Self::Publish(_) => "publish",
            Self::Absent(_) => "absent",
            Self::Look => "look",
            Self::FindOldPods(_) => "find_old_pods",
            Self::FindSite(..) => "find_site",
            Self::Recheck(_) => "recheck",
            Self::AskCache(..) => "ask_cache",
            Self::Match(..) => "match",
            Self::Compare(..) => "compare",
            Self::Purge(_) => "purge",
            Self::AskEdge(..) => "ask_edge",
            Self::LeaveEdge(_) => "leave_edge",
            Self::Tell(_) => "tell",
            Self::End => "end",
        }
    }
}
