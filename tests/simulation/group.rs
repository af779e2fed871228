//! Several members in one run, each with its own cluster, ledger and actors, over boards that all of them share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::Actor;
use allclear::actors::message::Drain;
use allclear::actors::observation::Observation;
use allclear::actors::root::Root;
use allclear::actors::{Env, Grouping, Settings};
use allclear::telemetry::Metrics;
use kernel::id::{Member, Seq};
use notices::notice::Kind;
use purge::agreement::roster::Reason;
use purge::ports::{Clock, Ledger, Posting};
use purge::records::record::{Change, Published, Record};
use support::fakes::{Millis, Server, World};
use support::stage::{Life, Stage, deployment, id, in_system, roll_out, settings, unexpected_panics};
use tokio::sync::oneshot;

pub const NAMES: [&str; 3] = ["eu-1", "eu-2", "us-1"];

/// A group of this many, each with `web` at version 1, and the boards.
pub fn group(size: usize) -> (Vec<World>, Vec<Server>) {
    let boards: Vec<Server> = NAMES[..size].iter().map(|name| Server::new(&format!("redis-{name}"))).collect();
    let worlds = (0..size).map(|index| {
        let world = World::new(u64::try_from(index).unwrap());
        let mut seats = boards.clone();
        seats.swap(0, index);
        world.joins(NAMES[index], &seats);
        world.distribution("EWEB", &["web.example.com"]);
        world.set(deployment("web", 1, 1, "1", Stage::Complete));
        world
    });
    (worlds.collect(), boards)
}

/// Each start is another process.
static STARTED: AtomicUsize = AtomicUsize::new(0);

pub fn member(name: &str) -> Settings {
    let boot = format!("process{}", STARTED.fetch_add(1, Ordering::Relaxed));
    Settings { member: name.into(), grouping: Some(Grouping { boot, ..Grouping::default() }), ..settings() }
}

/// A clock of which the wall's time is an hour behind.
struct SetBack(Arc<dyn Clock>);

impl Clock for SetBack {
    fn now(&self) -> kernel::machine::Timestamp {
        self.0.now()
    }

    fn wall_ms(&self) -> i64 {
        self.0.wall_ms() - 3_600_000
    }
}

pub fn start(world: &World, settings: Settings) -> Life {
    start_with(world, settings, |clock| clock)
}

fn start_with(world: &World, settings: Settings, clock: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Clock>) -> Life {
    world.life_begins();
    let (give_up, given_up) = oneshot::channel();
    let mut ports = world.ports();
    ports.clock = clock(ports.clock);
    let env =
        Env { ports, metrics: Arc::new(Metrics::default()), settings: Arc::new(settings), complaints: Arc::default() };
    Life { world: world.clone(), root: Root::new(env, give_up).start(), given_up }
}

pub fn start_all(worlds: &[World]) -> Vec<Life> {
    worlds.iter().zip(NAMES).map(|(world, name)| start(world, member(name))).collect()
}

/// Runs one play and fails if an actor panicked.
pub fn play(play: impl Future<Output = ()>) {
    in_system(play);
    let panics = unexpected_panics();
    assert!(panics.is_empty(), "an actor panicked: {panics:#?}");
}

pub async fn pass(millis: Millis) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Waits until every member has agreed on who the members are.
pub async fn agreed(lives: &[Life]) {
    for _ in 0..200 {
        let mut held = false;
        for life in lives {
            // There is no group before the ledger is opened.
            held |= life.observe().await.group.is_none_or(|group| group.hold.is_some());
        }
        if !held {
            return;
        }
        pass(100).await;
    }
    panic!("not agreed within 20 s: {:#?}", lives[0].observe().await);
}

fn hold(seen: &Observation) -> Option<String> {
    seen.group.as_ref().expect("it is grouped").hold.clone()
}

pub fn creations(worlds: &[World]) -> usize {
    worlds.iter().map(|world| world.creations("EWEB").len()).sum()
}

