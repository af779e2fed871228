//! The invalidator's part in looks at the edge, on fakes: questions come out in turns, and nothing is asked for a look that has ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, WrapFuture};
use allclear::actors::Env;
use allclear::actors::invalidator::Invalidator;
use allclear::actors::lifecycle::{Obituary, StopSignal};
use allclear::actors::looks::{AskEdge, EdgeAnswered, LeaveEdge};
use allclear::actors::message::{Died, Drain, MatchPlan, Observe, Who};
use allclear::telemetry::{Form, Metrics};
use kernel::id::{Reference, WorkloadId};
use kernel::machine::Timestamp;
use kernel::names::host::Host;
use kernel::replica::duty::Singleton;
use proof::asked::{Answer, Answers, Body, Headers, Page, Question, QuestionId, Reply};
use proof::turns::Asker;
use purge::bounds::plan::Plan;
use support::fakes::{Fault, Millis, World};
use support::stage::{in_system, settings, unexpected_panics};

/// Whoever hears of a death.
struct Parent(Arc<Mutex<u32>>);

impl Actor for Parent {
    type Context = Context<Self>;
}

impl Handler<Died> for Parent {
    type Result = ();

    fn handle(&mut self, _: Died, _: &mut Self::Context) {
        *self.0.lock().unwrap() += 1;
    }
}

type Heard = Arc<Mutex<Vec<(Millis, QuestionId, Answers)>>>;

/// A rollout that looks.
struct Looker {
    world: World,
    heard: Heard,
    /// It takes no message for so long.
    busy: Duration,
}

impl Actor for Looker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(1);
        ctx.wait(tokio::time::sleep(self.busy).into_actor(self));
    }
}

impl Handler<EdgeAnswered> for Looker {
    type Result = ();

    fn handle(&mut self, EdgeAnswered(_, id, answers): EdgeAnswered, _: &mut Self::Context) {
        self.heard.lock().unwrap().push((self.world.now(), id, *answers));
    }
}

impl Handler<Drain> for Looker {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

/// An invalidator, and who asks it.
struct Bench {
    world: World,
    metrics: Arc<Metrics>,
    deaths: Arc<Mutex<u32>>,
    invalidator: Addr<Invalidator>,
    signal: StopSignal,
}

impl Bench {
    fn begin(world: &World) -> Self {
        world.life_begins();
        let (metrics, deaths, signal) =
            (Arc::new(Metrics::default()), Arc::<Mutex<u32>>::default(), StopSignal::default());
        let invalidator = launch(world, &metrics, &deaths, &signal);
        Self { world: world.clone(), metrics, deaths, invalidator, signal }
    }

    fn rebuild(&mut self) {
        self.invalidator = launch(&self.world, &self.metrics, &self.deaths, &self.signal);
    }

    fn looker(&self, name: &str) -> One {
        self.busy_looker(name, Duration::ZERO)
    }

    fn busy_looker(&self, name: &str, busy: Duration) -> One {
        let heard = Heard::default();
        let looker = Looker { world: self.world.clone(), heard: heard.clone(), busy };
        let asker = (WorkloadId::deployment("shop", name), Reference("r".to_owned()));
        One { asker, heard, address: looker.start() }
    }

    /// Asks a question of a page of `host`, of a page of its own for each number.
    async fn ask(&self, one: &One, host: &str, look: u8) -> bool {
        let question = Box::new(Question {
            id: QuestionId { round: 0, page: look, look },
            page: Page::try_from(format!("{host}.example.com/")).unwrap(),
            requests_max: 3,
            wants_body: false,
            marker_header: None,
            asks_pods: false,
        });
        let answer_to = one.address.clone().recipient();
        self.invalidator.send(AskEdge { asker: one.asker.clone(), question, answer_to }).await.is_ok()
    }

    fn asked(&self, host: &str) -> Vec<Millis> {
        self.world.asked("edge.ask", host)
    }

