//! What is outside of a Pipeline: the API server, targets, a forge with its people, and a receiver of notices.

use std::collections::BTreeSet;

use kernel::id::{Environment, PromotionSeq};
use kernel::names::selector::LabelSelector;
use notices::notice::{Kind, Notice};
use objects::apps::app::{Sight, TargetKey};
use objects::asked::{Answer, Ask, Opening};
use objects::owned::{Effect as Own, Event as Life};
use objects::pipeline::freezes::{Freezes, PromotionFreeze};
use objects::pipeline::proposal::{Order, Proposed, Request, RequestState};
use objects::pipeline::spec::Advance;
use objects::pipeline::{Effect, Event};

use super::world::{How, Mutant, NAMES, State, World, index, is_new, number};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PullRequest {
    pub id: String,
    pub env: usize,
    pub seq: PromotionSeq,
    pub revision: u8,
    pub state: Standing,
    /// It is in the repository of the changed spec.
    pub is_new: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    Open,
    Merged,
    Closed,
}

impl PullRequest {
    pub fn is_open(&self) -> bool {
        self.state == Standing::Open
    }
}

impl State {
    /// Does what is asked, and says how that went.
    pub fn perform(&mut self, world: &World, effect: &Effect, worker: Option<usize>) -> Option<Event> {
        match effect {
            Effect::Object(Own::Store(status, over)) => {
                if *over != self.object.version.to_string() && world.mutant != Mutant::NoCompareAndSet {
                    return Some(Event::Object(Life::Conflicted(Box::new(world.object(&self.object)))));
                }
                self.past.judge_stored(world, self.object.changed, &self.object.status, status);
                self.object.status = status.as_ref().clone();
                self.object.version += 1;
                self.object.writer = worker;
                Some(Event::Object(Life::Stored { version: self.object.version.to_string(), whole: true }))
            }
            Effect::Object(Own::Look) => Some(Event::Object(Life::Looked(Some(Box::new(world.object(&self.object)))))),
            Effect::Recheck(name, seq, targets) => {
                Some(Event::Rechecked(name.clone(), *seq, self.look_afresh(world, name, *seq, targets, worker)))
            }
            Effect::Propose(order) => {
                let outcome = self.propose(world, order);
                Some(Event::Proposed(order.clone(), outcome))
            }
            Effect::LookAtProposal(order, number) => {
                let found = &self.requests[usize::try_from(*number).unwrap()];
                let state = match found.state {
                    // Nobody knows it there.
                    _ if found.is_new != is_new(order) => RequestState::Closed,
                    Standing::Open => RequestState::Open,
                    Standing::Merged => RequestState::Merged,
                    Standing::Closed => RequestState::Closed,
                };
                Some(Event::ProposalSeen(order.clone(), state))
            }
            Effect::Withdraw(order, ..) => {
                let ours = |request: &&mut PullRequest| {
                    let place = (request.env, request.is_new) == (index(&order.environment), is_new(order));
                    place && request.seq <= order.seq && request.is_open()
                };
                let found = self.requests.iter_mut().filter(ours).filter(|_| world.mutant != Mutant::NoWithdrawal);
                found.for_each(|request| request.state = Standing::Closed);
                Some(Event::Withdrawn(order.clone()))
            }
            Effect::Ask(name, Ask::Calendar(topic, _, freezes)) => {
                // Those of the cluster have no end here.
                let open = freezes.len() < 2 && freezes.iter().all(|freeze| freeze.to < i64::MAX);
                let opening = Opening { open, changes_after: None, words: "sale".to_owned() };
                Some(Event::Answered(name.clone(), Answer::CalendarRead(*topic, opening)))
            }
            Effect::Object(Own::Tell(notice)) => {
                self.receive(world, notice);
                Some(Event::Object(Life::Told(notice.id.clone())))
            }
            Effect::Ask(_, Ask::Verdict(..))
            | Effect::SeeEdge(..)
            | Effect::Follow(_)
            | Effect::FollowSecrets(_)
            | Effect::Object(Own::End) => None,
        }
    }

    /// What the targets really are. What a promotion rests on is remembered for the judge.
    fn look_afresh(
        &mut self,
        world: &World,
        name: &Environment,
        seq: PromotionSeq,
        targets: &[TargetKey],
        worker: Option<usize>,
    ) -> Vec<(TargetKey, Sight)> {
        let says = |target: &TargetKey| NAMES.iter().position(|name| *name == target.namespace).unwrap();
        let truth = |env: usize| match (world.mutant, worker) {
            (Mutant::NoRecheck, Some(worker)) => self.workers[worker].shown[env].unwrap_or(self.truth[env]),
            _ => self.truth[env],
        };
        let sight = |target: &TargetKey| {
            let env = says(target);
            world.sight(env, world.digit(truth(env), world.part(target)))
        };
        let fresh: Vec<_> = targets.iter().map(|target| (target.clone(), sight(target))).collect();
        let read = |env: &usize| world.targets(*env).iter().all(|target| targets.contains(target));
        let first = self.rested_on(world, index(name), read);
        self.past.looked.insert((index(name), seq));
        self.past.reads.extend(first.map(|first| (index(name), seq, first)));
        fresh
    }