/// Rolls `web` out in all clusters, one after the other.
pub async fn release(lives: &[Life], generation: i64, tag: &str) {
    for life in lives {
        roll_out(life, "web", generation, tag, 4_000).await;
    }
}

#[test]
fn members_that_are_not_named_find_each_other_and_purge_once() {
    play(async {
        let (worlds, _) = group(3);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        for (world, name) in worlds.iter().zip(NAMES) {
            let ledger = world.state().ledger.clone();
            let pin = ledger.pin().await.unwrap().expect("it is pinned");
            assert_eq!((pin.members, pin.of), (NAMES.iter().map(|name| Member::from(*name)).collect(), 3), "{name}");
        }
        release(&lives[..2], 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0, "us-1 is not there yet");
        release(&lives[2..], 2, "2").await;
        pass(120_000).await;
        assert_eq!(creations(&worlds), 1);
        for life in &lives {
            assert!(life.observe().await.rollouts.is_empty(), "{:#?}", life.observe().await);
            assert!(!life.world.record(&id("web")).expect("a record").seeks());
        }
        let told: usize = worlds.iter().map(|world| world.told("web", Kind::PurgeCompleted).len()).sum();
        assert!(told > 0);
    });
}

#[test]
fn members_that_start_together_agree_within_a_second() {
    play(async {
        let (worlds, _) = group(3);
        let lives = start_all(&worlds);
        pass(1_000).await;
        for life in &lives {
            let seen = life.observe().await;
            assert_eq!(hold(&seen), None);
            assert_eq!(seen.troubles, Vec::<String>::new(), "nobody is thought to be of another mind");
        }
    });
}

#[test]
fn a_ledger_deleted_under_a_quiet_member_is_begun_anew_and_the_group_goes_on() {
    play(async {
        let (worlds, boards) = group(3);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1);
        worlds[1].lose_ledger();
        // Nothing happens that would write a record.
        pass(30_000).await;
        for life in &lives {
            let seen = life.observe().await;
            assert_eq!((hold(&seen), &seen.troubles), (None, &Vec::new()));
            let group = seen.group.expect("a group");
            assert!(group.regressed.is_empty(), "{:?}", group.regressed);
        }
        let baseline = worlds[1].record(&id("web")).expect("it is taken as it is");
        assert_eq!((baseline.seq, baseline.change), (Seq(1), Change::Baseline));
        for board in &boards {
            assert_eq!(board.shows("eu-2", &id("web")).await, Some(baseline.clone().into()));
        }
        release(&lives, 3, "3").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 2);
    });
}

// Faults: C1
#[test]
fn a_member_that_starts_again_with_its_clock_set_back_and_a_new_ledger_is_heard_and_counts() {
    play(async {
        let (worlds, _) = group(2);
        let mut lives = start_all(&worlds);
        agreed(&lives).await;
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1);
        let ends = lives.pop().expect("two lives");
        ends.root.send(Drain).await.expect("it ends");
        pass(5_000).await;
        worlds[1].life_ends();
        worlds[1].lose_ledger();
        lives.push(start_with(&worlds[1], member(NAMES[1]), |clock| Arc::new(SetBack(clock))));
        // Until the one of the former ledger was silent for long enough.
        pass(60_000).await;
        let group = lives[0].observe().await.group.expect("a group");
        let heard = group.members.iter().find(|member| member.name == NAMES[1]).and_then(|member| member.heard_s);
        assert!(heard.is_some_and(|seconds| seconds < 10), "{group:#?}");
        release(&lives, 3, "3").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 2);
    });
}

#[test]
fn news_travels_by_wake_ups_and_waits_for_no_poll() {
    play(async {
        let (worlds, _) = group(3);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        pass(20_000).await;
        for life in &lives[..2] {
            roll_out(life, "web", 2, "2", 4_000).await;
        }
        pass(30_000).await;
        let from = worlds[2].now();
        worlds[2].set(deployment("web", 1, 2, "2", Stage::Complete));
        let mut waited = 0;
        while creations(&worlds) == 0 {
            pass(10).await;
            waited += 10;
            assert!(waited < 30_000, "{:#?}", lives[0].observe().await);
        }
        // Votes go from ledger to board to ledger several times; one poll alone would take 4 s.
        assert!(worlds[2].now() - from < 2_000, "{} ms", worlds[2].now() - from);
    });
}