    fn shows(&self, series: &str) -> bool {
        self.metrics.text(Form::Prometheus).contains(&format!("\nallclear_{series}\n"))
    }
}

struct One {
    asker: Asker,
    heard: Heard,
    address: Addr<Looker>,
}

impl One {
    /// When it heard of which of its questions.
    fn heard(&self) -> Vec<(Millis, u8)> {
        self.heard.lock().unwrap().iter().map(|(at, id, _)| (*at, id.look)).collect()
    }
}

fn launch(world: &World, metrics: &Arc<Metrics>, deaths: &Arc<Mutex<u32>>, signal: &StopSignal) -> Addr<Invalidator> {
    let (ports, metrics) = (world.ports(), metrics.clone());
    let env = Env { ports, metrics, settings: Arc::new(settings()), complaints: Arc::default() };
    let parent = Parent(deaths.clone()).start();
    let obituary = Obituary::new(parent.recipient(), Who::Singleton(Singleton::Invalidator));
    Invalidator::new(env, signal.listener(), obituary).start()
}

/// An answer of the edge with so many requests.
fn answers(requests: usize) -> Answers {
    let hop = Answer {
        path: "/".to_owned(),
        started: Timestamp::default(),
        ended: Timestamp::default(),
        status: 200,
        headers: Headers::default(),
        body: Body::Unread,
    };
    Answers { edge: Reply { hops: vec![hop; requests], failure: None }, pods: Vec::new() }
}

async fn pass(millis: Millis) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn play(play: impl AsyncFnOnce(&World)) {
    in_system(async { play(&World::new(1)).await });
    let panics = unexpected_panics();
    assert!(panics.is_empty(), "{panics:#?}");
}

#[test]
fn questions_come_out_two_a_second_and_each_is_answered_to_whoever_asked() {
    play(async |world| {
        world.state().edge = Some(answers(1));
        let bench = Bench::begin(world);
        let lookers: Vec<One> = (0..4).map(|n| bench.looker(&format!("w{n}"))).collect();
        for (n, one) in lookers.iter().enumerate() {
            assert!(bench.ask(one, &format!("h{n}"), 7).await);
        }
        pass(10).await;
        assert!(bench.shows("edge_questions_waiting 3"));
        pass(5_000).await;
        assert_eq!(bench.asked(""), [0, 500, 1_000, 1_500]);
        for (n, one) in (0..).zip(&lookers) {
            let heard = one.heard();
            assert!(matches!(heard.as_slice(), [(at, 7)] if *at >= n * 500), "{n}: {heard:?}");
            assert_eq!(one.heard.lock().unwrap()[0].2, answers(1));
        }
        for series in [
            "edge_questions_waiting 0",
            "edge_questions_total{outcome=\"answered\"} 4",
            "edge_questions_total{outcome=\"failed\"} 0",
            "effects_total{machine=\"turns\",effect=\"ask\"} 4",
        ] {
            assert!(bench.shows(series), "{series}");
        }
    });
}

#[test]
fn redirects_take_their_part_of_the_time_and_a_failure_counts_as_one() {
    play(async |world| {
        world.state().edge = Some(answers(3));
        world.plan("edge.ask", "h1", 0, Fault::Fail);
        let bench = Bench::begin(world);
        let one = bench.looker("web");
        for (n, host) in ["h0", "h1", "h2"].into_iter().enumerate() {
            bench.ask(&one, host, u8::try_from(n).unwrap()).await;
        }
        pass(5_000).await;
        assert_eq!(bench.asked(""), [0, 1_500, 2_000], "three requests, then one");
        assert_eq!(one.heard().len(), 3, "a failure is an answer");
        assert!(bench.shows("edge_questions_total{outcome=\"failed\"} 1"));
    });
}

#[test]
fn for_a_look_that_has_ended_nothing_more_is_asked() {
    play(async |world| {
        world.state().edge = Some(answers(1));
        world.plan("edge.ask", "h", 0, Fault::Delay(300));
        let bench = Bench::begin(world);
        let one = bench.looker("web");
        for look in 1..=3 {
            bench.ask(&one, "h", look).await;
        }
        pass(100).await;
        bench.invalidator.send(LeaveEdge(one.asker.clone())).await.unwrap();
        assert!(bench.shows("edge_questions_waiting 0"));
        pass(20_000).await;
        assert_eq!((bench.asked("").len(), one.heard()), (1, Vec::new()), "what comes back is for nobody");
        bench.ask(&one, "h", 4).await;
        pass(20_000).await;
        assert_eq!(one.heard().len(), 1, "it may look again");
    });
}

#[test]
fn for_a_rollout_that_is_gone_one_more_question_is_asked_at_most() {
    play(async |world| {
        world.state().edge = Some(answers(1));
        let bench = Bench::begin(world);
        let (gone, one) = (bench.looker("gone"), bench.looker("web"));
        for look in 1..=5 {
            bench.ask(&gone, "gone", look).await;
        }
        pass(100).await;
        gone.address.send(Drain).await.unwrap();
        bench.ask(&one, "h", 1).await;
        pass(20_000).await;
        assert_eq!((bench.asked("gone").len(), bench.asked("h.").len()), (2, 1));
        assert!(bench.shows("edge_questions_waiting 0"));
        assert_eq!(one.heard().len(), 1);
    });
}

#[test]
fn rollouts_that_are_gone_are_looked_for_when_others_ask() {
    play(async |world| {
        world.state().edge = Some(answers(1));
        let bench = Bench::begin(world);
        let gone = [bench.looker("gone-1"), bench.looker("gone-2")];
        for one in &gone {
            for look in 1..=3 {
                bench.ask(one, "gone", look).await;
            }
        }
        assert!(bench.shows("edge_questions_waiting 5"));
        for one in &gone {
            one.address.send(Drain).await.unwrap();
        }
        bench.ask(&bench.looker("web"), "h", 1).await;
        assert!(bench.shows("edge_questions_waiting 1"), "its own");
    });
}

#[test]
fn an_answer_that_a_full_mailbox_refuses_is_counted_and_the_next_one_arrives() {
    play(async |world| {
        world.state().edge = Some(answers(1));
        let bench = Bench::begin(world);
        let one = bench.busy_looker("web", Duration::from_millis(3_500));
        for look in 1..=6 {
            bench.ask(&one, "h", look).await;
        }
        pass(20_000).await;
        assert_eq!(bench.asked("").len(), 6);
        let heard = one.heard();
        let lost = 6 - heard.len();
        assert!((1..6).contains(&lost) && heard.last().unwrap().1 == 6, "{heard:?}");
        assert!(bench.shows(&format!("mailbox_overflows_total{{actor=\"rollout\"}} {lost}")));
    });
}

#[test]
fn a_rebuilt_invalidator_has_forgotten_all_questions_and_answers_those_that_are_asked_again() {
    play(async |world| {
        world.state().edge = Some(answers(1));
        world.plan("edge.ask", "", 0, Fault::Panic);
        let mut bench = Bench::begin(world);
        let one = bench.looker("web");
        bench.ask(&one, "h", 1).await;
        bench.ask(&one, "other", 2).await;
        pass(100).await;
        assert!(world.plan_is_done() && *bench.deaths.lock().unwrap() == 1);
        assert!(!bench.ask(&one, "h", 1).await, "it is dead, and whoever asks hears that");
        bench.rebuild();
        pass(20_000).await;
        assert_eq!(bench.asked("").len(), 1, "nothing is asked by itself");
        assert!(bench.shows("edge_questions_waiting 0"));
        bench.ask(&one, "h", 1).await;
        pass(1_000).await;
        assert_eq!((one.heard().len(), bench.asked("h").len()), (1, 2));
    });
}

/// The answer that carries no tags, though the distribution has them switched on.
#[test]
fn before_a_purge_by_tag_one_answer_is_looked_at_and_all_is_purged_where_it_carries_none() {
    play(async |world| {
        world.distribution("E1", &["www.example.com"]);
        world.state().distributions[0].cache_tags = true;
        let mut untagged = answers(1);
        untagged.edge.hops[0].headers = Headers::of([("x-amz-cf-id", "id")], None);
        world.state().edge = Some(untagged);
        let bench = Bench::begin(world);
        let plan = || Plan {
            hosts: [Host::parse("www.example.com").unwrap()].into(),
            paths: ["#shop".parse().unwrap()].into_iter().collect(),
            ..Plan::default()
        };
        for _ in 0..2 {
            let found = bench
                .invalidator
                .send(MatchPlan { namespace: "shop".to_owned(), plan: Box::new(plan()), newer: false })
                .await
                .unwrap();
            let found = found.unwrap().unwrap();
            assert_eq!((found.distributions.len(), found.tagged.len(), found.untagged.len()), (1, 0, 1));
        }
        assert_eq!(bench.asked("www.example.com/").len(), 1, "looked at once for a while");
        let seen = bench.invalidator.send(Observe).await.unwrap();
        let said = "all of E1 is purged, and not by cache tags: www.example.com/ comes without the header cache-tag";
        assert!(seen.troubles.iter().any(|trouble| trouble.starts_with(said)), "{:?}", seen.troubles);
    });
}
