//! A Deployment and a Rollout of one name are one workload: which of them counts, by the news of two watches.
//!
//! ```text
//! Rollouts     ──listing──┬── kept until Deployments are listed ──┬──▶ what counts
//!                         ▼                                       │
//! Deployments           (begin) ──listing─────────────────────────┴──▶ what counts
//! ```
//!
//! 1. A Rollout counts, unless it has no pods and a Deployment of its name has some. One that cannot be read hides a Deployment: what
//!    it does is not known.
//! 2. No sight of either counts before it is known whether there is another of its name: Rollouts are listed first, and what is found of
//!    them is said once Deployments are listed, too. Where the kind does not exist, or may not be listed, nothing is waited for.
//! 3. Where another object counts from now on that is not at hand, the one before is said to be gone: whoever follows it looks afresh,
//!    and [`joined`] decides by the same rule.
//!
//! Whole Rollouts are kept, of Deployments only which have pods: there are tens of thousands of them. Not for what a change of the object
//! means; that is `rollouts`'.

use std::collections::{BTreeMap, BTreeSet};

use crate::workloads::workload::Workload;
use kernel::id::{Kind, WorkloadId};
use kernel::unreadable::Unreadable;

/// News of the watch of one of the two kinds.
#[derive(Clone, Debug)]
pub enum Event {
    /// A listing begins.
    Relisting(Kind),
    Seen(Box<Workload>),
    Unreadable(Kind, WorkloadId, Unreadable),
    Gone(Kind, WorkloadId),
    /// A listing is complete.
    Listed(Kind),
    /// The kind Rollout does not exist in this cluster.
    NoRollouts,
}

/// What counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Seen(Box<Workload>),
    Unreadable(WorkloadId, Unreadable),
    /// Neither of the two is there, or another one is than the last that counted.
    Gone(WorkloadId),
}

/// The Rollouts and Deployments of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joining {
    rollouts: BTreeMap<WorkloadId, Result<Box<Workload>, Unreadable>>,
    /// Deployments with pods.
    deployments: BTreeSet<WorkloadId>,
    /// Deployments were listed to the end.
    is_listed: bool,
    /// What the listings under way have contained so far: Rollouts, and Deployments with pods.
    listed_rollouts: Option<BTreeSet<WorkloadId>>,
    listed_deployments: Option<BTreeSet<WorkloadId>>,
}

/// Which of two objects of one name counts, read at one time.
pub fn joined(deployment: Option<Workload>, rollout: Option<Workload>) -> Option<Workload> {
    match (deployment, rollout) {
        (deployment, None) => deployment,
        (Some(deployment), Some(rollout)) if !counts(&rollout, has_pods(&deployment)) => Some(deployment),
        (deployment, Some(rollout)) => Some(beside(rollout, deployment.as_ref().is_some_and(has_pods))),
    }
}

const fn has_pods(workload: &Workload) -> bool {
    workload.replicas.total > 0
}

/// Whether a Rollout counts, and not the Deployment of its name.
const fn counts(rollout: &Workload, has_deployment: bool) -> bool {
    has_pods(rollout) || !has_deployment
}

/// A Rollout that counts, with a warning where a Deployment has pods beside it.
fn beside(mut rollout: Workload, has_deployment: bool) -> Workload {
    if has_deployment {
        rollout.tuning.fault(|| {
            "a Deployment of the same name has pods, too: the Rollout counts; scale the Deployment to zero or remove it once the \
             Rollout serves alone"
                .to_owned()
        });
    }
    rollout
}

impl Joining {
    /// What follows from news of one watch. News of Deployments may come only after Rollouts were listed or are known not to be.
    pub fn step(&mut self, event: Event) -> Vec<News> {
        match event {
            Event::Relisting(Kind::Rollout) => self.listed_rollouts = Some(BTreeSet::new()),
            Event::Relisting(_) => self.listed_deployments = Some(BTreeSet::new()),
            Event::Seen(workload) if workload.object == Kind::Rollout => return self.rollout(workload),
            Event::Seen(workload) => return self.deployment(workload),
            Event::Unreadable(Kind::Rollout, id, why) => {
                self.note_rollout(&id);
                self.rollouts.insert(id.clone(), Err(why));
                return self.say(&id).into_iter().collect();
            }
            Event::Unreadable(_, id, why) => {
                let is_alone = !self.rollouts.contains_key(&id);
                return Some(News::Unreadable(id, why)).filter(|_| is_alone).into_iter().collect();
            }
            Event::Gone(Kind::Rollout, id) => return self.lose(id),
            Event::Gone(_, id) => {
                self.note_deployment(&id, false);
                return if self.rollouts.contains_key(&id) {
                    self.say(&id).into_iter().collect()
                } else {
                    vec![News::Gone(id)]
                };
            }
            Event::Listed(Kind::Rollout) => {
                let Some(listed) = self.listed_rollouts.take() else { return Vec::new() };
                let gone: Vec<WorkloadId> = self.rollouts.keys().filter(|id| !listed.contains(id)).cloned().collect();
                return gone.into_iter().flat_map(|id| self.lose(id)).collect();
            }
            Event::Listed(_) => {
                self.is_listed = true;
                self.deployments =
                    self.listed_deployments.take().unwrap_or_else(|| std::mem::take(&mut self.deployments));
                return self.rollouts.keys().filter_map(|id| self.say(id)).collect();
            }
            Event::NoRollouts => {
                let gone: Vec<WorkloadId> = self.rollouts.keys().cloned().collect();
                return gone.into_iter().flat_map(|id| self.lose(id)).collect();
            }
        }
        Vec::new()
    }

