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
//! 3. A Rollout whose template is that of a Deployment is said with it ([`resolved`]). A Deployment of another name to which a Rollout refers
//!    that counts is not said: its pods are about to go, and a version of it is one of the Rollout. Such a Deployment is kept whole; one
//!    that is not at hand is asked for, and nothing is said of the Rollout before.
//! 4. Where another object counts from now on that is not at hand, the one before is said to be gone: whoever follows it looks afresh,
//!    and [`joined`] decides by the same rule.
//!
//! Whole Rollouts are kept, of Deployments only which have pods: there are tens of thousands of them. Not for what a change of the object
//! means; that is `rollouts`'.

use std::collections::{BTreeMap, BTreeSet};

use crate::workloads::referring::resolved;
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
    /// A Deployment that was asked for was read.
    Read(WorkloadId, Option<Box<Workload>>),
}

/// What counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Seen(Box<Workload>),
    Unreadable(WorkloadId, Unreadable),
    /// Neither of the two is there, or another one is than the last that counted.
    Gone(WorkloadId),
    /// This Deployment is to be read.
    Wanted(WorkloadId),
}

/// The Rollouts and Deployments of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joining {
    rollouts: BTreeMap<WorkloadId, Result<Box<Workload>, Unreadable>>,
    /// Deployments with pods.
    deployments: BTreeSet<WorkloadId>,
    /// Deployments that Rollouts refer to: those Rollouts, and how it was last seen.
    templates: BTreeMap<WorkloadId, Template>,
    /// Deployments were listed to the end.
    is_listed: bool,
    /// What the listings under way have contained so far: Rollouts, and Deployments with pods.
    listed_rollouts: Option<BTreeSet<WorkloadId>>,
    listed_deployments: Option<BTreeSet<WorkloadId>>,
    /// Of the templates, those that the listing under way has contained.
    listed_templates: BTreeSet<WorkloadId>,
}

/// A Deployment that Rollouts refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Template {
    by: BTreeSet<WorkloadId>,
    /// It is asked for: a listing need not contain it.
    asked: bool,
    seen: Seen,
}

/// How it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Seen {
    /// Not yet; it is asked for, or is being listed.
    #[default]
    NotYet,
    Missing,
    Unreadable(Unreadable),
    Whole(Box<Workload>),
}

/// Which of two objects of one name counts, read at one time; `template`: the Deployment that the Rollout refers to.
///
/// # Errors
/// When a Rollout counts whose template cannot be had.
pub fn joined(
    deployment: Option<Workload>,
    rollout: Option<Workload>,
    template: Option<&Workload>,
) -> Result<Option<Workload>, Unreadable> {
    let Some(rollout) = rollout else { return Ok(deployment) };
    let has_own = deployment.as_ref().is_some_and(has_pods);
    if !counts(&rollout, has_own || template.is_some_and(has_pods)) {
        return Ok(deployment);
    }
    Ok(Some(beside(resolved(rollout, template)?, has_own)))
}

/// The same as far as both are at hand: the object, whatever its template is.
pub fn one_of(deployment: Option<Workload>, rollout: Option<Workload>) -> Option<Workload> {
    let has_pods = deployment.as_ref().is_some_and(has_pods);
    if rollout.as_ref().is_some_and(|rollout| counts(rollout, has_pods)) { rollout } else { deployment }
}

