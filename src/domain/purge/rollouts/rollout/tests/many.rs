//! Sites with several distributions, up to as many as an account may have: each is purged, and the records and notices
//! of them stay within their bounds.

use std::collections::VecDeque;

use super::*;
use crate::bounds::tenants::{Allowance, Tenants};
use crate::purges::catalog::Found;
use crate::records::record::{Edge, PURGES_NAMED_MAX, Purge, PurgeState, RECORD_BYTES_MAX};
use crate::records::record_codec;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

type Becomes = dyn Fn(&DistributionId) -> Vec<Progress>;

/// A world in which CloudFront decides on each distribution by itself.
struct Site {
    machine: Rollout,
    now: Timestamp,
    workload: Workload,
    distributions: BTreeSet<DistributionId>,
    /// Those with cache tags switched on.
    tagged: BTreeSet<DistributionId>,
    /// What the owner wants purged.
    paths: Option<PathSet>,
    orders: Vec<Order>,
    /// What becomes of the purge of a distribution.
    fate: Box<Becomes>,
    /// How often each was ordered.
    ordered: BTreeMap<DistributionId, u32>,
    told: Vec<Notice>,
    /// The longest record that was written, in bytes.
    longest: usize,
    /// Purges whose answers are still to come, oldest first.
    pending: VecDeque<(Reference, Progress)>,
}

fn fresh(_: &DistributionId) -> Vec<Progress> {
    vec![Progress::Created("I1EXAMPLE12345".into()), Progress::Completed(None)]
}

fn allowing_all() -> Policy {
    let namespaces = BTreeSet::from(["shop".to_owned()]);
    let allowance = Allowance { namespaces, distributions_max: Some(u32::MAX), ..Allowance::default() };
    Policy { tenants: Tenants { allowed: vec![allowance], ..Tenants::default() }, ..Policy::default() }
}

impl Site {
    /// One whose operator allows it any number of distributions.
    fn begin(distributions: usize, fate: impl Fn(&DistributionId) -> Vec<Progress> + 'static) -> Self {
        Self::begin_under(allowing_all(), distributions, fate)
    }

    fn begin_under(
        policy: Policy,
        distributions: usize,
        fate: impl Fn(&DistributionId) -> Vec<Progress> + 'static,
    ) -> Self {
        let workload = complete("a", 1);
        let record = baseline(&workload, workload.version.as_ref().unwrap(), Seq(0));
        let ids = (0..distributions).map(|n| format!("E{n:013}").parse().unwrap());
        Self {
            machine: Rollout::resume(identity(), policy, Seq(0), Some(record)),
            now: Timestamp::from_millis(0),
            workload,
            distributions: ids.collect(),
            tagged: BTreeSet::new(),
            paths: None,
            orders: Vec::new(),
            fate: Box::new(fate),
            ordered: BTreeMap::new(),
            told: Vec::new(),
            longest: 0,
            pending: VecDeque::new(),
        }
    }

    /// Rolls a version out, and goes on until nothing is left to do within the hour.
    fn roll_out(&mut self, tag: &str, generation: i64) {
        self.workload = complete(tag, generation);
        self.workload.tuning.paths = self.paths.clone().map(Into::into);
        self.go_on([Event::Seen(Box::new(self.workload.clone()))].into());
    }

    fn go_on(&mut self, events: VecDeque<Event>) {
        self.go_on_for(Duration::from_secs(60 * 60), events);
    }

    fn go_on_for(&mut self, time: Duration, mut events: VecDeque<Event>) {
        let until = self.now.after(time);
        loop {
            let purged = || self.pending.pop_front().map(|(reference, progress)| Event::Purged(reference, progress));
            let effects = match (events.pop_front().or_else(purged), self.machine.next_deadline()) {
                (Some(event), _) => self.machine.step(self.now, event),
                (None, Some(next)) if next < until => {
                    self.now = self.now.max(next);
                    self.machine.tick(self.now)
                }
                (None, _) => return,
            };
            for effect in effects {
                assert_eq!(self.machine.breaks(&effect), [], "{effect:?}");
                events.extend(self.answer(&effect));
            }
        }
    }

