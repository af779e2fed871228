use super::*;
use crate::records::record::{Edge, Phase};
use crate::testing::version;
use kernel::id::{Kind, Seq};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn id(name: &str) -> WorkloadId {
    let (namespace, name) = name.split_once('/').unwrap_or(("shop", name));
    WorkloadId::deployment(namespace, name)
}

/// A cluster as people have it: who runs what, and which hosts lead to whom; with the records that allclear has of it.
#[derive(Clone, Default)]
struct Town {
    traffic: Traffic,
    now: u64,
    records: Records,
    led: BTreeMap<WorkloadId, BTreeSet<String>>,
    /// Purges, in words.
    purged: Vec<String>,
    looks: Vec<String>,
    /// Workloads whose records are being written by others.
    busy: BTreeSet<WorkloadId>,
}

impl Town {
    /// Workloads at rest, each with the version that is its edge's too.
    fn of(workloads: &[(&str, &str)]) -> Self {
        let mut town = Self { traffic: Traffic::new(false), ..Self::default() };
        for (name, runs) in workloads {
            town.runs(name, runs);
        }
        town
    }

    fn runs(&mut self, name: &str, runs: &str) {
        let seq = self.records.get(&id(name)).map_or(Seq(1), |record| record.seq.next());
        let mut record = self.records.get(&id(name)).map_or_else(|| Record::first(seq), |record| Record::clone(record));
        (record.seq, record.closed, record.version) = (seq, seq, version(runs));
        self.records.insert(id(name), record.into());
    }

    fn with(&mut self, name: &str, change: impl FnOnce(&mut Record)) {
        change(Arc::make_mut(self.records.get_mut(&id(name)).unwrap()));
    }

    /// A person routes these hosts.
    fn route(&mut self, routes: &[(&str, &str)]) {
        let namespaces: BTreeSet<String> = self.records.keys().map(|id| id.namespace.clone()).collect();
        self.led = self.records.keys().map(|id| (id.clone(), BTreeSet::new())).collect();
        for (host, name) in routes {
            self.led.entry(id(name)).or_default().insert((*host).to_owned());
        }
        for namespace in namespaces {
            self.feed(Event::Changed(namespace));
        }
    }

    /// The same, and time passes until all is quiet.
    fn routed(&mut self, routes: &[(&str, &str)]) -> &mut Self {
        self.route(routes);
        self.rest();
        self
    }

    fn feed(&mut self, event: Event) {
        let effects = self.traffic.step_and_catch_up(at(self.now), event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Look(namespace) => {
                    self.looks.push(namespace.clone());
                    let led = self.led.iter().filter(|(id, _)| id.namespace == namespace);
                    let led = led.map(|(id, hosts)| (id.clone(), hosts.clone())).collect();
                    let look = Look { namespace, kinds: Kind::ALL.into(), unread: BTreeSet::new(), led };
                    let known = self.traffic.known(&look, &self.records, &self.busy);
                    self.feed(Event::Looked(look.into(), known));
                }
                Effect::Ask(workload, moved, leads) => {
                    // The machine of a rollout: once for each move.
                    let record = Arc::make_mut(self.records.get_mut(&workload).unwrap());
                    if record.moved.as_ref().is_none_or(|last| !last.is(&moved)) {
                        record.seq = record.seq.next();
                        record.closed = record.seq;
                        self.purged.push(moved.words.clone());
                    }
                    record.leads = leads;
                    record.moved = Some(moved.clone());
                    self.feed(Event::Taken(workload, moved.token));
                }
                Effect::Keep(mut all) => {
                    all.retain(|id, _| self.records.contains_key(id) && !self.busy.contains(id));
                    for (id, leads) in &all {
                        Arc::make_mut(self.records.get_mut(id).unwrap()).leads = leads.clone();
                    }
                    self.feed(Event::Kept(all));
                }
            }
        }
    }

    /// Lets a minute pass.
    fn rest(&mut self) {
        let until = at(self.now + 60);
        while let Some(deadline) = self.traffic.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline.as_millis().div_ceil(1000));
            let effects = self.traffic.tick(at(self.now));
            self.perform(effects);
        }
        self.now += 60;
    }

    /// A new life of the program: only the records are left.
    fn restart(&mut self) {
        self.traffic = Traffic::new(false);
        let namespaces: BTreeSet<String> = self.records.keys().map(|id| id.namespace.clone()).collect();
        namespaces.into_iter().for_each(|namespace| self.feed(Event::Changed(namespace)));
    }

    fn remove(&mut self, name: &str) {
        let record = self.records.remove(&id(name)).unwrap();
        self.led.remove(&id(name));
        self.feed(Event::Departed(id(name), Was::of(&record).into()));
    }

    fn purged(&mut self) -> Vec<String> {
        std::mem::take(&mut self.purged)
    }
}