    /// The watch of freezes tells a worker what there is: one for test, where somebody made it, and one that is for others.
    pub fn show_freezes(&mut self, world: &World, worker: usize) {
        self.workers[worker].frozen = self.frozen;
        let freeze = |name: &str, environment: usize| PromotionFreeze {
            name: name.to_owned(),
            reason: "incident".to_owned(),
            from: None,
            until: None,
            selector: LabelSelector::default(),
            namespaces: BTreeSet::new(),
            environments: [super::world::environment(environment)].into(),
            fault: None,
        };
        let is_told = self.frozen && world.mutant != Mutant::FreezesUntold;
        let all: Vec<_> = is_told.then(|| freeze("test", 1)).into_iter().chain([freeze("staging", 0)]).collect();
        self.feed(world, worker, Event::Frozen(Freezes::Known(all.into())));
    }

    /// The revision for which everything before an environment was as it must be, if all of that was read. Step by step, what one of
    /// them went on to is newer.
    fn rested_on(&self, world: &World, env: usize, read: impl Fn(&usize) -> bool) -> Option<u8> {
        let mut before = world.before(env);
        if world.advance == Advance::Stepwise {
            let place = |runs: &u8| world.head.iter().position(|one| one == runs);
            let all = before.iter().all(read);
            return before.into_iter().map(|env| self.truth[env]).min_by_key(place).filter(|_| all);
        }
        let further: Vec<usize> = before.iter().flat_map(|env| world.before(*env)).collect();
        before.extend(further);
        let all = before.iter().all(&read);
        let mut really = before.into_iter().map(|env| self.truth[env]);
        really.next().filter(|first| all && really.all(|runs| runs == *first))
    }

    /// A program that deploys what it is told, once, and passes over what is older than what it has obeyed.
    fn receive(&mut self, world: &World, notice: &Notice) {
        if self.had.contains(&notice.id) {
            return;
        }
        self.had.push(notice.id.clone());
        self.had.sort();
        let Some(promotion) = notice.about.promotion().filter(|_| notice.kind == Kind::PromotionStarted) else {
            return;
        };
        let env = index(&promotion.environment);
        self.past.judge_told(env, PromotionSeq(notice.seq.0), number(promotion.revision.as_ref().unwrap()));
        if matches!(world.how[env - 1], How::Notice | How::ManualNotice) && notice.seq > self.obeyed[env] {
            self.obeyed[env] = notice.seq;
            self.desired[env] = number(promotion.revision.as_ref().unwrap());
        }
    }

    /// A forge, as `proposal` describes it.
    fn propose(&mut self, world: &World, order: &Order) -> Proposed {
        let env = index(&order.environment);
        let by_branch = world.mutant == Mutant::AdoptsByBranch;
        let late = world.mutant == Mutant::LateOrderPushes;
        let says = |number: usize, request: &PullRequest| {
            let found = Request { url: String::new(), number: number as u64, commit: None, lacks: Default::default() };
            match request.state {
                Standing::Open => Proposed::Open(found),
                Standing::Merged => Proposed::Merged(found),
                Standing::Closed => Proposed::Closed(found),
            }
        };
        let own = self.requests.iter().enumerate();
        let mut own = own.filter(|(_, request)| (request.env, request.is_new) == (env, is_new(order)));
        if let Some((number, found)) = own.clone().find(|(_, request)| request.id == order.id || by_branch) {
            return says(number, found);
        }
        if let Some(newer) = own.clone().map(|(_, request)| request.seq).max().filter(|seq| *seq > order.seq && !late) {
            return Proposed::Outdated(newer);
        }
        let wanted = number(&order.revision);
        if self.desired[env] == wanted {
            return Proposed::NothingToChange;
        }
        self.past.judge_created(env, order.seq);
        let (id, state) = (order.id.clone(), Standing::Open);
        let made = PullRequest { id, env, seq: order.seq, revision: wanted, state, is_new: is_new(order) };
        let rewritten = own.find(|(_, request)| request.is_open()).map(|(number, _)| number);
        let number = rewritten.unwrap_or(self.requests.len());
        match rewritten {
            Some(number) => self.requests[number] = made,
            None => self.requests.push(made),
        }
        says(number, &self.requests[number])
    }
}

/// What is said of a call that was not answered.
pub fn failed(effect: &Effect) -> Option<Event> {
    let why = "no answer".to_owned();
    match effect {
        Effect::Object(Own::Store(..)) => Some(Event::Object(Life::StoreFailed(why))),
        Effect::Object(Own::Look) => Some(Event::Object(Life::LookFailed(why))),
        Effect::Recheck(name, seq, _) => Some(Event::RecheckFailed(name.clone(), *seq, why)),
        Effect::Propose(order) => Some(Event::ProposeFailed(order.clone(), why, false)),
        Effect::LookAtProposal(order, _) => Some(Event::ProposalUnseen(order.clone(), why)),
        Effect::Withdraw(order, ..) => Some(Event::WithdrawFailed(order.clone(), why, false)),
        Effect::Ask(name, Ask::Calendar(topic, ..)) => {
            Some(Event::Answered(name.clone(), Answer::CalendarFailed(*topic, why)))
        }
        Effect::Object(Own::Tell(notice)) => Some(Event::Object(Life::TellFailed(notice.id.clone(), why))),
        Effect::Ask(_, Ask::Verdict(..))
        | Effect::SeeEdge(..)
        | Effect::Follow(_)
        | Effect::FollowSecrets(_)
        | Effect::Object(Own::End) => None,
    }
}