    fn answer(&mut self, effect: &Effect) -> Vec<Event> {
        if let Effect::Store(record) = effect {
            let text = record_codec::encode(record).expect("a record that can be written");
            self.longest = self.longest.max(text.len());
        }
        if let Effect::Tell(notice) = effect {
            self.told.push((**notice).clone());
        }
        if let Effect::Match(vector, plan) | Effect::Compare(vector, plan) = effect {
            let found = Found { tagged: self.tagged.clone(), ..Found::from(self.distributions.clone()) };
            return vec![Event::Matched(vector.clone(), plan.clone(), found)];
        }
        if let Effect::Purge(order) = effect {
            self.purge(order);
            return Vec::new();
        }
        answers(effect, Some(&self.workload))
    }

    /// CloudFront's answers come when nothing else is under way.
    fn purge(&mut self, order: &Order) {
        *self.ordered.entry(order.distribution.clone()).or_default() += 1;
        self.orders.push(order.clone());
        let mut kept = self.machine.durable().unwrap().all_kept();
        let ours = |purge: &Purge| purge.reference == order.reference;
        let vote = kept.find(|vote| vote.purges.listed.get(&order.distribution).is_some_and(ours)).unwrap();
        if order.paths != vote.plan.paths {
            // What was chosen is durable before it is sent.
            assert_eq!(vote.purges.listed[&order.distribution].sent.as_ref(), Some(&order.paths));
        }
        let fate = (self.fate)(&order.distribution).into_iter();
        self.pending.extend(fate.map(|progress| (order.reference.clone(), progress)));
    }

    fn told(&self, kind: Kind) -> Vec<&Notice> {
        self.told.iter().filter(|notice| notice.kind == kind).collect()
    }

    fn ends(&self) -> Vec<&Outcome> {
        self.machine.durable().unwrap().history.iter().map(|closed| &closed.outcome).collect()
    }
}

/// Decision 39: beyond the bounds the first by id are purged, and the others are named and counted.
#[test]
fn a_workload_with_more_distributions_than_it_may_purge_is_partly_purged_and_says_so() {
    for all in [12, 44, 10_000] {
        let mut site = Site::begin_under(Policy::default(), all, fresh);
        site.roll_out("b", 2);
        let purged: Vec<String> = site.ordered.keys().map(ToString::to_string).collect();
        assert_eq!(purged, (0..10).map(|n| format!("E{n:013}")).collect::<Vec<_>>(), "{all}");
        let closed = site.machine.durable().unwrap().history.last().unwrap();
        assert_eq!(closed.outcome, Outcome::Partly, "{all}");
        assert_eq!(closed.purges.len() + closed.more, all, "{all}");
        let end = site.told.iter().find(|notice| notice.kind == Kind::PurgeFailed).unwrap();
        assert!(end.message.contains("E0000000000010 (beyond the 10 distributions"), "{}", end.message);
        assert!(end.message.contains("tenants.allow"), "{}", end.message);
        assert_eq!(site.told.iter().filter(|notice| notice.kind == Kind::PurgeFailed).count(), 1, "{all}");
    }
}

// Faults: T5
/// More than ten paths are sent as the beginnings they have in common, under the reference of what was voted for.
#[test]
fn many_paths_are_sent_as_few() {
    let mut site = Site::begin(1, fresh);
    let paths = |texts: &[String]| texts.iter().map(|text| text.parse().unwrap()).collect::<PathSet>();
    let many: Vec<String> = (0..30).map(|n| format!("/{}/{n}", ["shop", "blog", "news"][n % 3])).collect();
    site.paths = Some(paths(&many));
    site.roll_out("b", 2);
    let sent = &site.orders[0].paths;
    assert!(sent.len() <= 10 && sent.covers(&paths(&many)), "{sent}");
    assert!(!sent.is_everything());
    assert_eq!(site.machine.durable().unwrap().history.last().unwrap().outcome, Outcome::Purged);
}

// Faults: T5
/// What the budget of the hour does not cover is sent as everything, and not before that is on record.
#[test]
fn a_namespace_that_has_used_up_its_paths_sends_everything_instead() {
    let asked = std::cell::Cell::new(false);
    let spent = move |id: &DistributionId| if asked.replace(true) { fresh(id) } else { vec![Progress::OverBudget] };
    let mut site = Site::begin(1, spent);
    site.paths = Some(["/a", "/b"].iter().map(|text| text.parse().unwrap()).collect());
    site.roll_out("b", 2);
    let sent: Vec<String> = site.orders.iter().map(|order| order.paths.to_string()).collect();
    assert_eq!(sent, ["/a /b", "/*"]);
    assert_eq!(site.orders[0].reference, site.orders[1].reference);
}