#[test]
fn a_board_that_lost_everything_is_filled_again_by_all_members() {
    play(async {
        let (worlds, boards) = group(2);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        pass(2_000).await;
        for name in &NAMES[..2] {
            assert!(boards[0].shows(name, &id("web")).await.is_some());
        }
        boards[0].board.wipe();
        pass(7_000).await;
        for name in &NAMES[..2] {
            assert!(boards[0].shows(name, &id("web")).await.is_some(), "{name}");
        }
        drop(lives);
    });
}

// Faults: R7, R9
#[test]
fn one_reachable_board_is_enough_and_dead_ones_delay_nobody() {
    play(async {
        let (worlds, boards) = group(3);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        boards[0].is_down_for(&NAMES, true);
        boards[2].is_down_for(&NAMES, true);
        pass(10_000).await;
        let seen = lives[1].observe().await.group.expect("a group");
        let troubled: Vec<_> = seen.boards.iter().filter(|board| board.trouble.is_some()).map(|b| &b.name).collect();
        assert_eq!(troubled, ["redis-eu-1", "redis-us-1"]);
        release(&lives, 2, "2").await;
        let from = worlds[0].now();
        while creations(&worlds) == 0 {
            pass(10).await;
            assert!(worlds[0].now() - from < 10_000, "{:#?}", lives[0].observe().await);
        }
        boards[0].is_down_for(&NAMES, false);
        boards[2].is_down_for(&NAMES, false);
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1);
        for board in [&boards[0], &boards[2]] {
            for (world, name) in worlds.iter().zip(NAMES) {
                let shown = board.shows(name, &id("web")).await.expect("a copy");
                assert_eq!(shown, world.record(&id("web")).expect("a record").into(), "{name}");
            }
        }
        assert!(lives[1].observe().await.troubles.is_empty(), "{:?}", lives[1].observe().await.troubles);
    });
}

#[test]
fn a_member_that_is_missing_is_named_and_waited_for() {
    play(async {
        let (worlds, _) = group(3);
        let lives: Vec<Life> = start_all(&worlds[..2]);
        pass(10_000).await;
        let held = hold(&lives[0].observe().await).expect("a hold");
        assert_eq!(held, "2 of 3 members are known: eu-1, eu-2; the third has not been heard from");
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0);
        worlds[2].set(deployment("web", 1, 2, "2", Stage::Complete));
        let third = start(&worlds[2], member(NAMES[2]));
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1, "its baseline counts");
        drop(third);
    });
}

#[test]
fn of_two_clusters_of_one_name_the_second_waits_and_the_first_misses_a_member() {
    play(async {
        let (worlds, _) = group(2);
        let lives = [start(&worlds[0], member("eu-1")), start(&worlds[1], member("eu-1"))];
        pass(15_000).await;
        let mut held = Vec::new();
        for life in &lives {
            held.push(hold(&life.observe().await).expect("a hold"));
        }
        held.sort();
        assert!(held[0].starts_with("1 of 2 members are known: eu-1"), "{held:?}");
        assert!(held[1].contains("reports by the name eu-1") && held[1].contains("so this one waits"), "{held:?}");
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0);
    });
}