const WWW: &str = "www.example.com";

fn blue_green() -> Town {
    let mut town = Town::of(&[("blue", "1"), ("green", "2"), ("other", "7")]);
    town.routed(&[(WWW, "blue"), ("other.example.com", "other")]);
    assert_eq!(town.purged(), [""; 0], "a first look finds no move");
    town
}

#[test]
fn from_blue_to_green_and_back_is_one_purge_each() {
    let mut town = blue_green();
    let green = ["traffic moved from blue (web: 1) to green (web: 2): www.example.com"];
    assert_eq!(town.routed(&[(WWW, "green"), ("other.example.com", "other")]).purged(), green);
    assert_eq!(town.routed(&[(WWW, "green"), ("other.example.com", "other")]).purged(), [""; 0], "again the same");
    let blue = ["traffic moved from green (web: 2) to blue (web: 1): www.example.com"];
    assert_eq!(town.routed(&[(WWW, "blue"), ("other.example.com", "other")]).purged(), blue);
    assert_eq!(town.routed(&[(WWW, "green"), ("other.example.com", "other")]).purged(), green, "and once more");
}

#[test]
fn it_is_found_after_a_restart_and_a_crash_at_any_moment_costs_no_second_purge() {
    let mut town = blue_green();
    town.route(&[(WWW, "green"), ("other.example.com", "other")]);
    town.restart();
    town.rest();
    assert_eq!(town.purged().len(), 1, "it happened while allclear was down");
    for crash in 1..12 {
        let mut town = blue_green();
        town.route(&[(WWW, "green"), ("other.example.com", "other")]);
        // A second of each kind of waiting there is.
        for _ in 0..crash {
            town.now += 1;
            let effects = town.traffic.tick(at(town.now));
            town.perform(effects);
        }
        town.restart();
        town.rest();
        town.restart();
        town.rest();
        assert_eq!(town.purged().len(), 1, "a crash after {crash} s");
        assert_eq!(town.routed(&[(WWW, "blue")]).purged().len(), 1, "and the way back is seen");
    }
}

#[test]
fn a_workload_that_is_added_changes_nothing_until_the_other_is_gone() {
    let mut town = blue_green();
    assert_eq!(town.routed(&[(WWW, "blue"), (WWW, "green")]).purged(), [""; 0], "a canary");
    assert_eq!(town.routed(&[(WWW, "green")]).purged().len(), 1);
}

#[test]
fn of_many_that_serve_a_host_only_those_that_are_new_there_are_asked() {
    let mut town = Town::of(&[("blue", "1"), ("api", "2"), ("shop", "3"), ("green", "4")]);
    let (beside, others) = ([(WWW, "blue"), (WWW, "api"), (WWW, "shop")], [(WWW, "api"), (WWW, "shop")]);
    town.routed(&beside);
    assert_eq!(town.routed(&others).purged(), [""; 0], "an Ingress is being replaced");
    assert_eq!(town.routed(&beside).purged(), [""; 0]);
    let green = ["traffic moved from blue (web: 1) to green (web: 4): www.example.com"];
    assert_eq!(town.routed(&[others.as_slice(), &[(WWW, "green")]].concat()).purged(), green);
}