    /// What is to be said of a Rollout that is known, if it counts and Deployments are listed.
    fn say(&self, id: &WorkloadId) -> Option<News> {
        let has_deployment = self.deployments.contains(id);
        match self.rollouts.get(id).filter(|_| self.is_listed)? {
            Err(why) => Some(News::Unreadable(id.clone(), why.clone())),
            Ok(rollout) if counts(rollout, has_deployment) => {
                Some(News::Seen(Box::new(beside(Workload::clone(rollout), has_deployment))))
            }
            Ok(_) => None,
        }
    }

    fn note_rollout(&mut self, id: &WorkloadId) {
        self.listed_rollouts.iter_mut().for_each(|listed| listed.extend([id.clone()]));
    }

    fn note_deployment(&mut self, id: &WorkloadId, has_pods: bool) {
        for known in self.listed_deployments.iter_mut().chain([&mut self.deployments]) {
            if has_pods { known.extend([id.clone()]) } else { drop(known.take(id)) }
        }
    }

    fn rollout(&mut self, rollout: Box<Workload>) -> Vec<News> {
        let id = rollout.id.clone();
        self.note_rollout(&id);
        let did_count = self.say(&id).is_some();
        self.rollouts.insert(id.clone(), Ok(rollout));
        match self.say(&id) {
            Some(news) => vec![news],
            // The Deployment counts now, whose last sight is not kept.
            None if did_count => vec![News::Gone(id)],
            None => Vec::new(),
        }
    }

    /// A Rollout does not exist any more; there may be a Deployment.
    fn lose(&mut self, id: WorkloadId) -> Vec<News> {
        let was_known = self.rollouts.remove(&id).is_some();
        if was_known && self.is_listed { vec![News::Gone(id)] } else { Vec::new() }
    }