#[test]
fn each_of_any_number_of_distributions_is_purged_once_and_the_end_is_told() {
    for distributions in [1, 2, PURGES_NAMED_MAX + 1, 52, 53, 400, 560, 650, 10_000] {
        let mut site = Site::begin(distributions, fresh);
        site.roll_out("b", 2);
        assert_eq!(site.ordered.len(), distributions);
        assert!(site.ordered.values().all(|times| *times == 1), "{distributions}");
        assert_eq!(site.ends(), [&Outcome::Purged], "{distributions}");
        let told = site.told(Kind::PurgeCompleted);
        assert_eq!(told.len(), 1, "{distributions}");
        let mentions = told[0].about.mentions().expect("a notice about a workload");
        assert_eq!((mentions.purges.len(), mentions.cut), (distributions.min(20), distributions > 20));
        let more = format!(", … and {} more", distributions.saturating_sub(10));
        assert_eq!(told[0].message.ends_with(&more), distributions > 10, "{}", told[0].message);
        assert!(told[0].message.len() < 1024, "{}", told[0].message);
        assert!(site.longest < RECORD_BYTES_MAX / 2, "{distributions}: {} bytes", site.longest);
        let ended = closed(site.machine.durable().unwrap().history.last().unwrap());
        assert_eq!(ended.contains(&more), distributions > 10, "{ended}");
    }
}

#[test]
fn a_life_that_begins_among_many_distributions_purges_the_rest() {
    let mut site = Site::begin(400, |distribution| {
        // The last third is not reached in the first life.
        if distribution.as_str() < "E0000000000250" { fresh(distribution) } else { Vec::new() }
    });
    site.roll_out("b", 2);
    assert_eq!(site.ends(), Vec::<&Outcome>::new());
    let record = site.machine.durable().cloned();
    site.machine = Rollout::resume(identity(), allowing_all(), Seq(0), record);
    site.fate = Box::new(fresh);
    site.roll_out("b", 2);
    assert_eq!((site.ordered.len(), site.ends()), (400, vec![&Outcome::Purged]));
    assert_eq!(site.told(Kind::PurgeCompleted).len(), 1);
}

#[test]
fn trouble_with_many_distributions_is_told_in_few_notices_and_counted_at_the_end() {
    let mut site = Site::begin(1_000, |distribution| {
        if distribution.as_str().ends_with('7') {
            vec![Progress::Impossible("NoSuchDistribution: ".repeat(50))]
        } else {
            fresh(distribution)
        }
    });
    site.roll_out("b", 2);
    assert_eq!(site.ordered.len(), 1_000);
    let failures = site.told(Kind::PurgeFailed);
    assert!(failures.len() <= 10, "{}", failures.len());
    assert_eq!(site.ends(), [&Outcome::Partly]);
    let end = &failures.last().unwrap().message;
    assert!(end.starts_with("partly purged: ") && end.contains(", … and 890 more; "), "{end}");
    assert!(end.ends_with(", … and 97 more"), "{end}");
    assert!(failures.iter().any(|notice| notice.message.starts_with("more distributions")));
    assert!(site.longest < RECORD_BYTES_MAX / 2, "{} bytes", site.longest);
}

/// A site of 400 distributions, all of which are denied for an hour.
fn denied() -> Site {
    let mut site = Site::begin(400, |_| vec![Progress::Failing("AccessDenied".to_owned())]);
    site.roll_out("b", 2);
    assert_eq!(site.ends(), [&Outcome::Owed]);
    let told: Vec<&str> = site.told(Kind::PurgeOwed).iter().map(|notice| notice.message.as_str()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("; 368 more distributions wait until some of these are purged"), "{told:?}");
    site.fate = Box::new(fresh);
    site
}

#[test]
fn of_a_large_site_that_was_denied_all_is_purged_once_it_is_allowed() {
    let mut site = denied();
    assert_eq!(site.ordered.len(), 32);
    // As the purger does that tries them on.
    for order in &site.orders {
        let reference = || order.reference.clone();
        site.pending.push_back((reference(), Progress::Created("I1EXAMPLE12345".into())));
        site.pending.push_back((reference(), Progress::Completed(None)));
    }
    site.go_on(VecDeque::new());
    let references: BTreeSet<&Reference> = site.orders.iter().map(|order| &order.reference).collect();
    assert_eq!((site.ordered.len(), references.len()), (400, 400));
    assert_eq!((site.ends(), site.told(Kind::PurgeCompleted).len()), (vec![&Outcome::Purged], 1));
    let record = site.machine.durable().unwrap();
    assert_eq!((record.edge == Edge::Settled, record.owed.len()), (true, 0));
    assert!(site.longest < RECORD_BYTES_MAX / 2, "{} bytes", site.longest);
}