#[test]
fn a_rollout_in_flight_may_have_served_what_its_record_does_not_say() {
    let mut town = Town::of(&[("blue", "1"), ("green", "1")]);
    town.routed(&[(WWW, "blue")]);
    town.busy.insert(id("blue"));
    assert_eq!(town.routed(&[(WWW, "green")]).purged().len(), 1);
}

#[test]
fn the_same_version_behind_another_name_is_no_news() {
    let mut town = Town::of(&[("blue", "1"), ("green", "1")]);
    town.routed(&[(WWW, "blue")]);
    assert_eq!(town.routed(&[(WWW, "green")]).purged(), [""; 0]);
    // And from there on it is green's.
    town.runs("green", "2");
    assert_eq!(town.routed(&[(WWW, "blue")]).purged().len(), 1);
}

#[test]
fn a_version_that_the_edge_may_not_have_counts_as_another() {
    type Change = fn(&mut Record);
    let changes: [(&str, Change); 5] = [
        ("blue", |record| record.edge = Edge::Moved),
        ("blue", |record| record.edge = Edge::Unknown),
        ("blue", |record| record.settled = Some(version("0"))),
        ("blue", |record| record.seq = record.closed.next()),
        ("green", |record| record.phase = Phase::Rolling),
    ];
    for (number, (whose, change)) in changes.into_iter().enumerate() {
        let mut town = Town::of(&[("blue", "1"), ("green", "1")]);
        town.routed(&[(WWW, "blue")]);
        town.with(whose, change);
        assert_eq!(town.routed(&[(WWW, "green")]).purged().len(), 1, "{number}");
    }
}

#[test]
fn a_host_that_nobody_serves_for_a_while_is_remembered() {
    let mut town = blue_green();
    assert_eq!(town.routed(&[]).purged(), [""; 0], "the Ingress is gone");
    town.restart();
    town.rest();
    assert_eq!(town.routed(&[(WWW, "green")]).purged().len(), 1);
}

#[test]
fn what_is_deleted_in_the_moment_of_the_move_is_remembered_until_it_was_looked_at() {
    for first in [true, false] {
        let mut town = blue_green();
        if first {
            town.remove("blue");
            town.rest();
        }
        town.route(&[(WWW, "green"), ("other.example.com", "other")]);
        if !first {
            town.remove("blue");
        }
        town.rest();
        assert_eq!(town.purged().len(), 1, "deleted first: {first}");
        assert!(town.traffic.unrecorded.departed.is_empty() && town.traffic.left.is_empty());
        assert_eq!(
            town.routed(&[(WWW, "other"), ("other.example.com", "other")]).purged().len(),
            1,
            "and the next move is one of its own"
        );
    }
}

#[test]
fn a_host_moves_from_one_namespace_to_another_whichever_is_looked_at_first() {
    for first in ["blue", "green"] {
        let mut town = Town::of(&[("blue/web", "1"), ("green/web", "2")]);
        town.routed(&[(WWW, "blue/web")]);
        town.led.get_mut(&id("blue/web")).unwrap().clear();
        town.led.insert(id("green/web"), BTreeSet::from([WWW.to_owned()]));
        town.feed(Event::Changed(first.to_owned()));
        town.rest();
        town.feed(Event::Changed(if first == "blue" { "green" } else { "blue" }.to_owned()));
        town.rest();
        assert_eq!(
            town.purged(),
            [format!(
                "traffic moved from blue/web (web: 1) to web (web: 2){}",
                if first == "blue" { ": www.example.com" } else { "" }
            )],
            "{first} first"
        );
        assert!(town.traffic.left.is_empty() && town.traffic.kept.is_empty());
    }
}