#[test]
fn members_that_differ_in_a_setting_or_in_their_members_do_not_agree_and_say_why() {
    play(async {
        let (worlds, _) = group(2);
        let names = |names: &[&str]| names.iter().map(|name| Member::from(*name)).collect::<BTreeSet<_>>();
        let named = |name: &str, members: &[&str]| {
            let grouping = Grouping { members: names(members), ..Grouping::default() };
            Settings { grouping: Some(grouping), ..member(name) }
        };
        let lives =
            [start(&worlds[0], named("eu-1", &["eu-1", "eu-2"])), start(&worlds[1], named("eu-2", &["eu-2", "eu-3"]))];
        pass(15_000).await;
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0);
        let held = hold(&lives[1].observe().await).expect("more names than servers");
        assert!(held.starts_with("more members than servers: eu-1, eu-2, eu-3"), "{held}");
    });
    play(async {
        let (worlds, _) = group(2);
        let mut other = member("eu-2");
        other.policy.zero_is_complete = true;
        let lives = [start(&worlds[0], member("eu-1")), start(&worlds[1], other)];
        agreed(&lives).await;
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0);
        let seen = lives[0].observe().await;
        let words = "rollout.zero_replicas is \"complete\" there and \"wait\" here";
        let holds = &seen.group.as_ref().expect("a group").holds;
        assert!(holds.len() == 1 && holds[0].reason == Reason::Configuration, "{holds:?}");
        for world in &worlds {
            let published = world.state().published.clone();
            let told: Vec<_> = published.iter().filter(|(_, _, notice)| notice.kind == Kind::GroupStalled).collect();
            assert_eq!(told.len(), 1, "an Event on the workload that waits, once: {told:#?}");
            let message = &told[0].2.message;
            assert!(message.contains("give rollout.zero_replicas one value"), "{message}");
        }
        assert!(seen.troubles.iter().any(|trouble| trouble.contains(words)), "{:?}", seen.troubles);
    });
}

// Faults: A5
#[test]
fn a_ledger_that_was_set_back_holds_its_workload_and_no_other() {
    play(async {
        let (worlds, boards) = group(2);
        for world in &worlds {
            world.distribution("EBLOG", &["blog.example.com"]);
            world.set(deployment("blog", 1, 1, "1", Stage::Complete));
        }
        // What the group has seen of eu-1 in a life of its ledger that a backup has undone.
        let later = Record { revision: 40, ..Record::first(Seq(9)) };
        for board in &boards {
            board.put("eu-1", "eu-1-0", &id("web"), later.clone().into()).await;
        }
        let lives = start_all(&worlds);
        pass(15_000).await;
        for name in ["web", "blog"] {
            for life in &lives {
                roll_out(life, name, 2, "2", 4_000).await;
            }
        }
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0);
        assert_eq!(worlds.iter().map(|world| world.creations("EBLOG").len()).sum::<usize>(), 1);
        let seen = lives[0].observe().await;
        assert_eq!(seen.group.as_ref().expect("a group").regressed, [id("web")]);
        assert!(seen.troubles.iter().any(|trouble| trouble.contains("StateRegressed")), "{:?}", seen.troubles);
    });
}

#[test]
fn our_own_redis_among_the_remotes_is_one_server() {
    play(async {
        let (worlds, boards) = group(2);
        worlds[0].joins("eu-1", &[boards[0].clone(), boards[0].alias("10.0.0.7:6379"), boards[1].clone()]);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        let seen = lives[0].observe().await.group.expect("a group");
        assert_eq!(seen.boards[1].same_as.as_deref(), Some("redis-eu-1"));
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1);
    });
}

#[test]
fn a_workload_a_member_does_not_have_is_told_to_be_absent() {
    play(async {
        let (worlds, boards) = group(2);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        worlds[0].set(deployment("cart", 1, 1, "1", Stage::Complete));
        pass(2_000).await;
        roll_out(&lives[0], "cart", 2, "2", 4_000).await;
        pass(15_000).await;
        let shown = boards[0].shows("eu-2", &id("cart")).await;
        assert!(matches!(&shown, Some(Posting::Show(Published::Absent(_)))), "{shown:?}");
        // And nobody is woken for it again and again.
        let looked = worlds[1].asked("cluster.workload", "cart").len();
        pass(120_000).await;
        assert_eq!(worlds[1].asked("cluster.workload", "cart").len(), looked);
    });
}

mod ahead;
mod board;
mod called;
mod names;