#[test]
fn why_a_purge_is_refused_is_in_the_record_until_it_is_made() {
    let refused = |id: &DistributionId| match id.as_str() {
        "E0000000000000" => fresh(id),
        _ => vec![Progress::Failing("AccessDenied: cloudfront:CreateInvalidation".to_owned())],
    };
    let mut site = Site::begin(2, refused);
    site.workload = complete("b", 2);
    site.go_on_for(Duration::from_secs(30), [Event::Seen(Box::new(site.workload.clone()))].into());
    // What a person reads who has the ledger alone.
    let words = |site: &Site| {
        let (workload, clock) = (identity().workload, (Duration::ZERO, Duration::ZERO));
        let record = site.machine.durable().unwrap();
        let words = Summary::new(&workload, record, None, None, clock, &Policy::default());
        (words.state, words.next)
    };
    let (state, next) = words(&site);
    let why = "invalidation of E0000000000001 is not made yet: AccessDenied: cloudfront:CreateInvalidation";
    assert!(state.contains(why) && !state.contains("E0000000000000 is not"), "{state}");
    assert!(next.starts_with("it is tried again about every "), "{next}");

    site.go_on(VecDeque::new());
    assert_eq!(site.ends(), [&Outcome::PartlyOwed]);
    let (_, next) = words(&site);
    assert!(next.starts_with("makes the owed purge: it is tried again about every "), "{next}");
    let order = site.orders.iter().find(|order| order.distribution.as_str() == "E0000000000001").unwrap();
    let reference = order.reference.clone();
    site.pending
        .extend([Progress::Created("I2".into()), Progress::Completed(None)].map(|made| (reference.clone(), made)));
    site.go_on(VecDeque::new());
    assert_eq!((site.ends(), words(&site).1.as_str()), (vec![&Outcome::Purged], "waits for the next version"));
}

#[test]
fn what_an_older_version_had_not_begun_with_is_purged_by_the_newer_one_alone() {
    let mut site = denied();
    site.roll_out("c", 3);
    let orders_of = |id: &DistributionId| site.orders.iter().filter(|order| order.distribution == *id).count();
    let twice = site.distributions.iter().filter(|id| orders_of(id) > 1).count();
    assert_eq!(site.ordered.len(), 400);
    assert!(twice <= 32, "only what was on its way may be ordered for both: {twice}");
    assert_eq!(site.ends().last(), Some(&&Outcome::Purged));
    assert!(
        site.machine
            .durable()
            .unwrap()
            .owed
            .iter()
            .all(|vote| vote.plan.hosts.len() <= 1 && vote.plan.origins.is_empty())
    );
}

#[test]
fn hosts_that_a_vote_has_no_room_for_are_told() {
    let mut site = Site::begin(1, fresh);
    site.roll_out("b", 2);
    assert!(site.told(Kind::WorkloadFaulty).is_empty());
    let mut story = Story::begin(complete("a", 1));
    story.held = ["find_site"].into();
    story.see(complete("b", 2));
    let hosts = (0..2_000).map(|n| format!("host-{n:04}.example.com").parse().unwrap()).collect();
    story.step(Event::SiteFound(FoundSite { hosts, ..FoundSite::default() }));
    assert_eq!((story.told(Kind::WorkloadFaulty), story.last()), (1, Some(&Outcome::Purged)));
}

#[test]
fn tags_are_sent_where_they_are_on_and_paths_where_not_under_one_reference() {
    let items = |items: &[&str]| items.iter().map(|item| item.parse().unwrap()).collect::<PathSet>();
    for (voted, without) in [(items(&["#shop"]), items(&["/*"])), (items(&["#shop", "/a"]), items(&["/a"]))] {
        let purged = |tagged: &[&str]| {
            let mut site = Site::begin(2, fresh);
            site.paths = Some(voted.clone());
            site.tagged = tagged.iter().map(|id| id.parse().unwrap()).collect();
            site.roll_out("b", 2);
            assert_eq!(site.ends(), [&Outcome::Purged]);
            site.orders.into_iter().map(|order| (order.reference, order.paths)).unzip::<_, _, Vec<_>, Vec<_>>()
        };
        let (references, sent) = purged(&["E0000000000000"]);
        assert_eq!(sent, [voted.clone(), without.clone()]);
        assert_eq!(purged(&[]), (references.clone(), vec![without.clone(), without.clone()]));
        assert_eq!(purged(&["E0000000000000", "E0000000000001"]), (references, vec![voted.clone(), voted.clone()]));
    }
}