#[test]
fn what_cannot_be_listed_has_left_nothing() {
    let mut town = blue_green();
    town.records.insert(WorkloadId::new(Kind::StatefulSet, "shop", "db"), {
        let mut record = Record::first(Seq(1));
        record.version = version("5");
        record.into()
    });
    town.led.insert(WorkloadId::new(Kind::StatefulSet, "shop", "db"), BTreeSet::from(["db.example.com".to_owned()]));
    town.feed(Event::Changed("shop".to_owned()));
    town.rest();
    let led = BTreeMap::from([(id("green"), BTreeSet::from(["db.example.com".to_owned()]))]);
    let look =
        Look { namespace: "shop".to_owned(), kinds: BTreeSet::from([Kind::Deployment]), unread: BTreeSet::new(), led };
    let known = town.traffic.known(&look, &town.records, &BTreeSet::new());
    town.traffic.looking = Some(Looking { namespace: "shop".to_owned(), since: at(town.now) });
    let effects = town.traffic.step(at(town.now), Event::Looked(look.into(), known));
    let asks = effects.iter().filter(|effect| matches!(effect, Effect::Ask(..))).count();
    assert_eq!(asks, 0, "{effects:?}");
}

#[test]
fn one_that_its_owner_has_taken_out_is_not_asked_and_one_that_does_not_take_it_only_once() {
    let mut town = blue_green();
    town.with("green", |record| record.off = true);
    assert_eq!(town.routed(&[(WWW, "green")]).purged(), [""; 0]);
    let (from, to) = (id("blue"), id("green"));
    let mut traffic = blue_green().traffic;
    traffic.asked.insert(
        to.clone(),
        Asked {
            moved: Moved::new("x", "y"),
            leads: Leads::default(),
            namespace: "shop".to_owned(),
            again: at(1_000_000),
            ended: 0,
        },
    );
    assert_eq!(traffic.step(at(900), Event::Ended(from, None)), []);
    assert!(traffic.asked.contains_key(&to));
    for _ in 0..2 {
        let effects = traffic.step_and_catch_up(at(900), Event::Ended(to.clone(), None));
        assert!(
            matches!(&effects[..], [Effect::Ask(id, ..)] if *id == to),
            "the rollout may not have heard of it: {effects:?}"
        );
    }
    assert_eq!(traffic.step(at(900), Event::Ended(to.clone(), None)), []);
    assert!(!traffic.asked.contains_key(&to) && traffic.refused.contains_key(&to));
}

#[test]
fn a_record_that_others_write_is_asked_to_remember_again() {
    let mut town = blue_green();
    town.busy.insert(id("blue"));
    assert_eq!(town.routed(&[(WWW, "green")]).purged().len(), 1);
    assert!(!town.records[&id("blue")].leads.is_empty() && town.traffic.kept.contains_key(&id("blue")));
    assert_eq!(town.routed(&[(WWW, "blue")]).purged().len(), 1, "meanwhile, moves are judged by what is to be kept");
    assert_eq!(town.routed(&[(WWW, "green")]).purged().len(), 1);
    town.busy.clear();
    town.rest();
    assert!(town.records[&id("blue")].leads.is_empty() && town.traffic.kept.is_empty());
}

#[test]
fn a_namespace_that_changes_all_the_time_is_looked_at_every_few_seconds_and_one_at_rest_never() {
    let mut town = blue_green();
    town.looks.clear();
    town.rest();
    assert_eq!(town.looks, [""; 0]);
    let until = town.now + 60;
    while town.now < until {
        for _ in 0..100 {
            town.feed(Event::Changed("shop".to_owned()));
        }
        town.now += 1;
        let effects = town.traffic.tick(at(town.now));
        town.perform(effects);
    }
    assert!((10..=12).contains(&town.looks.len()), "{} looks in a minute", town.looks.len());
}