/// Whether a Deployment of another name is not followed, because a Rollout refers to it that counts.
pub fn takes(rollout: &Workload, deployment: &Workload) -> bool {
    let refers = rollout.template_of.as_ref().is_some_and(|of| of.deployment == deployment.id);
    refers && rollout.id != deployment.id && counts(rollout, has_pods(deployment))
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
            "a Deployment of the same name has pods, too: the Rollout counts; scale the Deployment to zero or, where the Rollout does not \
             refer to it, remove it once the Rollout serves alone"
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
            Event::Relisting(_) => {
                self.listed_deployments = Some(BTreeSet::new());
                self.listed_templates.clear();
            }
            Event::Seen(workload) if workload.object == Kind::Rollout => {
                return self.rollout(workload.id.clone(), Ok(workload));
            }
            Event::Seen(workload) => {
                let id = workload.id.clone();
                return self.deployment(&id, Seen::Whole(workload));
            }
            Event::Unreadable(Kind::Rollout, id, why) => return self.rollout(id, Err(why)),
            Event::Unreadable(_, id, why) => return self.deployment(&id, Seen::Unreadable(why)),
            Event::Gone(Kind::Rollout, id) => return self.lose(id),
            Event::Gone(_, id) => return self.deployment(&id, Seen::Missing),
            Event::Listed(Kind::Rollout) => {
                let Some(listed) = self.listed_rollouts.take() else { return Vec::new() };
                let gone: Vec<WorkloadId> = self.rollouts.keys().filter(|id| !listed.contains(id)).cloned().collect();
                return gone.into_iter().flat_map(|id| self.lose(id)).collect();
            }
            Event::Listed(_) => {
                self.is_listed = true;
                self.deployments =
                    self.listed_deployments.take().unwrap_or_else(|| std::mem::take(&mut self.deployments));
                let listed = std::mem::take(&mut self.listed_templates);
                for (_, template) in self.templates.iter_mut().filter(|(id, _)| !listed.contains(id)) {
                    if !(template.asked && template.seen == Seen::NotYet) {
                        template.seen = Seen::Missing;
                    }
                }
                return self.rollouts.keys().filter_map(|id| self.say(id)).collect();
            }
            Event::NoRollouts => {
                let gone: Vec<WorkloadId> = self.rollouts.keys().cloned().collect();
                return gone.into_iter().flat_map(|id| self.lose(id)).collect();
            }
            Event::Read(id, found) => {
                let is_asked = self.templates.get(&id).is_some_and(|template| template.seen == Seen::NotYet);
                let seen = found.map_or(Seen::Missing, Seen::Whole);
                return if is_asked { self.deployment(&id, seen) } else { Vec::new() };
            }
        }
        Vec::new()
    }

    /// What is to be said of a Rollout that is known, if it counts, Deployments are listed, and its template is at hand.
    fn say(&self, id: &WorkloadId) -> Option<News> {
        match self.rollouts.get(id).filter(|_| self.is_listed)? {
            Err(why) => Some(News::Unreadable(id.clone(), why.clone())),
            Ok(rollout) if self.counts(rollout) => {
                let template = rollout.template_of.as_ref().and_then(|of| self.templates.get(&of.deployment));
                let whole = match template.map(|template| &template.seen) {
                    Some(Seen::NotYet) => return None,
                    Some(Seen::Unreadable(why)) => {
                        let why = format!("its template is that of a Deployment that cannot be read: {why}");
                        return Some(News::Unreadable(id.clone(), Unreadable::because(why)));
                    }
                    Some(Seen::Whole(whole)) => Some(&**whole),
                    Some(Seen::Missing) | None => None,
                };
                Some(match resolved(Workload::clone(rollout), whole) {
                    Ok(rollout) => News::Seen(Box::new(beside(rollout, self.deployments.contains(id)))),
                    Err(why) => News::Unreadable(id.clone(), why),
                })
            }
            Ok(_) => None,
        }
    }

    /// Whether Deployments are listed, or are being listed.
    const fn has_begun(&self) -> bool {
        self.is_listed || self.listed_deployments.is_some()
    }

    /// Whether a Rollout counts, and no Deployment of its name or with its template.
    fn counts(&self, rollout: &Workload) -> bool {
        let template = rollout.template_of.as_ref().is_some_and(|of| self.deployments.contains(&of.deployment));
        counts(rollout, template || self.deployments.contains(&rollout.id))
    }

    /// Whether a Deployment is not said, because a Rollout of another name refers to it that counts.
    fn is_taken(&self, deployment: &WorkloadId) -> bool {
        let by = self.templates.get(deployment).into_iter().flat_map(|template| &template.by);
        let mut rollouts = by.filter(|id| *id != deployment).filter_map(|id| self.rollouts.get(id)?.as_ref().ok());
        rollouts.any(|rollout| self.counts(rollout))
    }

    /// What is to be said of a Deployment with a template of Rollouts, which was taken before, or was not.
    fn release(&self, id: &WorkloadId, was_taken: bool) -> Option<News> {
        match (was_taken, self.is_taken(id)) {
            // Before Deployments are listed, none was said.
            (false, true) if !self.has_begun() => None,
            (false, true) => Some(News::Gone(id.clone())).filter(|_| !self.rollouts.contains_key(id)),
            (true, false) if !self.rollouts.contains_key(id) => match &self.templates.get(id)?.seen {
                Seen::Whole(whole) => Some(News::Seen(whole.clone())),
                Seen::NotYet | Seen::Missing | Seen::Unreadable(_) => Some(News::Gone(id.clone())),
            },
            (true, _) | (false, false) => None,
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

    /// The Deployment that a known Rollout refers to.
    fn template_of(&self, rollout: &WorkloadId) -> Option<WorkloadId> {
        let rollout = self.rollouts.get(rollout)?.as_ref().ok()?;
        rollout.template_of.as_ref().map(|of| of.deployment.clone())
    }

    fn rollout(&mut self, id: WorkloadId, rollout: Result<Box<Workload>, Unreadable>) -> Vec<News> {
        self.note_rollout(&id);
        let did_count = self.say(&id).is_some();
        let old = self.template_of(&id);
        let taken: Vec<bool> = old.iter().map(|of| self.is_taken(of)).collect();
        self.rollouts.insert(id.clone(), rollout);
        let new = self.template_of(&id);
        let is_new = new.as_ref().is_some_and(|of| !self.templates.contains_key(of));
        let was_taken = new.as_ref().filter(|of| old.as_ref() != Some(of)).map(|of| self.is_taken(of));
        // What a listing contains that has not begun comes by itself.
        let asked = self.has_begun();
        if let Some(of) = &new {
            let fresh = || Template { asked, ..Template::default() };
            self.templates.entry(of.clone()).or_insert_with(fresh).by.insert(id.clone());
        }
        let mut news: Vec<News> = match self.say(&id) {
            Some(news) => vec![news],
            // Its template is not at hand: it counts, and is said as soon as that is.
            None if self.rollouts.get(&id).is_some_and(|is| is.as_ref().is_ok_and(|is| self.counts(is))) => Vec::new(),
            // The Deployment counts now, whose last sight is not kept.
            None if did_count => vec![News::Gone(id.clone())],
            None => Vec::new(),
        };
        if let Some(of) = old.filter(|of| new.as_ref() != Some(of)) {
            news.extend(self.part(&id, &of, taken.contains(&true)));
        }
        if let Some(of) = &new {
            news.extend(self.release(of, was_taken.unwrap_or_else(|| taken.contains(&true))));
        }
        news.extend(new.filter(|_| is_new && asked).map(News::Wanted));
        news
    }

    /// A Rollout does not refer to this Deployment any more, which was taken then, or was not.
    fn part(&mut self, rollout: &WorkloadId, of: &WorkloadId, was_taken: bool) -> Option<News> {
        self.templates.get_mut(of)?.by.remove(rollout);
        let news = self.release(of, was_taken);
        self.templates.retain(|_, template| !template.by.is_empty());
        news
    }

    /// A Rollout does not exist any more; there may be a Deployment.
    fn lose(&mut self, id: WorkloadId) -> Vec<News> {
        let of = self.template_of(&id);
        let was_taken = of.as_ref().is_some_and(|of| self.is_taken(of));
        let was_known = self.rollouts.remove(&id).is_some();
        let released = of.and_then(|of| self.part(&id, &of, was_taken));
        let gone = Some(News::Gone(id)).filter(|_| was_known);
        gone.into_iter().chain(released).filter(|_| self.is_listed).collect()
    }

    fn deployment(&mut self, id: &WorkloadId, seen: Seen) -> Vec<News> {
        let had_pods = self.deployments.contains(id);
        let by: Vec<WorkloadId> =
            self.templates.get(id).into_iter().flat_map(|template| template.by.iter().cloned()).collect();
        let (was_taken, counted) = (self.is_taken(id), by.iter().map(|id| self.say(id).is_some()).collect::<Vec<_>>());
        let has = matches!(&seen, Seen::Whole(workload) if has_pods(workload));
        if !matches!(seen, Seen::Unreadable(_)) {
            self.note_deployment(id, has);
        }
        if let Some(template) = self.templates.get_mut(id) {
            template.seen = seen.clone();
            self.listed_templates.extend([id.clone()]);
        }
        let mut news = Vec::new();
        if self.is_taken(id) {
            news.extend(self.release(id, was_taken));
        } else {
            news.extend(self.itself(id, seen, had_pods != has));
        }
        for (rollout, did_count) in by.iter().zip(counted).filter(|(rollout, _)| *rollout != id) {
            match self.say(rollout) {
                Some(said) => news.push(said),
                None if did_count => news.push(News::Gone(rollout.clone())),
                None => {}
            }
        }
        news
    }

    /// What is to be said under the name of a Deployment.
    fn itself(&self, id: &WorkloadId, seen: Seen, pods_changed: bool) -> Option<News> {
        let refers = self.templates.get(id).is_some_and(|template| template.by.contains(id));
        match (self.rollouts.get(id), seen) {
            (None, Seen::Whole(deployment)) => Some(News::Seen(deployment)),
            (None, Seen::Unreadable(why)) => Some(News::Unreadable(id.clone(), why)),
            (None, Seen::Missing | Seen::NotYet) => Some(News::Gone(id.clone())),
            (Some(Ok(rollout)), Seen::Whole(deployment)) if !self.counts(rollout) => Some(News::Seen(deployment)),
            // The warning comes or goes, the template is another one, or it is the Rollout now that counts.
            (Some(Ok(_)), Seen::Whole(_)) if pods_changed || refers => self.say(id),
            (Some(_), Seen::Unreadable(_)) if refers => self.say(id),
            (Some(_), Seen::Missing) => self.say(id),
            (Some(_), Seen::Whole(_) | Seen::Unreadable(_) | Seen::NotYet) => None,
        }
    }
}

#[cfg(test)]
mod tests;