    fn deployment(&mut self, deployment: Box<Workload>) -> Vec<News> {
        let id = deployment.id.clone();
        let had_pods = self.deployments.contains(&id);
        self.note_deployment(&id, has_pods(&deployment));
        match self.rollouts.get(&id) {
            None => vec![News::Seen(deployment)],
            Some(Ok(rollout)) if !counts(rollout, has_pods(&deployment)) => vec![News::Seen(deployment)],
            // The warning comes or goes, or it is the Rollout now that counts.
            Some(Ok(_)) if had_pods != has_pods(&deployment) => self.say(&id).into_iter().collect(),
            Some(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{settled, version, web};

    fn deployment(pods: u32) -> Box<Workload> {
        Box::new(Workload { uid: "deployment".into(), ..settled(version("1"), 7, pods) })
    }

    fn rollout(pods: u32) -> Box<Workload> {
        Box::new(Workload { uid: "rollout".into(), object: Kind::Rollout, ..settled(version("2"), 1, pods) })
    }

    /// The UIDs of what counts; `?` for what cannot be read, `-` for what is gone.
    fn said(news: Vec<News>) -> Vec<String> {
        let word = |one| match one {
            News::Seen(workload) if workload.tuning.faults.is_empty() => workload.uid,
            News::Seen(workload) => format!("{}!", workload.uid),
            News::Unreadable(..) => "?".to_owned(),
            News::Gone(_) => "-".to_owned(),
        };
        news.into_iter().map(word).collect()
    }

    /// After both were listed, with these objects.
    fn listed(rollouts: &[Box<Workload>], deployments: &[Box<Workload>]) -> (Joining, Vec<String>) {
        let mut joining = Joining::default();
        let mut all = Vec::new();
        for (kind, found) in [(Kind::Rollout, rollouts), (Kind::Deployment, deployments)] {
            assert_eq!(said(joining.step(Event::Relisting(kind))), [""; 0]);
            all.extend(found.iter().flat_map(|one| said(joining.step(Event::Seen(one.clone())))));
            all.extend(said(joining.step(Event::Listed(kind))));
        }
        (joining, all)
    }

    #[test]
    fn nothing_of_a_rollout_is_said_before_deployments_are_listed_and_each_name_is_said_once() {
        assert_eq!(listed(&[rollout(2)], &[]).1, ["rollout"]);
        assert_eq!(listed(&[], &[deployment(2)]).1, ["deployment"]);
        assert_eq!(listed(&[rollout(2)], &[deployment(0)]).1, ["rollout"]);
        assert_eq!(listed(&[rollout(2)], &[deployment(2)]).1, ["rollout!"], "with a warning");
        assert_eq!(listed(&[rollout(0)], &[deployment(2)]).1, ["deployment"], "those pods serve");
        assert_eq!(listed(&[rollout(0)], &[deployment(0)]).1, ["rollout"]);
        let mut joining = Joining::default();
        assert_eq!(said(joining.step(Event::Seen(rollout(1)))), [""; 0]);
        assert_eq!(said(joining.step(Event::Gone(Kind::Rollout, web()))), [""; 0], "it was never said");
    }

    #[test]
    fn a_cluster_goes_from_a_deployment_to_a_rollout_and_back() {
        let (mut joining, _) = listed(&[], &[deployment(2)]);
        let mut step = |event| said(joining.step(event)).join(" ");
        assert_eq!(step(Event::Seen(rollout(0))), "", "it has no pods yet");
        assert_eq!(step(Event::Seen(deployment(2))), "deployment");
        assert_eq!(step(Event::Seen(rollout(1))), "rollout!");
        assert_eq!(step(Event::Seen(deployment(2))), "", "the Rollout counts");
        assert_eq!(step(Event::Seen(deployment(0))), "rollout");
        assert_eq!(step(Event::Gone(Kind::Deployment, web())), "rollout");
        assert_eq!(step(Event::Seen(deployment(3))), "rollout!");
        assert_eq!(step(Event::Seen(rollout(0))), "-", "who follows it looks, and finds the Deployment");
        assert_eq!(step(Event::Seen(deployment(0))), "rollout");
        assert_eq!(step(Event::Gone(Kind::Rollout, web())), "-");
        assert_eq!(step(Event::Seen(deployment(3))), "deployment");
        assert_eq!(step(Event::Gone(Kind::Deployment, web())), "-");
    }

    #[test]
    fn a_rollout_that_cannot_be_read_hides_a_deployment() {
        let (mut joining, _) = listed(&[], &[deployment(2)]);
        let why = || Unreadable::because("no");
        let mut step = |event| said(joining.step(event)).join(" ");
        assert_eq!(step(Event::Unreadable(Kind::Rollout, web(), why())), "?");
        assert_eq!(step(Event::Seen(deployment(2))), "");
        assert_eq!(step(Event::Unreadable(Kind::Deployment, web(), why())), "");
        assert_eq!(step(Event::NoRollouts), "-");
        assert_eq!(step(Event::Unreadable(Kind::Deployment, web(), why())), "?");
    }

    #[test]
    fn a_later_listing_says_all_rollouts_that_are_there_and_what_is_gone() {
        let (mut joining, _) = listed(&[rollout(2)], &[deployment(2)]);
        let mut step = |event| said(joining.step(event)).join(" ");
        assert_eq!(step(Event::Relisting(Kind::Deployment)), "");
        assert_eq!(step(Event::Listed(Kind::Deployment)), "rollout", "or a watch would take it for gone");
        assert_eq!(step(Event::Relisting(Kind::Rollout)), "");
        assert_eq!(step(Event::Listed(Kind::Rollout)), "-");
    }

    #[test]
    fn two_that_are_read_at_one_time_are_joined_by_the_same_rule() {
        let of = |deployment: Option<u32>, rollout_pods: Option<u32>| {
            let joined =
                joined(deployment.map(|pods| *self::deployment(pods)), rollout_pods.map(|pods| *rollout(pods)));
            said(joined.into_iter().map(|one| News::Seen(Box::new(one))).collect()).join(" ")
        };
        assert_eq!(of(None, None), "");
        assert_eq!(of(Some(0), None), "deployment");
        assert_eq!(of(None, Some(0)), "rollout");
        assert_eq!(of(Some(2), Some(2)), "rollout!");
        assert_eq!(of(Some(2), Some(0)), "deployment");
        assert_eq!(of(Some(0), Some(0)), "rollout");
    }
}