#[test]
fn a_look_that_fails_is_made_again_and_one_that_takes_long_is_made_seldom() {
    let mut traffic = Traffic::new(false);
    traffic.step(at(0), Event::Changed("shop".to_owned()));
    assert_eq!(traffic.tick(at(1)), [Effect::Look("shop".to_owned())]);
    assert_eq!(traffic.step(at(4), Event::LookFailed), []);
    let again = traffic.next_deadline().unwrap();
    assert!(again >= at(4 + 3 * 20), "it took three seconds: {again:?}");
    assert_eq!(traffic.tick(again), [Effect::Look("shop".to_owned())]);
}

#[test]
fn one_that_cannot_be_read_has_left_nothing() {
    let mut town = blue_green();
    let led = BTreeMap::from([(id("green"), BTreeSet::from([WWW.to_owned()]))]);
    let asks = |town: &mut Town, unread| {
        let look = Look { namespace: "shop".to_owned(), kinds: Kind::ALL.into(), unread, led: led.clone() };
        let known = town.traffic.known(&look, &town.records, &BTreeSet::new());
        town.traffic.looking = Some(Looking { namespace: "shop".to_owned(), since: at(town.now) });
        let effects = town.traffic.step(at(town.now), Event::Looked(look.into(), known));
        effects.into_iter().filter(|effect| matches!(effect, Effect::Ask(..))).count()
    };
    assert_eq!(asks(&mut town, BTreeSet::from([id("blue")])), 0, "it may serve as before");
    assert_eq!(asks(&mut town, BTreeSet::new()), 1);
}

/// Goal: what a new workload served before its first rollout ended is purged from the edge once another serves there again. Method: it is
/// gone without ever having had a record.
#[test]
fn one_that_is_gone_before_its_first_record_may_have_served() {
    let mut town = blue_green();
    assert_eq!(town.routed(&[(WWW, "next")]).purged(), [""; 0], "nobody that is known serves it");
    town.feed(Event::Departed(id("next"), Was::unknown().into()));
    let blue = ["traffic moved from next to blue (web: 1): www.example.com"];
    assert_eq!(town.routed(&[(WWW, "blue")]).purged(), blue);
    assert_eq!(town.routed(&[(WWW, "blue")]).purged(), [""; 0], "once");
    assert!(town.traffic.unrecorded.newcomers.is_empty() && town.traffic.unrecorded.departed.is_empty());
}

#[test]
fn a_move_that_was_taken_back_is_asked_for_no_more_and_what_leads_there_is_as_of_now() {
    let mut town = blue_green();
    let look = |town: &mut Town, routes: &[(&str, &str)]| {
        let mut led: BTreeMap<WorkloadId, BTreeSet<String>> = BTreeMap::new();
        for (host, name) in routes {
            led.entry(id(name)).or_default().insert((*host).to_owned());
        }
        let look = Look { namespace: "shop".to_owned(), kinds: Kind::ALL.into(), unread: BTreeSet::new(), led };
        let known = town.traffic.known(&look, &town.records, &BTreeSet::new());
        town.traffic.looking = Some(Looking { namespace: "shop".to_owned(), since: at(town.now) });
        let mut asked = town.traffic.step(at(town.now), Event::Looked(look.clone().into(), known)).into_iter();
        (
            look,
            asked
                .find_map(|effect| if let Effect::Ask(_, moved, leads) = effect { Some((moved, leads)) } else { None }),
        )
    };
    let (moved_there, asked) = look(&mut town, &[(WWW, "green"), ("m.example.com", "green")]);
    let (moved, leads) = asked.unwrap();
    assert!(moved_there.still_leads(&id("green"), &leads) && town.traffic.asks(&id("green"), &moved));
    let (fewer, asked) = look(&mut town, &[(WWW, "green")]);
    assert!(asked.is_none() && !fewer.still_leads(&id("green"), &leads));
    let asked = &town.traffic.asked[&id("green")];
    assert!(
        asked.moved.is(&moved) && fewer.still_leads(&id("green"), &asked.leads),
        "asked for with what leads there now"
    );
    let (back, _) = look(&mut town, &[(WWW, "blue")]);
    assert!(!back.still_leads(&id("green"), &leads) && !town.traffic.asks(&id("green"), &moved));
}