/// The outcomes of one of two purges, and how the first of them is announced.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Fresh,
    Covered,
    ByAnother,
    Impossible,
    Owed,
}

const FATES: [Fate; 5] = [Fate::Fresh, Fate::Covered, Fate::ByAnother, Fate::Impossible, Fate::Owed];

/// Two distributions, whose purges end so.
fn two(first: Fate, second: Fate) -> Site {
    let mut site = Site::begin(2, |_| vec![Progress::Created("I1EXAMPLE12345".into())]);
    site.roll_out("b", 2);
    // Only a record can say yet that a purge is owed, so all of them are said by one.
    let mut record = site.machine.durable().cloned().unwrap();
    let purges = record.votes[0].purges.listed.values_mut();
    for (purge, fate) in purges.zip([first, second]) {
        purge.state = match fate {
            Fate::Fresh => PurgeState::Created,
            Fate::Covered => PurgeState::Covered("later".into()),
            Fate::ByAnother => PurgeState::DoneByOther,
            Fate::Impossible => PurgeState::Impossible("NoSuchDistribution".into()),
            Fate::Owed => PurgeState::Owed("AccessDenied".into()),
        };
    }
    site.machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    site.told.clear();
    // What is owed is tried again, in vain.
    site.fate = Box::new(move |distribution| {
        let fate = if distribution.as_str().ends_with('0') { first } else { second };
        if fate == Fate::Owed { Vec::new() } else { vec![Progress::Completed(None)] }
    });
    site.roll_out("b", 2);
    site
}

#[test]
fn of_two_distributions_with_any_two_fates_the_end_says_which_is_fresh_and_why_the_other_is_not() {
    for (first, second) in FATES.iter().flat_map(|first| FATES.iter().map(|second| (*first, *second))) {
        let site = two(first, second);
        let fates = [first, second];
        let has = |fate| fates.contains(&fate);
        let fresh = fates.iter().filter(|fate| !matches!(fate, Fate::Impossible | Fate::Owed)).count();
        let shown = closed(site.machine.durable().unwrap().history.last().unwrap());
        let (completed, failed, owed) =
            (site.told(Kind::PurgeCompleted), site.told(Kind::PurgeFailed), site.told(Kind::PurgeOwed));
        // All is fresh, or it is not said that it is; the edge is settled then, and only then.
        assert_eq!(completed.len(), usize::from(fresh == 2), "{shown}");
        let record = site.machine.durable().unwrap();
        assert_eq!(record.edge == Edge::Settled && record.settled.is_none(), fresh == 2, "{shown}");
        assert_eq!(owed.len(), usize::from(has(Fate::Owed)), "{shown}");
        assert_eq!(failed.len(), usize::from(fresh == 1 && has(Fate::Impossible)), "{shown}");
        assert_eq!(shown.contains("partly purged"), fresh == 1, "{shown}");
        for notice in owed.iter().chain(&failed) {
            let said = &notice.message;
            assert_eq!(said.starts_with("partly purged: "), fresh == 1, "{said}");
            for (fate, distribution) in fates.iter().zip(["E0000000000000", "E0000000000001"]) {
                let words = match fate {
                    Fate::Fresh | Fate::Covered => format!("{distribution} by invalidation I1EXAMPLE12345"),
                    Fate::ByAnother => format!("{distribution} by another member"),
                    Fate::Impossible => format!("{distribution} (NoSuchDistribution)"),
                    Fate::Owed => format!("{distribution} (AccessDenied)"),
                };
                assert!(said.contains(&words), "{said} does not say {words}");
            }
        }
    }
}

#[test]
fn after_a_version_was_partly_purged_going_back_purges() {
    let mut site = two(Fate::Fresh, Fate::Impossible);
    assert_eq!(site.ends(), [&Outcome::Partly]);
    site.ordered.clear();
    site.fate = Box::new(fresh);
    site.roll_out("a", 3);
    assert_eq!((site.ordered.len(), site.ends().last()), (2, Some(&&Outcome::Purged)));
}
